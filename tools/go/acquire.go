package nowcalls

import (
	"fmt"
	"time"
)

// grant is what an acquire was answered for one item. tokenID is 0 for a rate.
type grant struct {
	tokenID uint64
	fence   uint64
	holdMs  int64
	terms   *terms
	wait    time.Duration
}

type granted struct {
	grants          []grant
	nowCalls, level uint64
}

// acquireCall asks under a request id of its own, so that asking again gives the same token. It is
// for one item, or a group: for one token for each item that is no rate, of all or of none.
// Value: []*held, nil for a rate.
type acquireCall struct {
	call
	items       []Item
	group       bool
	requestID   uint64  // Set by the session.
	startedAt   instant // The same. The wait is counted over all attempts.
	wait        time.Duration
	hasWait     bool
	prioritized bool
	holdMs      int64
	keep        KeepMode
	onLost      func(*Permit)
	sleep       bool
	refusals    int
	refusal     *Refused // The last one after which it was asked once more.
	confirmed   bool     // It was granted late, and asked again for what is left of its hold.
	waitUntil   instant  // When the calls of its rates may be made.
	granted     []*held  // Its tokens, until its caller has them.
}

func newAcquire(items []Item, group bool, o options) (*acquireCall, error) {
	c := &acquireCall{call: newCall("acquire"), group: group, prioritized: o.prioritized,
		keep: o.keep, onLost: o.onLost, sleep: !o.noSleep, wait: o.wait, hasWait: o.hasWait}
	c.wantsRoom, c.patience = true, o.wait
	if group {
		c.method = "acquire_all"
		c.repeatable = false // A repeat of rates alone takes anew.
		if len(items) < 1 || len(items) > itemsMax {
			return nil, badRequest("acquire_all takes 1 to %d items, not %d", itemsMax, len(items))
		}
	}
	for _, item := range items {
		item, err := item.checked()
		if err != nil {
			return nil, err
		}
		c.items = append(c.items, item)
		c.repeatable = c.repeatable || !item.Rate
	}
	return c, nil
}

func (c *acquireCall) isByValue(flow Flow) bool {
	for _, item := range c.items {
		if item.Flow == flow && item.Param != nil {
			return true
		}
	}
	return false
}

func (c *acquireCall) mayWait(now instant) bool {
	return c.hasWait && now < after(c.startedAt, c.wait)
}

func (c *acquireCall) params(now instant) []any {
	if !c.group {
		item := c.items[0]
		return []any{item.Flow, item.Count, c.options(now, item.Param)}
	}
	asked := make([]any, len(c.items))
	for i, item := range c.items {
		one := []any{item.Flow, item.Count}
		if item.Rate {
			one = append(one, item.Param, 1)
		} else if item.Param != nil {
			one = append(one, item.Param)
		}
		asked[i] = one
	}
	return []any{asked, c.options(now, nil)}
}

func (c *acquireCall) options(now instant, param any) []option {
	var asked []option
	if c.prioritized {
		asked = append(asked, option{"prioritized", true})
	}
	if c.hasWait {
		// A repeated acquire without wait would lose its place in the queue.
		left := int64(0)
		if c.wait > 0 {
			until := after(c.startedAt, c.wait) - now
			left = int64((until + time.Millisecond - 1) / time.Millisecond)
			if left < 1 {
				left = 1
			}
		}
		asked = append(asked, option{"wait_ms", left})
	}
	asked = append(asked, option{"request_id", c.requestID})
	if c.holdMs > 0 {
		asked = append(asked, option{"hold_ms", c.holdMs})
	}
	if param != nil {
		asked = append(asked, option{"param", param})
	}
	return asked
}

func (c *acquireCall) decode(result any) (any, error) {
	if c.group {
		return c.decodeGroup(result)
	}
	read := readArray("an answer", result, 7)
	status := read.int(0, "status")
	nowCalls, level := read.uint(3, "now_calls"), read.uint(4, "level")
	switch {
	case read.err != nil:
		return nil, read.err
	case status == statusOK:
		one := read.grant(c.items[0], 1, 2, 5, 8)
		return granted{[]grant{one}, nowCalls, level}, read.err
	case status == statusNotAvailable:
		return nil, errAskAgain
	}
	refusedBy := read.textOrNil(6, "refused_by")
	if read.err != nil {
		return nil, read.err
	}
	return nil, refusal(c.items[0].Flow, status, refusedBy, nowCalls, level)
}

func (c *acquireCall) decodeGroup(result any) (any, error) {
	read := readArray("an answer", result, 6)
	status := read.int(0, "status")
	nowCalls, level := read.uint(4, "now_calls"), read.uint(5, "level")
	switch {
	case read.err != nil:
		return nil, read.err
	case status == statusOK:
		grants, err := c.decodeTokens(read.parts[1])
		return granted{grants, nowCalls, level}, err
	case status == statusNotAvailable:
		return nil, errAskAgain
	}
	refusedBy, flow := read.textOrNil(2, "refused_by"), read.int(3, "flow_id")
	if read.err != nil {
		return nil, read.err
	}
	if refusedBy == "request_id" && c.attempts > 1 {
		return nil, errTokenGone
	}
	return nil, refusal(c.askedFor(flow), status, refusedBy, nowCalls, level)
}

func (c *acquireCall) decodeTokens(value any) ([]grant, error) {
	tokens := readArray("tokens", value, 0)
	if tokens.err != nil {
		return nil, tokens.err
	}
	if len(tokens.parts) != len(c.items) {
		return nil, wrongly("%d tokens for %d items", len(tokens.parts), len(c.items))
	}
	grants := make([]grant, len(c.items))
	for i, item := range c.items {
		read := readArray("a token", tokens.parts[i], 3)
		grants[i] = read.grant(item, 0, 1, 2, 3)
		if read.err != nil {
			return nil, read.err
		}
	}
	return grants, nil
}

// grant reads what an answer has of an item, at these places.
func (a *answer) grant(item Item, tokenID, fence, hold, terms int) grant {
	id := a.uint(tokenID, "token_id")
	if item.Rate {
		if id != 0 {
			a.fail("the token of a rate", a.parts[tokenID])
		}
		return grant{wait: millis(a.hold(hold))}
	}
	if id == 0 || id > 1<<63-1 {
		a.fail("token_id", a.parts[tokenID])
	}
	return grant{id, a.uint(fence, "fence"), a.hold(hold), a.terms(terms), 0}
}

// askedFor is the name that was asked for, where the number of a refusal leaves no doubt.
func (c *acquireCall) askedFor(flowID int64) Flow {
	names := map[Flow]bool{}
	var name Flow
	for _, item := range c.items {
		if item.Flow == ID(flowID) {
			return item.Flow
		}
		if item.Flow.name != "" {
			names[item.Flow], name = true, item.Flow
		}
	}
	if len(names) == 1 && flowID != 0 {
		return name
	}
	return ID(flowID)
}

func (c *acquireCall) String() string {
	return fmt.Sprintf("%s %d", c.method, c.requestID)
}
