package nowcalls

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The session without sockets, beside the vectors: who is not let in, and flows by name.

// peer is a session, and what its server does.
type peer struct {
	*testing.T
	session *session
	now     instant
	msgids  []any // Of what was asked and not answered.
}

func newTestSession(t *testing.T, settings Config) *session {
	t.Helper()
	settings.Address, settings.ClientID = "a:1", "worker-1"
	checked, err := settings.check()
	check(t, err)
	longest := func(_, high time.Duration) time.Duration { return high }
	last := uint64(1000)
	ids := func() uint64 { last++; return last }
	return newSession(checked, 0, longest, 7, ids, func() instant { return 0 })
}

func newPeer(t *testing.T, settings Config) *peer {
	t.Helper()
	return &peer{T: t, session: newTestSession(t, settings)}
}

// asked returns what the session has sent: methods and parameters.
func (p *peer) asked() []string {
	p.Helper()
	messages, err := all(newExchange(), asResponses(p.session.takeOutput(nil)))
	check(p.T, err)
	var asked []string
	for _, message := range messages {
		p.msgids = append(p.msgids, message[1])
		asked = append(asked, fmt.Sprint(message[2], " ", message[3]))
	}
	return asked
}

// asResponses makes responses of requests, which the client's own reader takes.
func asResponses(data []byte) []byte {
	for at := 0; at < len(data); {
		s := scanner{input: data[at:]}
		whole, err := s.next()
		if err != nil || whole == nil {
			panic("a session sends what is no message")
		}
		data[at+1] = 1
		at += len(whole)
	}
	return data
}

// answer answers the oldest requests. It returns why the session ends the connection.
func (p *peer) answer(results ...any) string {
	p.Helper()
	for _, result := range results {
		var failure any
		if refused, isError := result.(failed); isError {
			failure, result = []any(refused), nil
		}
		msgid := p.msgids[0]
		p.msgids = p.msgids[1:]
		if why := p.session.received(encoded([]any{1, msgid, failure, result}), p.now); why != "" {
			return why
		}
	}
	return ""
}

type failed []any

var (
	welcome  = []any{"1.0", 9, 1, 0}
	identity = []any{"checkout", "client", "secret", nil}
	granted1 = []any{0, 77, 13, 1, 2, 6000, nil}
	denial   = failed{9, "PERMISSION", "because"}
)

func (p *peer) acquire(flow Flow, opts ...Option) *acquireCall {
	p.Helper()
	return p.ask([]Item{{Flow: flow}}, false, opts...)
}

func (p *peer) ask(items []Item, group bool, opts ...Option) *acquireCall {
	p.Helper()
	o, err := readOptions("", opts, KeepByRule, "Wait", "Prioritized")
	check(p.T, err)
	c, err := newAcquire(items, group, o)
	check(p.T, err)
	p.session.ask(c, p.now, -1)
	return c
}

func (p *peer) request(flow Flow) *rateCall {
	p.Helper()
	c, err := newRateCall(flow, 1, nil, false, true)
	check(p.T, err)
	p.session.ask(c, p.now, -1)
	return c
}

func (p *peer) connect() {
	p.Helper()
	p.session.connected(p.now, true)
	p.asked()
	equal(p.T, "hangs up", p.answer(welcome), "")
}

func TestWhoIsNotLetInGetsNoCallPastTheServer(t *testing.T) {
	levels := map[Flow]int{ID(111): 5}
	for _, fallback := range []Fallback{FallbackByRule, FallbackLocal, FallbackPass, FallbackFail} {
		p := newPeer(t, Config{Secret: SecretText(secretWords), Fallback: fallback, LocalLevels: levels})
		waits := p.acquire(ID(111))
		p.session.connected(0, true)
		equal(t, "asked", strings.HasPrefix(p.asked()[0], "identify ["+secretWords+"]"), true)
		equal(t, "hangs up", p.answer(denial), "identify refused: PERMISSION: because")
		p.session.disconnected(0, "identify refused: PERMISSION: because")
		p.session.connectFailed(0, "connection refused")
		for _, err := range []error{waits.err, p.acquire(ID(111)).err, p.request(ID(111)).err,
			p.acquire(ID(111), Wait(time.Second)).err} {
			equal(t, "code", as[*PermissionDenied](t, err).Code, 9)
			as[*BadRequest](t, err)
			equal(t, "says", err.Error(), "a:1: identify refused: PERMISSION: because")
		}
		warnings := p.session.takeWarnings()
		equal(t, "warnings", len(warnings), 1)
		contains(t, fmt.Errorf("%s", warnings[0]), "not let in, so calls end at once: a:1: identify")
		p.msgids = nil
		p.session.connected(0, true) // An operator has mended it.
		p.asked()
		equal(t, "hangs up", p.answer(identity, welcome), "")
		p.session.disconnected(0, "it broke")
		p.session.connectFailed(0, "connection refused")
		c := p.acquire(ID(111))
		equal(t, "falls back", c.done && c.err == nil, fallback != FallbackFail)
	}
}

func TestACertificateThatIsNotLetInEndsCalls(t *testing.T) {
	p := newPeer(t, Config{Fallback: FallbackPass})
	waits := p.acquire(ID(1))
	p.session.refusedCertificate(0, "it refuses the client's certificate")
	p.session.connectFailed(0, "it refuses the client's certificate")
	for _, err := range []error{waits.err, p.acquire(ID(1)).err} {
		as[*PermissionDenied](t, err)
		contains(t, err, "a:1: it refuses the client's certificate")
	}
}

func TestACallThatIsNotPermittedIsNotAdmittedByAFallback(t *testing.T) {
	p := newPeer(t, Config{Fallback: FallbackPass})
	p.connect()
	acquire, request := p.acquire(ID(1)), p.request(ID(1))
	for range p.asked() {
		p.answer(failed{9, "PERMISSION", "flow 1"})
	}
	as[*PermissionDenied](t, acquire.err)
	as[*PermissionDenied](t, request.err)
	equal(t, "ready", p.session.ready(), true)
}

func TestASecretDoesNotLeaveOverAPlainConnectionToAnotherHost(t *testing.T) {
	p := newPeer(t, Config{Secret: SecretText(secretWords), Fallback: FallbackPass})
	c := p.acquire(ID(1))
	equal(t, "hangs up", p.session.connected(0, false), plainSecret)
	equal(t, "sent", len(p.session.takeOutput(nil)), 0)
	p.session.disconnected(0, plainSecret)
	as[*BadRequest](t, c.err)
	contains(t, c.err, "a:1: the secret needs TLS")
	if p.session.dialing.at <= 0 {
		t.Fatal("it dials at once")
	}
	plain := newPeer(t, Config{})
	equal(t, "without a secret", plain.session.connected(0, false), "")
}

func TestAServerThatRepeatsTheSecretDoesNotGetItIntoATextOfTheClient(t *testing.T) {
	echo := "there is no " + secretWords
	cutOff := strings.Repeat("x", textBytesMax-5) + secretWords
	for _, answer := range []any{
		failed{9, "PERMISSION", echo}, failed{1, "MALFORMED", echo}, failed{3, "BAD_PARAMS", echo},
		failed{5, "OVERLOADED", echo}, failed{1, secretWords, echo}, failed{1, "MALFORMED", cutOff},
		failed{secretWords, "X", ""}, secretWords, []any{secretWords, 9, secretWords, 0},
		[]any{1, 0, 0, 6, 6, 0, "by " + secretWords},
	} {
		for _, method := range []string{"identify", "hello", "acquire"} {
			p := newPeer(t, Config{Secret: SecretText(secretWords), Fallback: FallbackFail})
			c := p.acquire(ID(1))
			p.session.connected(0, true)
			p.asked()
			switch method {
			case "hello":
				p.answer(identity)
				p.session.withOptions = false // It is not asked once more.
			case "acquire":
				p.answer(identity, welcome)
				p.asked()
			}
			why := p.answer(answer)
			p.session.disconnected(0, why)
			p.session.tick(time.Minute)
			told := fmt.Sprint(c.err, why, p.session.takeWarnings(), p.session.whyOffline)
			if c.err == nil || strings.Contains(told, secretWords[:5]) {
				t.Fatalf("%s answered %v: %q", method, answer, told)
			}
			if refused, isRefused := answer.(failed); isRefused && len(refused) == 3 &&
				refused[2] == echo && method != "acquire" {
				contains(t, c.err, "there is no ...")
			}
		}
	}
}

func TestAReasonForALossDoesNotShowTheSecret(t *testing.T) {
	p := newPeer(t, Config{Secret: SecretText(secretWords), Fallback: FallbackFail})
	p.session.connected(0, true)
	p.asked()
	p.answer(identity, welcome)
	c := p.acquire(ID(1))
	p.asked()
	p.answer(granted1)
	check(t, c.err)
	lost := []any{2, "lost", []any{77, 1, "by " + secretWords}}
	equal(t, "hangs up", p.session.received(encoded(lost), 0), "")
	equal(t, "reason", p.session.takeLost()[0].lostReason, "by ...")
}

func TestAnOlderServerThatKnowsNoSecretsIsTakenAsItIs(t *testing.T) {
	p := newPeer(t, Config{Secret: SecretText(secretWords)})
	p.session.connected(0, true)
	p.asked()
	equal(t, "hangs up", p.answer(failed{2, "UNKNOWN_METHOD", "identify"}, welcome), "")
	equal(t, "ready", p.session.ready(), true)
}

func TestAWrongSecretMayBeAnsweredASecondLater(t *testing.T) {
	p := newPeer(t, Config{Secret: SecretText(secretWords)})
	p.session.connected(0, true)
	equal(t, "wakeup", p.session.wakeup(), 6*time.Second)
	equal(t, "in time", p.session.tick(6*time.Second-1), "")
	equal(t, "too late", p.session.tick(6*time.Second), noHello+tlsOnly)
}

// Flows by name.

func TestANameIsAskedForAsItIs(t *testing.T) {
	p := newPeer(t, Config{Fallback: FallbackFail})
	p.connect()
	c := p.acquire(Name("checkout"))
	p.request(Name("search"))
	p.ask([]Item{{Flow: Name("checkout")}, {Flow: ID(7), Count: 2},
		{Flow: Name("search"), Rate: true}}, true)
	expected := []string{
		"acquire [checkout 1 map[request_id:1001]]",
		"request [search 1]",
		"acquire_all [[[checkout 1] [7 2] [search 1 <nil> 1]] map[request_id:1002]]",
	}
	if came := p.asked(); !reflect.DeepEqual(came, expected) {
		t.Fatalf("%q, not %q", came, expected)
	}
	p.answer(granted1)
	equal(t, "flow", c.value.([]*held)[0].flow, Name("checkout"))
}

func TestARefusalNamesTheFlowAsTheCallerDid(t *testing.T) {
	p := newPeer(t, Config{Fallback: FallbackFail})
	p.connect()
	c := p.acquire(Name("checkout"))
	p.asked()
	p.answer([]any{1, 0, 0, 6, 6, 0, "level"})
	equal(t, "says", c.err.Error(), "flow 'checkout' refused by level: 6 of 6 in progress")
	for _, one := range []struct {
		items  []Item
		number int
		told   Flow
	}{
		{[]Item{{Flow: Name("checkout")}, {Flow: ID(7)}}, 9, Name("checkout")},
		{[]Item{{Flow: Name("checkout")}, {Flow: ID(7)}}, 7, ID(7)},
		{[]Item{{Flow: Name("checkout")}, {Flow: Name("checkout"), Param: "x"}}, 9, Name("checkout")},
		{[]Item{{Flow: Name("checkout")}, {Flow: Name("search")}}, 9, ID(9)},
		{[]Item{{Flow: Name("checkout")}}, 0, ID(0)},
	} {
		c := p.ask(one.items, true)
		p.asked()
		p.answer([]any{1, []any{}, "level", one.number, 1, 1})
		equal(t, "flow", as[*Refused](t, c.err).Flow, one.told)
	}
}

func TestTheRuleOfANameIsAskedForByNameAndItsShareIsKnown(t *testing.T) {
	p := newPeer(t, Config{})
	p.connect()
	c := p.acquire(Name("checkout"))
	equal(t, "asked", p.asked()[0], "rules_list [<nil> 2 <nil> checkout]")
	rule := map[string]any{"resource": "checkout", "count": 2.0, "clusterConfig": map[string]any{
		"flowId": int64(7119573550062657), "fallbackToLocalWhenFail": true, "thresholdType": 1}}
	p.answer([]any{[]any{rule}, nil}, granted1)
	equal(t, "granted", c.err, nil)
	p.session.disconnected(0, "it broke")
	p.session.connectFailed(0, "connection refused")
	equal(t, "local", p.acquire(Name("checkout")).value.([]*held)[0].local, true)
	contains(t, p.acquire(Name("checkout")).err,
		"flow 'checkout' refused by the local share: 2 of 2 in progress")
}
