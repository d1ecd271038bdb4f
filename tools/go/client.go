// Package nowcalls is a client of nowcalls, a durable token server for cluster concurrency control.
//
//	client, err := nowcalls.New(nowcalls.Config{Namespace: "shop"})
//	...
//	defer client.Close()
//	work := func(ctx context.Context, permit *nowcalls.Permit) error {
//		... // At most as many at once, over all processes, as rule 1001 allows.
//	}
//	err = client.Do(ctx, nowcalls.ID(1001), work, nowcalls.Wait(2*time.Second))
package nowcalls

import (
	"context"
	"errors"
	"math/rand"
	"time"
)

// Client is a client of one namespace, for all goroutines of a process. Close it.
type Client struct {
	config *config
	worker *worker
}

// processInstance is that of hello: 1..2^63-1, drawn once.
var processInstance = newRequestID()

// New makes a client. It does not wait for a connection. It returns BadRequest if a setting is
// wrong.
func New(settings Config) (*Client, error) {
	checked, err := settings.check()
	if err != nil {
		return nil, err
	}
	instance := processInstance
	if checked.rejoin {
		instance = 0
	}
	source := rand.New(rand.NewSource(int64(newRequestID())))
	draw := func(low, high time.Duration) time.Duration {
		return low + time.Duration(source.Int63n(int64(high-low)+1))
	}
	return &Client{checked, newWorker(checked, instance, draw, now)}, nil
}

// Close ends the client. It waits up to the timeout for releases on their way to a connected
// server.
//
// Permits that are still held stay with the server until their hold or the rule's clientOfflineTime
// is over. Calls that wait end.
func (c *Client) Close() error {
	c.worker.close()
	return nil
}

// Acquire takes a token for one call in progress, or for Count calls. Its options are Count, Wait,
// Param, Prioritized, Keep, Timeout and OnLost. An acquire whose context ends holds nothing.
//
// It returns Refused, NoRule, Unavailable, OutcomeUnknown, BadRequest or PermissionDenied.
func (c *Client) Acquire(ctx context.Context, flow Flow, opts ...Option) (*Permit, error) {
	o, err := readOptions("Acquire", opts, c.config.keep,
		"Count", "Wait", "Param", "Prioritized", "Keep", "Timeout", "OnLost")
	if err != nil {
		return nil, err
	}
	if err := checkFlow(flow, o.count); err != nil {
		return nil, err
	}
	permits, err := c.acquire(ctx, []Item{{flow, o.count, o.param, false}}, false, o)
	if err != nil {
		return nil, err
	}
	return permits[0], nil
}

// AcquireAll takes a token for each item, for all or for none. Nothing is held while it waits. Each
// item is of another flow or param. An item that is a Rate asks for calls a second in the same
// decision. The options are Wait, Prioritized, Keep, Timeout, OnLost and NoSleep.
//
// It returns a permit for each item, nil for a rate.
func (c *Client) AcquireAll(ctx context.Context, items []Item, opts ...Option) ([]*Permit, error) {
	o, err := readOptions("AcquireAll", opts, c.config.keep,
		"Wait", "Prioritized", "Keep", "Timeout", "OnLost", "NoSleep")
	if err != nil {
		return nil, err
	}
	return c.acquire(ctx, items, true, o)
}

func (c *Client) acquire(
	ctx context.Context, items []Item, group bool, o options,
) ([]*Permit, error) {
	call, err := newAcquire(items, group, o)
	if err != nil {
		return nil, err
	}
	value, err := c.worker.ask(ctx, call, o.timeout)
	if err != nil {
		return nil, err
	}
	tokens := value.([]*held)
	permits := make([]*Permit, len(tokens))
	for i, h := range tokens {
		if h != nil {
			permits[i] = newPermit(h, c.worker)
		}
	}
	return permits, nil
}

// Do holds a token while it calls work. Its options are those of Acquire.
//
// The context of work ends when the permit is lost. The token is released as OutcomeFailed if work
// returns an error or panics, and as OutcomeTimeout if the error is that of a context. Do returns
// the error of Acquire or of work.
func (c *Client) Do(
	ctx context.Context, flow Flow, work func(context.Context, *Permit) error, opts ...Option,
) (err error) {
	permit, err := c.Acquire(ctx, flow, opts...)
	if err != nil {
		return err
	}
	outcome := OutcomeFailed // Of a panic.
	defer func() { permit.leave(context.Background(), outcome) }()
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-permit.Lost():
			cancel()
		case <-working.Done():
		}
	}()
	err = work(working, permit)
	cancel()
	<-watched
	switch {
	case err == nil:
		outcome = OutcomeOK
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		outcome = OutcomeTimeout
	}
	return err
}

// Request asks for one call, or for Count calls, under a rule of calls a second. Nothing is held.
// It sleeps until the calls may be made, if that is within the timeout. Its options are Count,
// Prioritized, Timeout and NoSleep. It returns Refused if they may not be made now.
func (c *Client) Request(ctx context.Context, flow Flow, opts ...Option) (Rate, error) {
	o, err := readOptions("Request", opts, "", "Count", "Prioritized", "Timeout", "NoSleep")
	if err != nil {
		return Rate{}, err
	}
	return c.request(ctx, flow, nil, o)
}

// RequestParam asks for one call, or for Count calls, of each value of the rule's parameter: of
// all, or of none. Its options are Count, Timeout and NoSleep.
func (c *Client) RequestParam(
	ctx context.Context, flow Flow, values []any, opts ...Option,
) (Rate, error) {
	o, err := readOptions("RequestParam", opts, "", "Count", "Timeout", "NoSleep")
	if err != nil {
		return Rate{}, err
	}
	if values == nil {
		values = []any{}
	}
	return c.request(ctx, flow, values, o)
}

func (c *Client) request(ctx context.Context, flow Flow, values []any, o options) (Rate, error) {
	call, err := newRateCall(flow, o.count, values, o.prioritized, !o.noSleep)
	if err != nil {
		return Rate{}, err
	}
	value, err := c.worker.ask(ctx, call, o.timeout)
	rate, _ := value.(Rate)
	return rate, err
}

// Stats are figures of a client.
type Stats struct {
	Connected      bool
	Address        string
	ClientID       string
	SessionsOnline uint64 // When it last connected.
	Held           int    // Permits on the server.
	Waiting        int    // Calls with a caller.
	Unsettled      int    // Releases and cancels without answer.
	TellsLost      bool   // The server tells of lost tokens.

	LocalGranted, LocalRefused, LocalPassed                  uint64
	Connects, Disconnects, Kept, Lost, Cancelled, AskedAgain uint64
}

// Stats tells the client's connection, permits held and lost, local calls.
func (c *Client) Stats() (stats Stats) {
	c.worker.look(func() { stats = c.worker.session.stats() })
	return stats
}

// ask asks a call of a client that is not closed, and waits for its outcome.
func (w *worker) ask(ctx context.Context, c asked, timeout time.Duration) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	closed := false
	w.look(func() { closed = w.closed })
	if closed {
		return nil, badRequest("the client is closed")
	}
	return w.await(ctx, c, func(s *session, now instant) { s.ask(c, now, timeout) })
}

// await has the session begin a call, and waits for its outcome. When ctx ends, nobody will take
// it.
func (w *worker) await(
	ctx context.Context, c asked, begin func(*session, instant),
) (value any, err error) {
	b, done := c.base(), make(chan struct{})
	b.notify = func() { close(done) }
	w.do(begin)
	select {
	case <-done:
		return b.value, b.err
	case <-ctx.Done():
	}
	left := false
	w.do(func(s *session, now instant) {
		if _, isRelease := c.(*releaseCall); !b.done && !isRelease {
			s.abandon(c, now)
			left = true
		}
		left = left || !b.done
	})
	if left {
		return nil, ctx.Err()
	}
	return b.value, b.err
}
