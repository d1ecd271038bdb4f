package nowcalls

import (
	"sort"
	"time"
)

// KeepMode says whether a permit is kept in the background once a third of its hold is over.
type KeepMode string

const (
	// KeepByRule: as the rule's resourceTimeoutStrategy says. 0: not kept; 1: released at
	// resourceTimeout, and lost; 2: kept.
	KeepByRule KeepMode = "rule"
	// KeepAlways: kept, whatever the rule says.
	KeepAlways KeepMode = "always"
	// KeepOff: not kept.
	KeepOff KeepMode = "off"
)

type heldState int

const (
	stateHeld heldState = iota
	// stateLost: by this client's own clock, so the server is still to be told when the owner lets
	// go.
	stateLost
	stateReleasing
	stateEnded
)

const (
	strategyReleases = 1 // resourceTimeoutStrategy.
	strategyKeeps    = 2
	keepPauseMs      = 10 // Between two keeps of a token, whatever hold a server tells.
	marginMs         = 2  // And a hundredth of the span.
	releaseMarginMs  = 50 // So that the server does not count a release as late.
)

// terms is what a rule says of its tokens.
type terms struct {
	strategy          uint64
	resourceTimeoutMs int64
	offlineMs         int64
}

// stray has the live tokens of an acquire of which an attempt may still arrive.
type stray struct {
	requestID uint64
	tokens    map[uint64]bool
}

// span is a time of the server that a client counts on.
func span(ms int64) time.Duration { return millis(ms - ms/100 - marginMs) }

// held is a token of a session, or a local stand-in.
//
// A token is surely the client's until validUntil, by the client's own clock:
//
//	min(sent time of the last confirmed grant or keep + hold,
//	    sent time of the latest request that was answered + clientOfflineTime), less a margin
type held struct {
	flow            Flow
	count           int
	param           any
	tokenID         uint64
	fence           uint64
	holdMs          int64
	nowCalls, level uint64
	local           bool
	wait            time.Duration // Before the call; of a group with rates that was not to sleep.
	terms           *terms
	keep            KeepMode
	onLost          func(*Permit)
	stray           *stray
	state           heldState
	toldLost        bool // By the session.
	foundLost       bool // By whoever asked first.
	owned           bool // Its program has not let go.
	dropped         bool // Its program forgot the permit, rather than to release it.
	lostReason      string
	lostSignal      chan struct{} // Closed once it is lost.
	signalled       bool
	grantedAt       instant
	confirmedAt     instant
	keepAt          instant // When to keep it next.
	dueAt           instant // When to look after it, unless contact ends before.
	contact         *contact
}

func newHeld(flow Flow, count int, param any, c *contact) *held {
	return &held{flow: flow, count: count, param: param, keep: KeepOff, contact: c,
		lostSignal: make(chan struct{}), keepAt: never, dueAt: never}
}

func (h *held) holdUntil() instant {
	if h.local {
		return never
	}
	return after(h.confirmedAt, span(h.holdMs))
}

func (h *held) contactUntil() instant {
	if h.local || h.terms == nil {
		return never
	}
	return after(h.contact.at, span(h.terms.offlineMs))
}

func (h *held) validUntil() instant { return earliest(h.holdUntil(), h.contactUntil()) }

// lost is final: once it has been true, no answer of the server makes it false.
func (h *held) lost() bool {
	if h.state == stateHeld && h.contact.clock() >= h.validUntil() {
		h.foundLost = true
	}
	if h.toldLost || h.foundLost {
		h.signal()
		return true
	}
	return false
}

// tellLost says that the token has ended, or that this client cannot be sure of it any more.
func (h *held) tellLost() {
	h.toldLost = true
	h.signal()
}

func (h *held) signal() {
	if !h.signalled {
		h.signalled = true
		close(h.lostSignal)
	}
}

func (h *held) reason() string {
	if h.toldLost || h.local {
		return h.lostReason
	}
	if h.holdUntil() <= h.contactUntil() {
		return "resource_timeout"
	}
	return "client_offline"
}

// open tells whether the server, or the fallback, is still to be told that its owner let go.
func (h *held) open() bool { return h.state == stateHeld || h.state == stateLost }

func (h *held) isKept() bool {
	if h.keep == KeepByRule {
		return h.terms == nil || h.terms.strategy == strategyKeeps
	}
	return h.keep == KeepAlways
}

// releaseAt is when the client is to release it: a little before the rule's resourceTimeout.
func (h *held) releaseAt() instant {
	if h.keep != KeepByRule || h.terms == nil || h.terms.strategy != strategyReleases {
		return never
	}
	ms := h.terms.resourceTimeoutMs
	if margin := ms / 10; margin < releaseMarginMs {
		ms -= margin
	} else {
		ms -= releaseMarginMs
	}
	return after(h.grantedAt, millis(ms))
}

func (h *held) planKeep(since instant) {
	h.keepAt = never
	if h.isKept() {
		pause := h.holdMs/3 + 1
		if pause < keepPauseMs {
			pause = keepPauseMs
		}
		h.keepAt = after(since, millis(pause))
	}
}

// heldTokens are those of the server, and when to look after each.
type heldTokens struct {
	tokens  map[uint64]*held
	due     agenda[*held] // Most entries are outdated.
	offline map[int64]int // Tokens by their clientOfflineTime.
	lowest  int64         // The smallest clientOfflineTime; -1: none is known.
}

func newHeldTokens() *heldTokens {
	return &heldTokens{tokens: map[uint64]*held{}, offline: map[int64]int{}, lowest: -1}
}

func (t *heldTokens) find(tokenID uint64) *held { return t.tokens[tokenID] }

// all are sorted by their token ids.
func (t *heldTokens) all() []*held {
	all := make([]*held, 0, len(t.tokens))
	for _, one := range t.tokens {
		all = append(all, one)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].tokenID < all[j].tokenID })
	return all
}

func (t *heldTokens) add(h *held) {
	t.tokens[h.tokenID] = h
	t.tally(h, 1)
}

func (t *heldTokens) remove(h *held) bool {
	if t.tokens[h.tokenID] != h {
		return false
	}
	delete(t.tokens, h.tokenID)
	t.tally(h, -1)
	return true
}

func (t *heldTokens) changeTerms(h *held, to *terms) {
	t.tally(h, -1)
	h.terms = to
	t.tally(h, 1)
}

// contactUntil is when the first token is lost unless there is contact.
func (t *heldTokens) contactUntil(c *contact) instant {
	if t.lowest < 0 {
		return never
	}
	return after(c.at, span(t.lowest))
}

// plan looks after it when its next moment comes.
func (t *heldTokens) plan(h *held) {
	h.dueAt = earliest(h.keepAt, h.releaseAt(), h.holdUntil())
	t.due.add(h.dueAt, h.tokenID, h)
	t.due.keepOnly(t.isCurrent, len(t.tokens))
}

func (t *heldTokens) nextAt() instant {
	for !t.due.empty() && !t.isCurrent(t.due.first()) {
		t.due.pop()
	}
	if t.due.empty() {
		return never
	}
	return t.due.first().at
}

// takeDue returns one whose moment has come, or nil. It must be planned again, or removed.
func (t *heldTokens) takeDue(now instant) *held {
	if t.nextAt() > now {
		return nil
	}
	return t.due.pop().what
}

func (t *heldTokens) isCurrent(e entry[*held]) bool {
	return t.tokens[e.number] == e.what && e.what.dueAt == e.at
}

func (t *heldTokens) tally(h *held, change int) {
	if h.terms == nil {
		return
	}
	ms := h.terms.offlineMs
	before := t.offline[ms]
	if before+change > 0 {
		t.offline[ms] = before + change
	} else {
		delete(t.offline, ms)
	}
	if change > 0 && (t.lowest < 0 || ms < t.lowest) {
		t.lowest = ms
	}
	if before+change == 0 && ms == t.lowest {
		t.lowest = -1
		for other := range t.offline {
			if t.lowest < 0 || other < t.lowest {
				t.lowest = other
			}
		}
	}
}
