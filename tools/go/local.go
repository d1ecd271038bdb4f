package nowcalls

import (
	"errors"
	"fmt"
	"time"
)

const windowsMax = 10_000

// key is what counts of its own: values of different types are different.
type key struct {
	flow  Flow
	param any
}

// errUnknownRule: nothing is known that could limit the flow.
var errUnknownRule = errors.New("no rule was seen")

// fallback decides of calls that no server answers, or that it cannot take: it admits up to this
// process's share of a limit, as mode says.
//
// It counts the calls in progress of this session, under tokens of the server and local ones, and
// local calls a second in one window that begins anew when it is over.
type fallback struct {
	mode                     Fallback
	granted, refused, passed uint64
	rules                    *ruleBook
	configured               map[Flow]int
	inProgress               map[key]int64
	windows                  map[key]window
}

type window struct {
	begin instant
	calls int64
}

func newFallback(mode Fallback, levels map[Flow]int, rules *ruleBook) *fallback {
	return &fallback{mode: mode, rules: rules, configured: levels,
		inProgress: map[key]int64{}, windows: map[key]window{}}
}

func (f *fallback) active() bool { return f.mode != FallbackFail }
func (f *fallback) followsRules() bool {
	return f.mode == FallbackByRule || f.mode == FallbackLocal
}

// Calls in progress.

func (f *fallback) enter(h *held) { f.inProgress[key{h.flow, h.param}] += int64(h.count) }

func (f *fallback) leave(h *held) {
	k := key{h.flow, h.param}
	if left := f.inProgress[k] - int64(h.count); left > 0 {
		f.inProgress[k] = left
	} else {
		delete(f.inProgress, k)
	}
}

// Decisions.

// decideAcquire returns local tokens, nil for a rate; or a Refused, or errUnknownRule: there is no
// fallback.
func (f *fallback) decideAcquire(
	c *acquireCall, sessions uint64, now instant, make func(*acquireCall, Item) *held,
) ([]*held, error) {
	var taken []*held
	for _, item := range c.items {
		one, err := f.take(c, item, sessions, now, make)
		if err != nil {
			for i, before := range taken {
				f.giveBack(c.items[i], before)
			}
			return nil, err
		}
		taken = append(taken, one)
	}
	return taken, nil
}

// decideRate is the same for calls a second.
func (f *fallback) decideRate(c *rateCall, sessions uint64, now instant) (Rate, error) {
	values := c.values
	if values == nil {
		values = []any{nil}
	}
	for i, value := range values {
		err := f.pass(Item{c.flow, c.count, value, true}, sessions, now)
		if err != nil {
			for _, before := range values[:i] {
				f.giveBack(Item{c.flow, c.count, before, true}, nil)
			}
			return Rate{}, err
		}
	}
	return Rate{Remaining: -1}, nil
}

func (f *fallback) take(
	c *acquireCall, item Item, sessions uint64, now instant, make func(*acquireCall, Item) *held,
) (*held, error) {
	if item.Rate {
		return nil, f.pass(item, sessions, now)
	}
	share, limited, err := f.share(item, sessions)
	if err != nil {
		return nil, err
	}
	before := f.inProgress[key{item.Flow, item.Param}]
	if err := f.judge(item, before, share, limited, "level"); err != nil {
		return nil, err
	}
	h := make(c, item)
	h.local = true
	h.nowCalls, h.level = uint64(before+int64(item.Count)), uint64(share)
	f.enter(h)
	return h, nil
}

func (f *fallback) pass(item Item, sessions uint64, now instant) error {
	share, limited, err := f.share(item, sessions)
	if err != nil {
		return err
	}
	k := key{item.Flow, item.Param}
	current, counted := f.windows[k]
	if !counted || now-current.begin >= f.windowOf(item) {
		current = window{begin: now}
	}
	limit := "rate"
	if item.Param != nil {
		limit = "param"
	}
	if err := f.judge(item, current.calls, share, limited, limit); err != nil {
		return err
	}
	if len(f.windows) >= windowsMax && !counted {
		f.windows = map[key]window{}
	}
	f.windows[k] = window{current.begin, current.calls + int64(item.Count)}
	return nil
}

func (f *fallback) giveBack(item Item, h *held) {
	if h != nil {
		f.leave(h)
		return
	}
	k := key{item.Flow, item.Param}
	if current, counted := f.windows[k]; counted {
		if current.calls -= int64(item.Count); current.calls < 0 {
			current.calls = 0
		}
		f.windows[k] = current
	}
}

// share: not limited says that calls pass, whatever is in progress.
func (f *fallback) share(item Item, sessions uint64) (share int64, limited bool, err error) {
	if f.mode == FallbackPass {
		return 0, false, nil
	}
	if level, configured := f.configured[item.Flow]; configured {
		return int64(level), true, nil
	}
	seen := f.rules.find(item.Flow, item.Param != nil)
	switch {
	case f.mode == FallbackByRule && (seen == nil || !seen.fallbackToLocal):
		return 0, false, nil
	case seen == nil:
		return 0, false, errUnknownRule
	case item.Rate:
		return seen.windowShare(item.Param, sessions), true, nil
	}
	return seen.share(item.Param, sessions), true, nil
}

func (f *fallback) windowOf(item Item) time.Duration {
	if seen := f.rules.find(item.Flow, item.Param != nil); seen != nil {
		return millis(seen.windowMs)
	}
	return millis(windowMs)
}

func (f *fallback) judge(item Item, before, share int64, limited bool, limit string) error {
	switch {
	case !limited:
		f.passed++
		return nil
	case before+int64(item.Count) <= share:
		f.granted++
		return nil
	}
	f.refused++
	return &Refused{
		Message: fmt.Sprintf("flow %s refused by the local share: %d of %d in progress",
			item.Flow, before, share),
		Flow: item.Flow, Status: statusBlocked, RefusedBy: limit,
		NowCalls: uint64(before), Level: uint64(share), Local: true,
	}
}
