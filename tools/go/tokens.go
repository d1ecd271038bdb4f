package nowcalls

import "fmt"

// The part of a session that looks after its tokens.

// lookAfterAll loses the tokens whose time is over, and does what is due for the others.
func (s *session) lookAfterAll(now instant) {
	if now >= s.held.contactUntil(s.contact) {
		for _, h := range s.held.all() {
			if now >= h.contactUntil() {
				s.lose(h, h.reason(), stateLost, now)
			}
		}
	}
	for h := s.held.takeDue(now); h != nil; h = s.held.takeDue(now) {
		s.lookAfter(h, now)
	}
}

// lookAfter keeps a token that is held for long, or ends it as its rule says.
func (s *session) lookAfter(h *held, now instant) {
	switch {
	case h.foundLost || now >= h.validUntil():
		s.lose(h, h.reason(), stateLost, now)
	case now >= h.releaseAt():
		s.lose(h, "resource_timeout", stateReleasing, now)
		s.submit(newRelease(h, OutcomeTimeout), now)
		s.cancelStray(h, now)
	case now >= h.keepAt && s.ready():
		s.keep(h, now)
	default:
		if now >= h.keepAt {
			h.keepAt = never // The next connection begins with a keep.
		}
		s.held.plan(h)
	}
}

func (s *session) keep(h *held, now instant) {
	c := newKeep(h)
	h.keepAt = never // Until it is answered.
	s.held.plan(h)
	s.send(c, now)
}

// lose: stateLost says that the server was not asked, so the release of its owner is still sent.
func (s *session) lose(h *held, reason string, state heldState, now instant) {
	if !s.held.remove(h) {
		return
	}
	s.fallback.leave(h)
	h.lostReason = reason
	h.state = state
	h.tellLost()
	s.lost = append(s.lost, h)
	s.counts.Lost++
	if state == stateEnded {
		s.cancelStray(h, now)
	}
}

// ping asks for a sign of life. Any byte of the server counts as one.
func (s *session) ping(now instant) {
	s.contact.pinged(now)
	c := newPing()
	c.repeatable = false
	s.send(c, now)
}

func whyLost(h *held) string {
	byRule := h.keep == KeepByRule && h.terms != nil && h.terms.strategy == 0
	if h.lostReason == "resource_timeout" && byRule {
		return fmt.Sprintf("its call took longer than the %d ms that its rule holds a token "+
			"(resourceTimeoutStrategy 0); set resourceTimeoutStrategy 2 in the rule, or ask to "+
			"keep it always", h.holdMs)
	}
	if h.lostReason == "" {
		return "it had ended"
	}
	return h.lostReason
}
