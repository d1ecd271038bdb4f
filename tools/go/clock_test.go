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
func newSleeper(t *testing.T, settings Config) (*Client, *leapingClock) {
	t.Helper()
	checked, err := settings.check()
	check(t, err)
	clock := &leapingClock{}
	shortest := func(low, _ time.Duration) time.Duration { return low }
	client := &Client{checked, newWorker(checked, 0, shortest, clock.now)}
	t.Cleanup(func() { client.Close() })
	return client, clock
}

func TestACallBehindASleepOfTheMachineEndsInTime(t *testing.T) {
	peer := newScripted(t, func(peer net.Conn, msgid any, method string, _ []any) {
		if method != "flow" {
			send(peer, 1, msgid, nil, honest(method))
		}
	})
	client, clock := newSleeper(t, Config{Address: peer.address, Timeout: 300 * time.Millisecond})
	soon(t, "its timer is set for the next ping", func() (idle bool) {
		client.worker.look(func() {
			w := client.worker
			idle = w.session.ready() && w.armed > clock.now()+pingAfter*4/5
		})
		return idle
	})
	clock.leap(time.Hour)
	ctx, cancel := context.WithTimeout(background, pingAfter/2)
	defer cancel()
	_, err := client.Flow(ctx, ID(1))
	as[*OutcomeUnknown](t, err)
}
