package nowcalls

import (
	"fmt"
	"strings"
	"time"
)

const (
	protocol       = 1
	noHello        = "no answer to hello; is that a nowcalls-server? " + usualPort
	tlsOnly        = "; or does it speak TLS only?" // To a client that does not.
	connectTimeout = 2 * time.Second                // Of all addresses of a name, at most.
	wrongSecret    = time.Second                    // By which a server delays its answer.
)

type sessionState int

const (
	offline sessionState = iota
	greeting
	ready
	stopped
)

// session is the protocol of one client, without sockets, goroutines or clocks.
//
// The client dials when dialing.at has come, and sends what is in output. It tells the session of
// the connection (connected, connectFailed, received, disconnected) and of time (tick). The session
// says hello, asks calls, asks them again on the next connection, keeps permits, and learns which
// of them are lost. Before hello, and without a wait for the answer, it shows its secret, if it has
// one. asking.go has what it asks, and what becomes of the answers.
//
// One goroutine at a time may use it. Outcomes are notified within its methods.
type session struct {
	config     *config
	dialing    *dialing
	instance   uint64 // Of hello; 0 for none.
	uniform    uniform
	requestIDs func() uint64
	readSecret func() (string, error)
	rules      *ruleBook
	fallback   *fallback
	closing    bool
	ended      string // Why.
	warnings   []string
	// The connection.
	state          sessionState
	withOptions    bool // The server is not known to be an older one.
	useful         bool // The server has answered more than hello.
	exchange       *exchange
	down           bool // All addresses have failed since the last connection.
	hasFailed      bool // Ever.
	whyOffline     string
	denied         error  // Of all calls, until a server accepts hello.
	identifyMsgid  uint32 // Until it is answered: the server may yet say that it is wrong.
	shown          string // The secret, on this connection.
	helloMsgid     uint32
	helloAt        instant
	sessionsOnline uint64
	contact        *contact
	// Calls.
	calls       *callTable
	later       agenda[func(instant)]
	laterNumber uint64
	rulesAsked  map[Flow][]*acquireCall // With the acquires that wait for them.
	// Tokens.
	held   *heldTokens
	lost   []*held
	counts Stats // Its counters alone.
}

func newSession(
	c *config, now instant, u uniform, instance uint64, ids func() uint64, clock func() instant,
) *session {
	s := &session{config: c, uniform: u, instance: instance, requestIDs: ids, withOptions: true,
		exchange: newExchange(), helloAt: now, sessionsOnline: 1, contact: newContact(now, clock),
		calls: newCallTable(), rulesAsked: map[Flow][]*acquireCall{}, held: newHeldTokens()}
	s.readSecret = c.secret.read
	s.dialing = &dialing{at: now, addresses: c.addresses, uniform: u}
	s.rules = newRuleBook()
	s.fallback = newFallback(c.fallback, c.localLevels, s.rules)
	s.whyOffline = s.dialing.name() + " is not connected yet"
	return s
}

func (s *session) ready() bool { return s.state == ready }

func (s *session) connectTimeout() time.Duration {
	return earliest(connectTimeout, s.config.timeout)
}

// takeOutput returns the bytes to send; spare is for the next ones.
func (s *session) takeOutput(spare []byte) []byte {
	output := s.exchange.output
	s.exchange.output = spare[:0]
	return output
}

// endOfConnection says of a connection what it is that the server or the network has ended.
func (s *session) endOfConnection(why string) string {
	if s.ready() {
		return why
	}
	why += ", before hello was answered"
	if s.config.tls != nil {
		return why
	}
	return why + "; is that a nowcalls-server? " + usualPort + tlsOnly
}

func (s *session) noHello() string {
	if s.config.tls != nil {
		return noHello
	}
	return noHello + tlsOnly
}

// The connection. What follows returns why the connection must be closed, or "".

// connected: a connection is open; the session says hello and waits for its answer.
// private: nobody on the way can read what is sent.
func (s *session) connected(now instant, private bool) string {
	s.dialing.begin()
	s.state = greeting
	s.useful = false
	s.exchange = newExchange()
	s.withOptions = true
	s.contact.begin(now)
	if !s.hasFailed { // Else the reason of before says more.
		s.whyOffline = s.dialing.name() + ": " + s.noHello()
	}
	s.shown = ""
	if s.config.secret.source != nil {
		if err := s.identify(private); err != nil {
			return s.deny(err, now)
		}
	}
	s.hello(now)
	return ""
}

// refusedCertificate: the server does not let the client's certificate in. connectFailed, or
// disconnected, follows.
func (s *session) refusedCertificate(now instant, reason string) {
	s.deny(&PermissionDenied{BadRequest{Message: reason}}, now)
}

func (s *session) connectFailed(now instant, reason string) {
	s.whyOffline, s.hasFailed = s.dialing.name()+": "+reason, true
	s.dialing.failed(now)
	if !s.dialing.allFailed() || s.closing {
		return
	}
	if !s.down && s.denied == nil {
		s.warn("no server is reached, fallback %s: %s", s.config.fallback, s.whyOffline)
	}
	s.down = true
	// Calls need not wait for the end of their time, unless they may wait for room: a server that
	// restarts must not let go all that stand in line.
	if !s.fallback.active() {
		return
	}
	for _, c := range s.calls.allAwaited() {
		if c.base().wantsRoom && c.base().wakeAt == never && !c.mayWait(now) {
			s.giveUp(c, now, s.whyOffline)
		}
	}
}

// disconnected: the connection is gone. Calls without answer are asked on the next one.
func (s *session) disconnected(now instant, reason string) {
	wasReady := s.ready()
	s.state = offline
	s.identifyMsgid = 0
	s.exchange = newExchange()
	for _, c := range s.calls.takeInFlight() {
		b := c.base()
		b.strayed = true
		if b.persistent || (b.repeatable && !b.done) {
			s.counts.AskedAgain++
			s.calls.queue(c)
		} else {
			s.fail(c, b.noAnswer(reason), now)
		}
	}
	if !wasReady {
		s.connectFailed(now, reason)
		return
	}
	s.counts.Disconnects++
	s.whyOffline, s.hasFailed = s.dialing.name()+": "+reason, true
	if s.useful {
		s.dialing.ended(now)
	} else { // A server that takes connections and ends them at once gets longer pauses, too.
		s.dialing.failed(now)
	}
}

// received handles bytes of the server.
func (s *session) received(data []byte, now instant) string {
	s.lookAfterAll(now) // What comes late brings no token back.
	if s.ready() {      // Until then only an answer to hello counts.
		s.contact.heard(now)
	}
	err := s.exchange.feed(data)
	for err == nil {
		var message []any
		if message, err = s.exchange.next(); message == nil || err != nil {
			break
		}
		var refusal string
		if refusal, err = s.message(message, now); refusal != "" {
			return refusal
		}
	}
	if err != nil {
		return fmt.Sprint("the peer does not speak nowcalls: ", s.masked(err.Error()))
	}
	return ""
}

// tick does what is due.
func (s *session) tick(now instant) string {
	for c := s.calls.overdue(now); c != nil; c = s.calls.overdue(now) {
		silent := s.whyOffline
		if s.ready() {
			silent = "the server did not answer in time"
		}
		s.giveUp(c, now, silent)
	}
	for !s.later.empty() && s.later.first().at <= now {
		s.later.pop().what(now)
	}
	s.lookAfterAll(now)
	if s.state == greeting && now >= s.greetingUntil() {
		return s.noHello()
	}
	if !s.ready() {
		return ""
	}
	if now >= s.contact.silentAt(s.config.timeout) {
		return "the server is silent"
	}
	if now >= s.contact.pingAt(s.held.lowest) {
		s.ping(now)
	}
	return ""
}

// wakeup is when to call tick, or to dial if there is no connection.
func (s *session) wakeup() instant {
	at := earliest(s.calls.nextDeadline(), s.held.nextAt(), s.held.contactUntil(s.contact))
	if !s.later.empty() {
		at = earliest(at, s.later.first().at)
	}
	switch s.state {
	case offline:
		return earliest(at, s.dialing.at)
	case greeting:
		return earliest(at, s.greetingUntil())
	}
	return earliest(at, s.contact.silentAt(s.config.timeout), s.contact.pingAt(s.held.lowest))
}

func (s *session) greetingUntil() instant {
	patience := s.config.timeout
	if s.config.secret.source != nil {
		patience += wrongSecret
	}
	return after(s.contact.heardAt, patience)
}

// The end.

// close ends all calls that wait. Releases and cancels go on until settled.
func (s *session) close(now instant) {
	s.closing = true
	for _, c := range s.calls.allAwaited() {
		if !c.base().persistent {
			s.giveUp(c, now, "the client was closed")
		}
	}
}

// stop ends what is left of releases. Calls that are asked from now on get reason.
func (s *session) stop(reason string) {
	s.state = stopped
	s.ended = reason
	for _, c := range s.calls.allAwaited() {
		s.calls.settle(c, nil, c.base().noAnswer(reason))
	}
	s.calls.takeInFlight()
	s.calls.takeQueue()
}

func (s *session) loseAll(reason string, now instant) {
	for _, h := range s.held.all() {
		s.lose(h, reason, stateEnded, now)
	}
}

// isSettled: no release and no cancel is without answer.
func (s *session) isSettled() bool { return s.calls.persistent() == 0 }

func (s *session) holds() bool { return len(s.held.tokens) > 0 }

// takeLost returns what was lost since the last call, for its callbacks. It warns once of all that
// were lost for one reason.
func (s *session) takeLost() []*held {
	lost := s.lost
	s.lost = nil
	var reasons []string
	byReason := map[string][]*held{}
	for _, h := range lost {
		why := whyLost(h)
		if byReason[why] == nil {
			reasons = append(reasons, why)
		}
		byReason[why] = append(byReason[why], h)
	}
	for _, why := range reasons {
		group := byReason[why]
		if len(group) == 1 {
			s.warn("lost token %d of flow %s: %s", group[0].tokenID, group[0].flow, why)
			continue
		}
		var ids []string
		for _, h := range group {
			ids = append(ids, fmt.Sprint(h.tokenID))
		}
		more := ""
		if len(ids) > 3 {
			ids, more = ids[:3], ", ..."
		}
		s.warn("lost %d tokens (%s%s): %s", len(group), strings.Join(ids, ", "), more, why)
	}
	return lost
}

func (s *session) takeWarnings() []string {
	warnings := s.warnings
	s.warnings = nil
	return warnings
}

func (s *session) stats() Stats {
	stats := s.counts
	stats.Connected = s.ready()
	stats.Address = s.dialing.name()
	stats.ClientID = s.config.clientID
	stats.SessionsOnline = s.sessionsOnline
	stats.Held = len(s.held.tokens)
	for _, c := range s.calls.awaited {
		if !c.base().persistent {
			stats.Waiting++
		}
	}
	stats.Unsettled = s.calls.persistent()
	stats.TellsLost = s.ready() && s.withOptions
	stats.LocalGranted = s.fallback.granted
	stats.LocalRefused = s.fallback.refused
	stats.LocalPassed = s.fallback.passed
	return stats
}

// Messages.

func (s *session) identify(private bool) error {
	if !private {
		return badRequest(plainSecret)
	}
	var err error
	if s.shown, err = s.readSecret(); err != nil {
		return err
	}
	s.identifyMsgid, err = s.exchange.request("identify", []any{s.shown})
	return err
}

func (s *session) hello(now instant) {
	params := []any{protocol, s.config.namespace, s.config.clientID}
	var options []option
	if s.withOptions {
		options = append(options, option{"lost", true})
	}
	if s.config.exclusive {
		options = append(options, option{"exclusive", true})
	}
	if s.withOptions {
		if s.instance != 0 {
			options = append(options, option{"instance", s.instance})
		}
		options = append(options, option{"terms", true})
	}
	s.helloAt = now
	if len(options) > 0 {
		params = append(params, options)
	}
	s.helloMsgid, _ = s.exchange.request("hello", params) // Its names were checked.
}

func (s *session) message(message []any, now instant) (refusal string, err error) {
	if len(message) == 3 {
		if message[1] != "lost" {
			return "", nil
		}
		return "", s.toldLost(message[2], now)
	}
	msgid, _ := asUint(message[1])
	failure, result := s.masked(message[2]), message[3]
	if failure != nil {
		read := readArray("an error", failure, 3)
		if read.err != nil {
			return "", read.err
		}
		if isNumber(read.parts[0], codeMalformed) {
			return s.told(failure)
		}
	}
	switch {
	case s.identifyMsgid != 0 && msgid == uint64(s.identifyMsgid):
		return s.identifyAnswered(failure, result, now)
	case s.state == greeting && msgid == uint64(s.helloMsgid):
		return s.helloAnswered(failure, result, now)
	}
	c := s.calls.inFlight[uint32(msgid)]
	if c == nil || msgid>>32 != 0 {
		return "", wrongly("it answers a request %d that awaits no answer", msgid)
	}
	s.contact.answered(c.base().sentAt)
	// A call whose answer was not understood stays in flight, and is asked again.
	s.calls.answered(uint32(msgid))
	if err := s.answered(c, failure, result, now); err != nil {
		s.calls.inFlight[uint32(msgid)] = c
		return "", err
	}
	s.useful = true
	return "", nil
}

// masked is what the server says, without the secret, which no text of the client shows.
func (s *session) masked(said any) any {
	if s.shown == "" {
		return said
	}
	switch words := said.(type) {
	case string:
		return strings.ReplaceAll(words, s.shown, "...")
	case []any:
		for i := range words {
			words[i] = s.masked(words[i])
		}
	}
	return said
}

// told is what an error says.
func (s *session) told(failure any) (string, error) {
	err := errorOf(failure)
	if _, isWrong := err.(*wrong); isWrong {
		return "", err
	}
	return err.Error(), nil
}

func (s *session) identifyAnswered(failure, result any, now instant) (string, error) {
	s.identifyMsgid = 0
	if failure == nil {
		read := readArray("identify", result, 3)
		read.text(0, "a name")
		return "", read.err
	}
	if isNumber(failure.([]any)[0], codeUnknownMethod) {
		return "", nil // An older server lets everybody in.
	}
	return s.greetingRefused("identify", failure, now)
}

func (s *session) helloAnswered(failure, result any, now instant) (string, error) {
	if failure != nil {
		if isNumber(failure.([]any)[0], codeBadParams) && s.withOptions {
			s.withOptions = false
			s.hello(now)
			return "", nil
		}
		return s.greetingRefused("hello", failure, now)
	}
	read := readArray("hello", result, 4)
	read.text(0, "the version")
	read.uint(1, "hello")
	online, resumed := read.uint(2, "hello"), read.uint(3, "hello")
	if read.err != nil {
		return "", read.err
	}
	s.sessionsOnline = online
	s.state = ready
	s.down = false
	s.denied = nil
	s.contact.heard(now)
	s.contact.answered(s.helloAt)
	s.counts.Connects++
	fewer := resumed < uint64(len(s.held.tokens))
	if resumed == 0 {
		s.loseAll("", now)
	}
	// A keep asks whether the token is still there. If some have ended, all are asked for.
	for _, h := range s.held.all() {
		if h.isKept() || (fewer && h.keep != KeepOff) {
			s.keep(h, now)
		}
	}
	for _, c := range s.calls.takeQueue() {
		s.send(c, now)
	}
	return "", nil
}

// greetingRefused: calls that wait fail at once if the client itself is at fault.
func (s *session) greetingRefused(method string, failure any, now instant) (string, error) {
	err := errorOf(failure)
	if _, isWrong := err.(*wrong); isWrong {
		return "", err
	}
	refusal := fmt.Sprintf("%s refused: %s", method, err)
	switch e := err.(type) {
	case *PermissionDenied:
		return s.deny(withMessage(e, refusal), now), nil
	case *BadRequest:
		s.endQueue(withMessage(e, refusal), now)
	}
	return refusal, nil
}

// deny: no fallback may let a call pass since its caller is refused.
func (s *session) deny(err error, now instant) string {
	denial := withMessage(err, fmt.Sprintf("%s: %s", s.dialing.name(), err))
	if s.denied == nil {
		s.warn("not let in, so calls end at once: %s", denial)
	}
	s.denied = denial
	s.endQueue(denial, now)
	return err.Error()
}

func (s *session) endQueue(err error, now instant) {
	for _, c := range s.calls.takeQueue() {
		if _, isRule := c.(*ruleCall); isRule || c.base().persistent {
			s.calls.queue(c)
		} else {
			s.fail(c, err, now)
		}
	}
}

func (s *session) toldLost(params any, now instant) error {
	read := readArray("lost", params, 3)
	tokenID := read.uint(0, "token_id")
	read.int(1, "flow_id")
	read.parts[2] = s.masked(read.parts[2])
	reason := read.text(2, "reason")
	if read.err != nil {
		return read.err
	}
	if h := s.held.find(tokenID); h != nil {
		s.lose(h, reason, stateEnded, now)
	}
	return nil
}
