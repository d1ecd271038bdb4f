package nowcalls

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The client against a real server.

func TestAPermitIsOneOfTheCallsInProgress(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(2, nil), s.client(Config{})
	permit := acquire(t, client, flow)
	equal(t, "calls", s.server.nowCalls(t, flow), int64(1))
	if permit.TokenID() == 0 || permit.Fence() == 0 || permit.Hold() < time.Minute {
		t.Fatalf("%s %s", permit, permit.Hold())
	}
	equal(t, "flow, count", fmt.Sprint(permit.Flow(), permit.Count()), fmt.Sprintf("%s 1", flow))
	equal(t, "of", fmt.Sprint(permit.NowCalls(), permit.Level()), "1 2")
	if left := permit.ValidFor(); left < 20*time.Second || permit.IsLost() || permit.Released() {
		t.Fatalf("%s is valid for %s", permit, left)
	}
	held, err := permit.Keep(background)
	check(t, err)
	equal(t, "kept", held, true)
	equal(t, "released", release(t, permit), true)
	equal(t, "again", release(t, permit), true)
	equal(t, "says so", permit.Released() && permit.ValidFor() == 0, true)
	equal(t, "calls", s.server.nowCalls(t, flow), int64(0))
}

func TestARefusalSaysWhy(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(1, nil), s.client(Config{})
	permit := acquire(t, client, flow)
	_, err := client.Acquire(background, flow)
	refused := as[*Refused](t, err)
	equal(t, "says", err.Error(), fmt.Sprintf("flow %s refused by level: 1 of 1 in progress", flow))
	equal(t, "by", refused.RefusedBy, "level")
	as[Error](t, err)
	_, err = client.Acquire(background, flow, Wait(20*time.Millisecond))
	equal(t, "by", as[*Refused](t, err).RefusedBy, "queue_timeout")
	_, err = client.Acquire(background, ID(999_999_999))
	equal(t, "says", as[*NoRule](t, err).Message, "flow 999999999 has no rule")
	as[*Refused](t, err)
	release(t, permit)
}

func TestAWaitEndsWithARelease(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(1, nil), s.client(Config{})
	first := acquire(t, client, flow)
	got := make(chan error)
	go func() {
		second, err := client.Acquire(background, flow, Wait(patience))
		if err == nil {
			_, err = second.Release(background)
		}
		got <- err
	}()
	soon(t, "it waits", func() bool { return s.server.waiters(t, flow) == 1 })
	release(t, first)
	check(t, <-got)
	s.releasedAll(flow)
}

func TestDoHoldsATokenAndTellsTheOutcome(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(1, nil), s.client(Config{})
	outcomes := func() string {
		counters := s.server.flow(t, flow.asked())["counters"].(Row)
		told, _ := counters["outcomes"].(Row)
		return fmt.Sprint(told["failed"], told["timeout"])
	}
	work := func(err error) func(context.Context, *Permit) error {
		return func(context.Context, *Permit) error {
			equal(t, "calls", s.server.nowCalls(t, flow), int64(1))
			return err
		}
	}
	check(t, client.Do(background, flow, work(nil)))
	mine := errors.New("mine")
	equal(t, "error", client.Do(background, flow, work(mine)), mine)
	err := client.Do(background, flow, work(fmt.Errorf("x: %w", context.DeadlineExceeded)))
	equal(t, "timeout", errors.Is(err, context.DeadlineExceeded), true)
	func() {
		defer func() { equal(t, "panic", recover(), "at work") }()
		client.Do(background, flow, func(context.Context, *Permit) error { panic("at work") })
	}()
	equal(t, "failed, timeout", outcomes(), "2 1")
	s.releasedAll(flow)
}

func TestTheContextOfWorkEndsWhenItsPermitIsLost(t *testing.T) {
	s := onServer(t)
	flow := s.load(1, nil)
	lost := make(chan *Permit, 2)
	client := s.client(Config{OnLost: func(p *Permit) { lost <- p }})
	err := client.Do(background, flow, func(ctx context.Context, permit *Permit) error {
		_, err := s.server.call("reclaim", permit.TokenID(), "a test")
		check(t, err)
		<-ctx.Done()
		equal(t, "lost", permit.IsLost(), true)
		equal(t, "reason", permit.LostReason(), "admin")
		<-permit.Lost()
		equal(t, "told", (<-lost).TokenID(), permit.TokenID())
		equal(t, "told", (<-lost).TokenID(), permit.TokenID())
		return ctx.Err()
	}, OnLost(func(p *Permit) { lost <- p }))
	equal(t, "error", err, context.Canceled)
	equal(t, "lost", client.Stats().Lost, uint64(1))
}

func TestALostPermitIsLogged(t *testing.T) {
	s := onServer(t)
	book := &logBook{}
	flow := s.load(1, set{"resourceTimeoutStrategy": 0, "resourceTimeout": 200})
	client := s.client(Config{Logger: book.logger()})
	permit := acquire(t, client, flow)
	<-permit.Lost()
	equal(t, "reason", permit.LostReason(), "resource_timeout")
	equal(t, "released", release(t, permit), false)
	words := fmt.Sprintf("nowcalls: lost token %d of flow %s: its call took longer than the 400 ms "+
		"that its rule holds a token (resourceTimeoutStrategy 0); set resourceTimeoutStrategy 2 in "+
		"the rule, or ask to keep it always\n", permit.TokenID(), flow)
	soon(t, "it is logged", func() bool { return book.String() == words })
}

func TestKeepByRuleAlwaysAndOff(t *testing.T) {
	s := onServer(t)
	client := s.client(Config{})
	const hold = 1200
	kept := s.load(9, set{"resourceTimeout": hold / 2})
	hangs := s.load(9, set{"resourceTimeout": hold / 2, "resourceTimeoutStrategy": 0})
	gives := s.load(9, set{"resourceTimeout": hold / 2, "resourceTimeoutStrategy": 1})
	byRule, always := acquire(t, client, kept), acquire(t, client, hangs, Keep(KeepAlways))
	off, unkept := acquire(t, client, kept, Keep(KeepOff)), acquire(t, client, hangs)
	given := acquire(t, client, gives)
	<-off.Lost()
	<-unkept.Lost()
	<-given.Lost()
	equal(t, "reason", given.LostReason(), "resource_timeout")
	soon(t, "kept", func() bool { return client.Stats().Kept > 6 })
	equal(t, "kept by the rule", release(t, byRule), true)
	equal(t, "kept always", release(t, always), true)
	for _, lost := range []*Permit{off, unkept, given} {
		equal(t, "lost", release(t, lost), false)
	}
	counters := s.server.flow(t, gives.asked())["counters"].(Row)
	equal(t, "outcome", counters["outcomes"].(Row)["timeout"], int64(1))
}

func TestAGroupTakesAllOrNothing(t *testing.T) {
	s := onServer(t)
	one, two, rate := s.load(1, nil), s.load(2, nil), s.load(5, nil)
	client := s.client(Config{})
	items := []Item{{Flow: one}, {Flow: two, Count: 2}, {Flow: rate, Rate: true}}
	permits, err := client.AcquireAll(background, items)
	check(t, err)
	equal(t, "permits", len(permits), 3)
	equal(t, "a rate has none", permits[2] == nil, true)
	_, err = client.AcquireAll(background, items)
	as[*Refused](t, err)
	for _, permit := range permits {
		equal(t, "released", release(t, permit), true)
	}
	s.releasedAll(one)
	s.releasedAll(two)
	_, err = client.AcquireAll(background, []Item{})
	contains(t, err, "acquire_all takes 1 to 64 items, not 0")
}

func TestRatesAreCountedAndSlept(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(3, set{"windowIntervalMs": 60_000}), s.client(Config{})
	rate, err := client.Request(background, flow, Count(170))
	check(t, err)
	equal(t, "remaining", rate.Remaining, int64(10))
	_, err = client.Request(background, flow, Count(11))
	equal(t, "by", as[*Refused](t, err).RefusedBy, "rate")
	borrows := s.load(15, set{"windowIntervalMs": 200, "sampleCount": 1})
	ask := func(opts ...Option) (wait, took time.Duration) {
		begin := time.Now()
		rate, err := client.Request(background, borrows, append(opts, Prioritized(), Count(3))...)
		if err != nil {
			as[*Refused](t, err)
		}
		return rate.Wait, time.Since(begin)
	}
	soon(t, "a request is to wait", func() bool {
		wait, took := ask(NoSleep())
		return wait == 200*time.Millisecond && took < wait
	})
	soon(t, "a request sleeps", func() bool {
		wait, took := ask()
		return wait == 0 && took >= 200*time.Millisecond
	})
	s.loadRule(map[string]any{"resource": "keys", "paramIdx": 0}, 1, 8_001, nil)
	rate, err = client.RequestParam(background, ID(8_001), []any{"acme"})
	check(t, err)
	_, err = client.RequestParam(background, ID(8_001), []any{"acme"})
	equal(t, "by", as[*Refused](t, err).RefusedBy, "param")
	check(t, client.Do(background, ID(8_001), func(context.Context, *Permit) error {
		_, err := client.Acquire(background, ID(8_001), Param(7))
		equal(t, "by", as[*Refused](t, err).RefusedBy, "param")
		return nil
	}, Param(7)))
}

func TestAPrioritizedAcquireIsAskedAgainAsTheRuleSays(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(1, set{"acquireRefuseStrategy": 2}), s.client(Config{})
	first := acquire(t, client, flow)
	got := make(chan error)
	go func() {
		second, err := client.Acquire(background, flow, Prioritized())
		if err == nil {
			_, err = second.Release(background)
		}
		got <- err
	}()
	soon(t, "it is refused some times", func() bool {
		refused, _ := s.server.flow(t, flow.asked())["counters"].(Row)["refused"].(Row)
		count, _ := refused["level"].(int64)
		return count > 2
	})
	release(t, first)
	check(t, <-got)
}

func TestListings(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(300, nil), s.client(Config{ClientID: "lister"})
	for i := 0; i < 150; i++ {
		acquire(t, client, flow)
	}
	rows, found := client.Tokens(background, flow, "lister"), 0
	for rows.Next() {
		equal(t, "flow", rows.Row()["flow_id"], flow.ID())
		found++
	}
	check(t, rows.Err())
	equal(t, "tokens", found, 150)
	row, err := client.Flow(background, flow)
	check(t, err)
	equal(t, "now_calls", row["now_calls"], int64(150))
	for name, rows := range map[string]*Rows{"flows": client.Flows(background),
		"sessions": client.Sessions(background), "history": client.History(background)} {
		count := 0
		for rows.Next() {
			count++
		}
		check(t, rows.Err())
		if count == 0 && name != "history" {
			t.Fatalf("there are no %s", name)
		}
	}
	ms, err := client.Ping(background)
	check(t, err)
	if ms < 1_600_000_000_000 {
		t.Fatalf("the server's clock says %d", ms)
	}
}

func TestAnExclusiveClientHasItsNameAlone(t *testing.T) {
	s := onServer(t)
	flow := s.load(9, nil)
	first := s.client(Config{ClientID: "only", Exclusive: true})
	_, err := first.Ping(background)
	check(t, err)
	other := processInstance
	processInstance = newRequestID() // As another process.
	defer func() { processInstance = other }()
	second := s.client(Config{ClientID: "only", Exclusive: true, Timeout: time.Second})
	_, err = second.Acquire(background, flow)
	as[*Unavailable](t, err)
	contains(t, err, "hello refused: CONFLICT")
	first.Close()
	_, err = second.Ping(background, Timeout(patience))
	check(t, err)
}

func TestRejoinTakesOverTheTokensOfTheProcessBefore(t *testing.T) {
	s := onServer(t)
	flow := s.load(1, nil)
	for _, rejoin := range []bool{true, false} {
		settings := Config{ClientID: fmt.Sprint("worker-", rejoin), Rejoin: rejoin}
		first := s.client(settings)
		permit := acquire(t, first, flow)
		first.Close()
		other := processInstance
		processInstance = newRequestID()
		second := s.client(settings)
		processInstance = other
		_, err := second.Ping(background)
		check(t, err)
		status, err := second.worker.ask(background, newRelease(permit.held, OutcomeOK), -1)
		check(t, err)
		equal(t, "released by the process behind", status, rejoin)
		_, err = s.server.call("reclaim", permit.TokenID(), "a test")
		check(t, err)
	}
}

func TestAPermitThatIsDroppedIsReleasedWithALineInTheLog(t *testing.T) {
	s := onServer(t)
	book := &logBook{}
	flow, client := s.load(1, nil), s.client(Config{Logger: book.logger()})
	acquire(t, client, flow)
	soon(t, "it is released", func() bool {
		runtime.GC()
		return s.server.nowCalls(t, flow) == 0
	})
	soon(t, "it is logged", func() bool {
		return strings.Contains(book.String(), "was dropped, so it is released")
	})
	kept := acquire(t, client, flow)
	runtime.GC()
	runtime.GC()
	equal(t, "released", release(t, kept), true)
}

func TestAPermitOfAClosedClientStaysWithTheServer(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(1, nil), s.client(Config{})
	permit := acquire(t, client, flow)
	check(t, client.Close())
	check(t, client.Close())
	_, err := permit.Release(background)
	as[*Unavailable](t, err)
	contains(t, err, "release: not carried out: the client is closed")
	_, err = client.Acquire(background, flow)
	equal(t, "says", as[*BadRequest](t, err).Message, "the client is closed")
	equal(t, "calls", s.server.nowCalls(t, flow), int64(1))
}
