package nowcalls

import (
	"fmt"
	"time"
)

const (
	rulesAskedMax = 64
	retryPause    = 10 * time.Millisecond // Doubled with each refusal, 6 times at most.
)

// Refusals that time does not undo. Words of later servers are none of them.
var finalRefusals = map[string]bool{
	"": true, "draining": true, "queue_timeout": true, "cancelled": true, "superseded": true,
	"request_id": true, "over_level": true, "rate": true,
}

// The half of a session that asks calls, and makes outcomes of answers, refusals and silence.

// ask asks a call, now or on the next connection. Its outcome is set later, or within.
// timeout: negative is that of the client.
func (s *session) ask(c asked, now instant, timeout time.Duration) {
	s.begin(c, now, timeout)
	switch c := c.(type) {
	case *acquireCall:
		c.requestID = s.requestIDs()
		c.startedAt = now
		if s.fallback.followsRules() {
			for _, item := range c.items {
				s.askRule(item.Flow, now)
			}
		}
	case *rateCall:
		if s.fallback.active() {
			s.askRule(c.flow, now)
		}
	}
	s.submit(c, now)
}

// abandon ends a call whose caller will not take its outcome: a permit is given back.
func (s *session) abandon(c asked, now instant) {
	b := c.base()
	b.left = true
	s.giveUp(c, now, "its caller left")
	tokens, _ := b.value.([]*held)
	b.value = nil
	for _, h := range tokens {
		if h != nil {
			s.drop(h, now)
		}
	}
}

// release gives a token back. A second time it only says whether the token was lost.
func (s *session) release(c *releaseCall, now instant, timeout time.Duration) {
	s.begin(c, now, timeout)
	s.letGo(c, now)
	if c.leaves && !s.ready() {
		s.giveUp(c, now, s.whyOffline)
	}
}

// drop gives back a token of which nobody waits for the end.
func (s *session) drop(h *held, now instant) {
	if !h.open() {
		return
	}
	if h.dropped {
		s.warn("token %d of flow %s was dropped, so it is released", h.tokenID, h.flow)
	}
	s.letGo(newRelease(h, OutcomeOK), now)
}

func (s *session) begin(c asked, now instant, timeout time.Duration) {
	b := c.base()
	if timeout < 0 {
		timeout = s.config.timeout
	}
	b.deadline = after(now, timeout+b.patience)
	s.calls.begin(c)
}

func (s *session) letGo(c *releaseCall, now instant) {
	h := c.held
	if !h.open() {
		s.calls.settle(c, !h.lost(), nil)
		return
	}
	if h.state == stateHeld && (h.foundLost || now >= h.validUntil()) {
		s.lose(h, h.reason(), stateLost, now)
	}
	h.onLost = nil // Nobody is to be told.
	h.owned = false
	if h.local {
		h.state = stateEnded
		s.fallback.leave(h)
		s.calls.settle(c, true, nil)
		return
	}
	h.state = stateReleasing
	if s.held.remove(h) {
		s.fallback.leave(h)
	}
	s.submit(c, now)
	s.cancelStray(h, now) // Behind the release.
}

// Sending.

func (s *session) submit(c asked, now instant) {
	b := c.base()
	switch {
	case s.ended != "":
		s.calls.settle(c, nil, b.noAnswer(s.ended))
	case s.closing && b.wantsRoom:
		s.calls.settle(c, nil, badRequest("the client is closed"))
	case s.closing && !b.persistent:
		s.calls.settle(c, nil, b.noAnswer("the client is closed"))
	case s.ready():
		s.send(c, now)
	case s.denied != nil && b.wantsRoom:
		s.fail(c, s.denied, now)
	case s.fallsBackAtOnce(c, now):
		s.fail(c, b.noAnswer(s.whyOffline), now)
	default:
		s.calls.queue(c)
	}
}

func (s *session) send(c asked, now instant) {
	if release, isRelease := c.(*releaseCall); isRelease && !s.withOptions {
		release.forgetOutcome() // An older server would refuse it.
	}
	b := c.base()
	msgid, err := s.exchange.request(b.method, c.params(now))
	if err != nil {
		s.fail(c, err, now)
		return
	}
	s.calls.sent(msgid, c)
	b.attempts++
	b.unsettled = true
	b.sentAt = now
}

// Answers.

// answered returns wrong for what no server answers.
func (s *session) answered(c asked, failure, result any, now instant) error {
	b := c.base()
	var value any
	var err error
	if failure != nil {
		err = errorOf(failure)
	} else {
		if b.wantsRoom { // Its words say what refused.
			result = s.masked(result)
		}
		value, err = c.decode(result)
	}
	if rules, isRules := c.(*ruleCall); isRules {
		seen, _ := value.(flowRules)
		s.ruleAnswered(rules, seen, now)
		return nil
	}
	if _, isWrong := err.(*wrong); isWrong {
		return err
	}
	switch err {
	case errAskAgain:
		b.unsettled = false
		if !b.done {
			s.calls.queue(c)
		}
		return nil
	case errTokenGone:
		b.strayed = true
		err = &Unavailable{b.method + ": a token ended before its answer came"}
	}
	if acquire, isAcquire := c.(*acquireCall); isAcquire && err == nil {
		return s.granted(acquire, value.(granted), now)
	}
	b.unsettled = false
	s.settled(c, value, err, now)
	return nil
}

// settled: the answer of a call, but a grant, was understood.
func (s *session) settled(c asked, value any, err error, now instant) {
	switch c := c.(type) {
	case *acquireCall:
		s.refused(c, err, now)
	case *keepCall:
		renewed, _ := value.(*kept)
		s.kept(c, renewed, err, now)
	case *releaseCall:
		c.held.state = stateEnded
		was, _ := value.(bool)
		if err == nil && !was && !c.held.lost() {
			c.held.tellLost()
			s.counts.Lost++
		}
		s.calls.settle(c, was && !c.held.lost(), err)
	case *rateCall:
		if err != nil {
			s.fail(c, err, now)
			return
		}
		passed := value.(Rate)
		c.passed = &passed
		s.settleAt(after(now, passed.Wait), c, c.sleep, now)
	default:
		if err != nil {
			s.fail(c, err, now)
		} else {
			s.calls.settle(c, value, nil)
		}
	}
}

func (s *session) granted(c *acquireCall, got granted, now instant) error {
	tokens := map[uint64]bool{}
	for _, one := range got.grants {
		if one.tokenID == 0 {
			continue
		}
		if !c.done && (tokens[one.tokenID] || s.held.find(one.tokenID) != nil) {
			return wrongly("an acquire was answered with a token that is held already")
		}
		tokens[one.tokenID] = true
	}
	c.unsettled = false
	if c.done {
		return nil // Given up: its cancel is on the way behind it.
	}
	for _, one := range got.grants {
		c.waitUntil = latest(c.waitUntil, after(now, one.wait))
	}
	if !c.confirmed && s.isLate(c, got.grants, now) {
		c.confirmed = true // What is left of its hold is better known by a second answer.
		s.send(c, now)
		return nil
	}
	var left *stray
	if c.strayed && len(tokens) > 0 {
		left = &stray{c.requestID, tokens}
	}
	for i, one := range got.grants {
		if one.tokenID != 0 {
			s.hold(c, c.items[i], one, got, left)
		}
	}
	s.settleAt(c.waitUntil, c, c.sleep, now)
	return nil
}

// hold takes a token that was granted.
func (s *session) hold(c *acquireCall, item Item, one grant, got granted, left *stray) {
	h := s.newHeld(c, item)
	h.tokenID, h.fence, h.holdMs, h.terms = one.tokenID, one.fence, one.holdMs, one.terms
	h.nowCalls, h.level = got.nowCalls, got.level
	h.grantedAt, h.confirmedAt = c.sentAt, c.sentAt
	h.stray = left
	h.planKeep(c.sentAt)
	s.held.add(h)
	s.held.plan(h)
	s.fallback.enter(h)
	c.granted = append(c.granted, h)
}

// settleAt settles a call that passed: when its caller need not sleep any more, if it is to.
func (s *session) settleAt(at instant, c asked, sleep bool, now instant) {
	b := c.base()
	if sleep && now < at && at <= b.deadline {
		b.wakeAt = at
		s.doLater(at, func(then instant) { s.settlePassed(c, then) })
	} else {
		s.settlePassed(c, now)
	}
}

func (s *session) settlePassed(c asked, now instant) {
	b := c.base()
	if b.done {
		return
	}
	if rate, isRate := c.(*rateCall); isRate {
		passed := *rate.passed
		if b.wakeAt != never {
			passed.Wait = latest(0, b.wakeAt-now)
		}
		s.calls.settle(c, passed, nil)
		return
	}
	acquire := c.(*acquireCall)
	tokens := acquire.granted
	acquire.granted = nil
	taken := make([]*held, len(acquire.items))
	for i, item := range acquire.items {
		if !item.Rate {
			taken[i], tokens = tokens[0], tokens[1:]
			taken[i].wait = latest(0, acquire.waitUntil-now)
		}
	}
	s.calls.settle(c, taken, nil)
}

// isLate tells whether less than half of a token's validity may be left, since the acquire waited.
func (s *session) isLate(c *acquireCall, grants []grant, now instant) bool {
	for _, one := range grants {
		if one.tokenID != 0 && (now-c.sentAt)*2 > span(one.holdMs) {
			return true
		}
		if one.terms != nil && (now-s.contact.at)*2 > span(one.terms.offlineMs) {
			return true
		}
	}
	return false
}

func (s *session) newHeld(c *acquireCall, item Item) *held {
	h := newHeld(item.Flow, item.Count, item.Param, s.contact)
	h.onLost = c.onLost
	h.keep = c.keep
	h.owned = true
	return h
}

func (s *session) kept(c *keepCall, renewed *kept, err error, now instant) {
	h := c.held
	switch {
	case h.state != stateHeld || s.held.find(h.tokenID) != h:
		renewed = nil // To its owner a token that is lost stays lost.
	case err != nil:
		h.planKeep(now)
		s.held.plan(h)
	case renewed == nil:
		s.lose(h, "", stateEnded, now)
	case c.sentAt < h.confirmedAt:
		s.counts.Kept++ // Answers may cross: a later keep has told what holds.
	default:
		h.holdMs, h.confirmedAt = renewed.holdMs, c.sentAt
		if renewed.terms != nil { // An older server tells none: those of before hold.
			s.held.changeTerms(h, renewed.terms)
		}
		s.counts.Kept++
		h.planKeep(c.sentAt)
		s.held.plan(h)
	}
	s.calls.settle(c, renewed, err)
}

func (s *session) doLater(at instant, what func(instant)) {
	s.laterNumber++
	s.later.add(at, s.laterNumber, what)
}

// The client's half of rules.

// askRule asks for a rule that is not known or old. False: it is known, or too many are asked.
func (s *session) askRule(flow Flow, now instant) bool {
	if _, isAsked := s.rulesAsked[flow]; isAsked {
		return true
	}
	isNone := flow.name == "" && flow.id < 1
	if len(s.rulesAsked) >= rulesAskedMax || isNone || !s.rules.isStale(flow, now) {
		return false
	}
	s.rulesAsked[flow] = nil
	s.submit(newRuleCall(flow), now)
	return true
}

func (s *session) ruleAnswered(c *ruleCall, rules flowRules, now instant) {
	c.unsettled = false
	s.rules.learn(c.flow, rules, now)
	waiting := s.rulesAsked[c.flow]
	delete(s.rulesAsked, c.flow)
	for _, acquire := range waiting {
		if !acquire.done {
			s.tryAgain(acquire, now)
		}
	}
}

func (s *session) refused(c *acquireCall, err error, now instant) {
	refused, isRefused := err.(*Refused)
	isFinal := !isRefused || refused.Status != statusBlocked || finalRefusals[refused.RefusedBy]
	if isFinal || !c.prioritized {
		s.fail(c, err, now)
		return
	}
	if c.done {
		return
	}
	c.refusal = refused
	if s.askRule(refused.Flow, now) {
		s.rulesAsked[refused.Flow] = append(s.rulesAsked[refused.Flow], c)
	} else {
		s.tryAgain(c, now)
	}
}

// tryAgain does as the rule says of prioritized acquires that are refused.
//
// No attempt is made that leaves no time for its answer: the refusal would become an unknown
// outcome, and a fallback could grant.
func (s *session) tryAgain(c *acquireCall, now instant) {
	flow := c.refusal.Flow
	seen := s.rules.find(flow, c.isByValue(flow))
	strategy := int64(0)
	if seen != nil {
		strategy = seen.acquireRefuse
	}
	allowed := strategy == untilDeadline || (strategy == onceMore && c.refusals == 0)
	doublings := c.refusals
	if doublings > 6 {
		doublings = 6
	}
	pause := s.uniform(time.Millisecond, retryPause<<doublings)
	answer := latest(20*time.Millisecond, 2*(now-c.sentAt))
	if !allowed || after(now, pause+answer) > c.deadline {
		s.fail(c, c.refusal, now)
		return
	}
	c.refusals++
	s.doLater(after(now, pause), func(then instant) {
		if !c.done {
			s.submit(c, then)
		}
	})
}

// No answer.

// giveUp sets the outcome of a call whose time is over. It cancels an acquire that was sent.
func (s *session) giveUp(c asked, now instant, reason string) {
	b := c.base()
	if b.done {
		return
	}
	if b.wakeAt != never && !b.left {
		s.settlePassed(c, now) // It slept, and its calls are counted.
		return
	}
	err := b.noAnswer(reason)
	wasSent := b.unsettled
	if !b.persistent {
		s.calls.dequeue(c)
	}
	if acquire, isAcquire := c.(*acquireCall); isAcquire {
		if wasSent {
			b.strayed = true
		} else if acquire.refusal != nil {
			err = acquire.refusal
		}
		for _, h := range acquire.granted {
			s.drop(h, now)
		}
	}
	s.fail(c, err, now)
	silent := wasSent && s.contact.heardAt <= b.sentAt
	if s.ready() && silent && !s.contact.probes() {
		s.ping(now)
	}
}

// fail sets the outcome of a call that got no answer, or an error, as the fallback has it.
func (s *session) fail(c asked, err error, now instant) {
	b := c.base()
	if b.done {
		return
	}
	acquire, isAcquire := c.(*acquireCall)
	if isAcquire && (b.strayed || acquire.confirmed) {
		// An attempt that arrives only now would be granted to nobody; a grant that came late is
		// there.
		s.cancel(acquire.requestID, now)
	}
	if !s.fallsBack(c, err) {
		s.calls.settle(c, nil, err)
		return
	}
	var value any
	var refused error
	if isAcquire {
		value, refused = s.fallback.decideAcquire(acquire, s.sessionsOnline, now, s.newHeld)
	} else {
		value, refused = s.fallback.decideRate(c.(*rateCall), s.sessionsOnline, now)
	}
	switch refused {
	case nil:
		s.calls.settle(c, value, nil)
	case errUnknownRule:
		s.calls.settle(c, nil, err)
	default:
		s.calls.settle(c, nil, refused)
	}
}

func (s *session) fallsBack(c asked, err error) bool {
	b := c.base()
	if !b.wantsRoom || b.left || s.closing || !s.fallback.active() {
		return false
	}
	if s.denied != nil || s.identifyMsgid != 0 {
		return false
	}
	switch e := err.(type) {
	case *Refused:
		return e.Status == statusTooManyRequest || e.Status == statusFail
	case *Unavailable, *OutcomeUnknown:
		return true
	}
	return false
}

func (s *session) fallsBackAtOnce(c asked, now instant) bool {
	noServer := s.down && s.identifyMsgid == 0
	return noServer && s.fallback.active() && c.base().wantsRoom && !c.mayWait(now)
}

func (s *session) cancel(requestID uint64, now instant) {
	s.counts.Cancelled++
	s.submit(newCancel(requestID), now)
}

// cancelStray: when the last token of an acquire ends, an attempt that arrives later is cancelled.
func (s *session) cancelStray(h *held, now instant) {
	left := h.stray
	h.stray = nil
	if left == nil {
		return
	}
	delete(left.tokens, h.tokenID)
	if len(left.tokens) == 0 {
		s.cancel(left.requestID, now)
	}
}

func (s *session) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}
