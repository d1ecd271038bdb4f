package nowcalls

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Servers that are killed, and clients that are cut off.

func TestKill9LeavesNoPermitBehindAndNeverMoreThanTheLevel(t *testing.T) {
	const workers, permits, level, kills = 50, 1000, 20, 3
	s := onOwnServer(t)
	flow := s.load(level, nil)
	settings := Config{Timeout: patience}
	clients := []*Client{s.client(settings), s.client(settings), s.client(settings)}
	var begun, inProgress, highest, lost int64
	var running sync.WaitGroup
	work := func(_ context.Context, permit *Permit) error {
		now := atomic.AddInt64(&inProgress, 1)
		for {
			before := atomic.LoadInt64(&highest)
			if now <= before || atomic.CompareAndSwapInt64(&highest, before, now) {
				break
			}
		}
		runtime.Gosched()
		atomic.AddInt64(&inProgress, -1)
		if permit.IsLost() {
			atomic.AddInt64(&lost, 1)
		}
		return nil
	}
	for i := 0; i < workers; i++ {
		running.Add(1)
		go func(client *Client) {
			defer running.Done()
			for atomic.AddInt64(&begun, 1) <= permits {
				if err := client.Do(background, flow, work, Wait(patience)); err != nil {
					t.Error(err)
				}
			}
		}(clients[i%len(clients)])
	}
	for killed := int64(1); killed <= kills; killed++ {
		soon(t, "work goes on", func() bool {
			return atomic.LoadInt64(&begun) > killed*permits/(kills+1)
		})
		s.server.kill()
		check(t, s.server.start())
	}
	running.Wait()
	s.releasedAll(flow)
	for _, client := range clients {
		stats := client.Stats()
		equal(t, "held", stats.Held, 0)
		if stats.Connects < 2 { // It may have slept through the others.
			t.Errorf("a client has seen %d connections", stats.Connects)
		}
	}
	if highest > level || highest < level/2 || lost > 0 {
		t.Fatalf("%d at once, %d lost", highest, lost)
	}
}

func TestAPermitOutlivesARestart(t *testing.T) {
	s := onOwnServer(t)
	flow, client := s.load(1, nil), s.client(Config{Timeout: patience})
	permit := acquire(t, client, flow)
	s.server.kill()
	check(t, s.server.start())
	other := s.client(Config{})
	_, err := other.Acquire(background, flow)
	as[*Refused](t, err)
	held, err := permit.Keep(background)
	check(t, err)
	equal(t, "kept", held, true)
	equal(t, "released", release(t, permit), true)
	s.releasedAll(flow)
}

// cutOffSteps: what the proxy still passes when it is hit: requests, answers.
var cutOffSteps = map[string][2]bool{
	"before the acquire":            {false, false},
	"when the acquire has arrived":  {true, false},
	"when it is granted":            {false, false},
	"when it was kept":              {false, false},
	"when a keep has arrived":       {true, false},
	"before the release":            {false, false},
	"when the release has arrived":  {true, false},
	"when only answers do not come": {true, false},
}

func TestAHolderThatIsCutOffKnowsBeforeAnotherIsGranted(t *testing.T) {
	for step, passes := range cutOffSteps {
		step, passes := step, passes
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			cutOff(t, step, passes[0], passes[1])
		})
	}
}

func cutOff(t *testing.T, step string, requests, answers bool) {
	s := onServer(t)
	flow := s.load(1, set{"resourceTimeout": 1500, "clientOfflineTime": 20_000})
	p := newProxy(t, s.server.address)
	told := make(chan *Permit, 2)
	holder := s.client(Config{Address: p.address, Timeout: 400 * time.Millisecond,
		OnLost: func(p *Permit) { told <- p }})
	_, err := holder.Ping(background)
	check(t, err)
	drop := func() {
		p.requests.Store(requests)
		p.answers.Store(answers)
	}
	if step == "before the acquire" || step == "when the acquire has arrived" {
		drop()
	}
	permit, err := holder.Acquire(background, flow)
	if err != nil {
		noAnswer(t, err)
	}
	if step == "when it was kept" {
		soon(t, "it is kept", func() bool { return holder.Stats().Kept > 0 })
	}
	drop()
	if step == "before the release" || step == "when the release has arrived" {
		_, err := permit.Release(background)
		noAnswer(t, err)
		permit = nil
	}
	other := s.client(Config{Timeout: patience})
	second := acquire(t, other, flow, Wait(patience))
	grantedAt := now()
	if permit != nil {
		if until := permit.ValidUntil(); !permit.IsLost() || until > grantedAt {
			t.Fatalf("%s until %s, and another is granted at %s", permit, until, grantedAt)
		}
		<-permit.Lost()
		equal(t, "told", (<-told).TokenID(), permit.TokenID())
		equal(t, "reason", permit.LostReason(), "resource_timeout")
	}
	// The network heals; what was lost stays so.
	p.requests.Store(true)
	p.answers.Store(true)
	p.cut()
	_, err = holder.Ping(background, Timeout(patience))
	check(t, err)
	if permit != nil {
		equal(t, "lost", permit.IsLost(), true)
		equal(t, "released", release(t, permit), false)
	}
	equal(t, "released", release(t, second), true)
	s.releasedAll(flow)
	equal(t, "held", holder.Stats().Held, 0)
}

// noAnswer is what a call may return whose server is not reached.
func noAnswer(t *testing.T, err error) {
	t.Helper()
	var unknown *OutcomeUnknown
	var unavailable *Unavailable
	if !errors.As(err, &unknown) && !errors.As(err, &unavailable) {
		t.Fatalf("%T: %v", err, err)
	}
}

func TestAHolderThatIsOfflineKnowsBeforeAnotherIsGranted(t *testing.T) {
	s := onServer(t)
	flow := s.load(1, set{"clientOfflineTime": 1500})
	p := newProxy(t, s.server.address)
	holder := s.client(Config{Address: p.address, Timeout: 400 * time.Millisecond})
	permit := acquire(t, holder, flow)
	p.accepts.Store(false)
	p.cut()
	second := acquire(t, s.client(Config{Timeout: patience}), flow, Wait(patience))
	grantedAt := now()
	if until := permit.ValidUntil(); !permit.IsLost() || until > grantedAt {
		t.Fatalf("%s until %s, and another is granted at %s", permit, until, grantedAt)
	}
	equal(t, "reason", permit.LostReason(), "client_offline")
	p.accepts.Store(true)
	release(t, second)
}

func TestWithoutAServerTheFallbackDecides(t *testing.T) {
	book := &logBook{}
	flow := ID(1001)
	settings := Config{Address: "127.0.0.1:1", Fallback: FallbackLocal,
		LocalLevels: map[Flow]int{flow: 2, Name("checkout"): 1}, Logger: book.logger()}
	client := newClient(t, settings)
	permit := acquire(t, client, flow)
	equal(t, "local", permit.Local() && permit.TokenID() == 0 && permit.Fence() == 0, true)
	equal(t, "of", fmt.Sprint(permit.NowCalls(), permit.Level()), "1 2")
	second := acquire(t, client, flow)
	_, err := client.Acquire(background, flow)
	contains(t, err, "flow 1001 refused by the local share: 2 of 2 in progress")
	equal(t, "local", as[*Refused](t, err).Local, true)
	acquire(t, client, Name("checkout"))
	_, err = client.Acquire(background, Name("checkout"))
	contains(t, err, "flow 'checkout' refused by the local share: 1 of 1 in progress")
	equal(t, "released", release(t, second), true)
	acquire(t, client, flow)
	_, err = client.Acquire(background, ID(1))
	as[*Unavailable](t, err)
	contains(t, err, "acquire: not carried out: 127.0.0.1:1: connection refused")
	stats := client.Stats()
	equal(t, "counted", fmt.Sprint(stats.LocalGranted, stats.LocalRefused), "4 2")
	words := "nowcalls: no server is reached, fallback local: 127.0.0.1:1: connection refused\n"
	soon(t, "it is logged", func() bool { return book.String() == words })
	settings.Fallback = FallbackPass
	passing := newClient(t, settings)
	equal(t, "level", acquire(t, passing, flow).Level(), uint64(0))
	rate, err := passing.Request(background, flow)
	check(t, err)
	equal(t, "remaining", rate.Remaining, int64(-1))
}

func TestTheShareOfARuleIsKnownWhenItsServerIsGone(t *testing.T) {
	s := onOwnServer(t)
	flow := s.load(9, set{"fallbackToLocalWhenFail": true})
	var clients []*Client
	for i := 0; i < 3; i++ {
		client := s.client(Config{Fallback: FallbackByRule, Timeout: time.Second})
		_, err := client.Ping(background)
		check(t, err)
		clients = append(clients, client)
	}
	last := clients[2] // Which has seen three of them online.
	permit := acquire(t, last, flow)
	s.server.kill()
	for i := 0; i < 2; i++ {
		local := acquire(t, last, flow)
		equal(t, "of", fmt.Sprint(local.Local(), local.NowCalls(), local.Level()),
			fmt.Sprint(true, i+2, 3))
	}
	_, err := last.Acquire(background, flow)
	equal(t, "local", as[*Refused](t, err).Local, true)
	check(t, s.server.start())
	_, err = last.Ping(background, Timeout(patience))
	check(t, err)
	equal(t, "released", release(t, permit), true)
}

func TestAnotherAddressIsTriedInTurn(t *testing.T) {
	s := onServer(t)
	client := s.client(Config{Address: "127.0.0.1:1, " + s.server.address})
	_, err := client.Ping(background)
	check(t, err)
	equal(t, "address", client.Stats().Address, s.server.address)
}

func TestCallsThatEndAtRandomMomentsLeaveNothing(t *testing.T) {
	before, files := runtime.NumGoroutine(), openFiles(t)
	s := onServer(t)
	flow, group := s.load(4, nil), s.load(4, nil)
	p := newProxy(t, s.server.address)
	client := s.client(Config{Address: p.address, Timeout: patience})
	var running sync.WaitGroup
	for i := 0; i < 400; i++ {
		running.Add(1)
		go func(i int) {
			defer running.Done()
			limit := time.Duration(rand.Int63n(int64(60 * time.Millisecond)))
			ctx, cancel := context.WithTimeout(background, limit)
			defer cancel()
			var err error
			switch i % 4 {
			case 0:
				_, err = client.AcquireAll(ctx, []Item{{Flow: flow}, {Flow: group}}, Wait(patience))
			case 1:
				err = client.Do(ctx, flow, func(ctx context.Context, p *Permit) error {
					_, err := p.Keep(ctx)
					return err
				}, Wait(patience))
			default:
				var permit *Permit
				if permit, err = client.Acquire(ctx, flow, Wait(patience)); err == nil {
					_, err = permit.Release(ctx)
				}
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%T: %v", err, err)
			}
		}(i)
		if i == 200 {
			p.cut()
		}
	}
	running.Wait()
	// Groups are dropped with their calls.
	soon(t, "no call is in progress", func() bool {
		runtime.GC()
		return s.server.nowCalls(t, flow) == 0 && s.server.nowCalls(t, group) == 0
	})
	soon(t, "nothing is unsettled", func() bool {
		stats := client.Stats()
		return stats.Held == 0 && stats.Waiting == 0 && stats.Unsettled == 0
	})
	client.Close()
	p.listener.Close()
	p.cut()
	p.running.Wait()
	goroutines(t, before)
	soon(t, "no file is left", func() bool { return openFiles(t) <= files })
}

func TestAContextThatHasEndedAsksNothingButReleases(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(1, nil), s.client(Config{})
	ended, cancel := context.WithCancel(background)
	cancel()
	_, err := client.Acquire(ended, flow)
	equal(t, "acquire", err, context.Canceled)
	_, err = client.Ping(ended)
	equal(t, "ping", err, context.Canceled)
	_, err = client.Request(ended, flow)
	equal(t, "request", err, context.Canceled)
	permit := acquire(t, client, flow)
	_, err = permit.Release(ended)
	if err != nil {
		equal(t, "release", err, context.Canceled)
	}
	s.releasedAll(flow)
}

func nothing(net.Conn, any, string, []any) {}

// Close, in every state of a client.

func TestCloseEndsAllCalls(t *testing.T) {
	s := onServer(t)
	flow := s.load(1, nil)
	holder := acquire(t, s.client(Config{}), flow)
	silent := newScripted(t, nothing)
	hole := newProxy(t, s.server.address)
	for name, address := range map[string]string{
		"connected": s.server.address, "refused": "127.0.0.1:1", "greeting": silent.address,
		"black hole": hole.address, "no name": "nowhere.invalid:1"} {
		before := runtime.NumGoroutine()
		client := s.client(Config{Address: address, Timeout: 400 * time.Millisecond})
		if name == "black hole" {
			_, err := client.Ping(background, Timeout(patience))
			check(t, err)
			hole.answers.Store(false)
		}
		ended := make(chan error, 30)
		for i := 0; i < 10; i++ {
			go func() {
				_, err := client.Acquire(background, flow, Wait(patience))
				ended <- err
			}()
			go func() {
				_, err := client.AcquireAll(background, []Item{{Flow: flow}}, Wait(patience))
				ended <- err
			}()
			go func() {
				work := func(context.Context, *Permit) error { return nil }
				ended <- client.Do(background, flow, work, Wait(patience))
			}()
		}
		soon(t, "they wait", func() bool { return client.Stats().Waiting == 30 })
		check(t, client.Close())
		for i := 0; i < 30; i++ {
			noAnswer(t, <-ended)
		}
		if name != "no name" { // A resolver may take its time.
			goroutines(t, before)
		}
	}
	release(t, holder)
	s.releasedAll(flow)
}

func TestCloseWaitsForReleasesOnTheirWayAsLongAsACallMayTake(t *testing.T) {
	for _, answers := range []bool{true, false} {
		arrived, answer := make(chan struct{}, 9), make(chan struct{})
		peer := newScripted(t, func(peer net.Conn, msgid any, method string, _ []any) {
			if method == "release" {
				arrived <- struct{}{}
				<-answer
			}
			send(peer, 1, msgid, nil, honest(method))
		})
		client := newClient(t, Config{Address: peer.address, Timeout: 600 * time.Millisecond})
		permit := acquire(t, client, ID(1), Timeout(patience))
		ended, cancel := context.WithCancel(background)
		cancel()
		permit.Release(ended)
		<-arrived
		closed := make(chan struct{})
		begin := time.Now()
		go func() {
			client.Close()
			close(closed)
		}()
		if answers {
			select {
			case <-closed:
				t.Fatal("it did not wait")
			case <-time.After(50 * time.Millisecond):
			}
			close(answer)
		}
		<-closed
		equal(t, "unsettled", client.Stats().Unsettled, 0)
		if waited := time.Since(begin); !answers && waited < 600*time.Millisecond {
			t.Fatalf("it waited %s", waited)
		}
		if !answers {
			close(answer)
		}
	}
}

func TestOnLostThatPanicsOrReleasesDoesNoHarm(t *testing.T) {
	s := onServer(t)
	book := &logBook{}
	flow := s.load(2, set{"resourceTimeoutStrategy": 0, "resourceTimeout": 100})
	released := make(chan bool, 1)
	client := s.client(Config{Logger: book.logger(), OnLost: func(permit *Permit) {
		held, err := permit.Release(background)
		released <- held || err != nil
	}})
	permit := acquire(t, client, flow, OnLost(func(*Permit) { panic("in a callback") }))
	equal(t, "held", <-released, false)
	equal(t, "lost", permit.IsLost(), true)
	soon(t, "it is logged", func() bool {
		return strings.Contains(book.String(), fmt.Sprintf("OnLost of token %d failed: in a callback",
			permit.TokenID()))
	})
	_, err := client.Ping(background)
	check(t, err)
}

func TestAReleaseThatNoServerAnswersGoesOnInTheBackground(t *testing.T) {
	s := onOwnServer(t)
	flow, client := s.load(3, nil), s.client(Config{Timeout: time.Second})
	permit, blocks := acquire(t, client, flow), make(chan error)
	inBlock, gone := make(chan struct{}), make(chan struct{})
	go func() {
		blocks <- client.Do(background, flow, func(context.Context, *Permit) error {
			close(inBlock)
			<-gone
			return nil
		}, Timeout(patience))
	}()
	<-inBlock
	s.server.kill()
	soon(t, "it is gone", func() bool { return !client.Stats().Connected })
	close(gone)
	check(t, <-blocks) // The end of a block does not wait for a server that is not there.
	_, err := permit.Release(background)
	noAnswer(t, err)
	equal(t, "released", permit.Released(), true)
	check(t, s.server.start())
	s.releasedAll(flow)
	soon(t, "nothing is unsettled", func() bool { return client.Stats().Unsettled == 0 })
}
