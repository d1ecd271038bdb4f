package nowcalls

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// The clock that goes on while the machine sleeps, and times that are told in ms.

// leapingClock goes ahead of the timers of Go, as that of a machine that has slept.
type leapingClock struct {
	ahead atomic.Int64
}

func (c *leapingClock) now() instant              { return now() + instant(c.ahead.Load()) }
func (c *leapingClock) leap(asleep time.Duration) { c.ahead.Add(int64(asleep)) }

// newSleeper is a client whose machine sleeps when the clock leaps.
func newSleeper(t *testing.T, settings Config, clock *leapingClock) *Client {
	t.Helper()
	checked, err := settings.check()
	check(t, err)
	shortest := func(low, _ time.Duration) time.Duration { return low }
	client := &Client{checked, newWorker(checked, 0, shortest, clock.now)}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestACallBehindASleepOfTheMachineEndsInTime(t *testing.T) {
	callBehindASleep(t, time.Hour, 300*time.Millisecond)
}

func TestACallBehindASleepThatWasShorterThanTheTimerEndsInTime(t *testing.T) {
	callBehindASleep(t, pingAfter*3/5, pingAfter/4)
}

// callBehindASleep ends before the timer that was set before it.
func callBehindASleep(t *testing.T, asleep, timeout time.Duration) {
	t.Helper()
	t.Parallel()
	peer := newScripted(t, func(peer net.Conn, msgid any, method string, _ []any) {
		if method != "flow" {
			send(peer, 1, msgid, nil, honest(method))
		}
	})
	clock := &leapingClock{}
	settings := Config{Address: peer.address, Timeout: timeout}
	client := newSleeper(t, settings, clock)
	soon(t, "its timer is set for the next ping", func() (idle bool) {
		client.worker.look(func() {
			w := client.worker
			idle = w.session.ready() && time.Until(w.rings) > pingAfter/2
		})
		return idle
	})
	clock.leap(asleep)
	ctx, cancel := context.WithTimeout(background, pingAfter/2)
	defer cancel()
	_, err := client.Flow(ctx, ID(1))
	as[*OutcomeUnknown](t, err)
}

func TestTimesAreAddedWithoutOverflow(t *testing.T) {
	for _, one := range []struct{ came, expected time.Duration }{
		{after(time.Second, span(0)), 998 * time.Millisecond},
		{after(time.Second, span(1)), 999 * time.Millisecond},
		{after(0, span(0)), -2 * time.Millisecond},
		{after(time.Second, never), never},
		{after(never, time.Second), never},
		{after(never-1, 1), never},
		{millis(holdMsMax), holdMsMax * time.Millisecond},
		{millis(1e18), never},
	} {
		equal(t, "time", one.came, one.expected)
	}
}

func TestATokenThatIsHeldForNoTimeIsLostByTheClient(t *testing.T) {
	for _, hold := range []int{0, 1} {
		for name, answer := range map[string][]any{
			"hold":              {0, 77, 13, 1, 2, hold, nil},
			"clientOfflineTime": {0, 77, 13, 1, 2, 6000, nil, nil, []any{2, 2000, hold}},
		} {
			p := newPeer(t, Config{Fallback: FallbackFail})
			p.now = time.Second
			p.session.contact.clock = func() instant { return p.now }
			p.connect()
			c := p.acquire(ID(1))
			p.asked()
			p.answer(answer)
			p.asked() // It is confirmed once.
			p.answer(answer)
			check(t, c.err)
			permit := c.value.([]*held)[0]
			equal(t, name, permit.validUntil() < p.now && permit.lost(), true)
			p.session.tick(p.now)
			equal(t, "told of "+name, len(p.session.takeLost()), 1)
		}
	}
}
