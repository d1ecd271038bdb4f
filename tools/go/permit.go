package nowcalls

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Permit is one token, or a local stand-in for it when no server answers. Any goroutine may use it.
//
// Release it. A permit that the program drops instead is released when the garbage collector finds
// it, with a line in the log; until then it holds its room.
type Permit struct {
	held   *held
	worker *worker
}

// newPermit is for the program. It is released if the program drops it.
func newPermit(h *held, w *worker) *Permit {
	p := &Permit{h, w}
	runtime.SetFinalizer(p, (*Permit).drop)
	return p
}

// Flow, Count and Param are as asked for.
func (p *Permit) Flow() Flow { return p.held.flow }

// Count is the number of calls that the token stands for.
func (p *Permit) Count() int { return p.held.count }

// Param is the value of the rule's parameter, or nil.
func (p *Permit) Param() any { return p.held.param }

// TokenID is the server's id of the token; 0 for a local permit.
func (p *Permit) TokenID() uint64 { return p.held.tokenID }

// Fence grows with each grant; it is 0 for a local permit. A resource that remembers the highest
// fence can refuse stale holders.
func (p *Permit) Fence() uint64 { return p.held.fence }

// NowCalls is the number of calls in progress at the grant, this one included.
func (p *Permit) NowCalls() uint64 { return p.held.nowCalls }

// Level is the limit of NowCalls; 0 if the fallback let the call pass.
func (p *Permit) Level() uint64 { return p.held.level }

// Local: it was granted by the fallback of this process.
func (p *Permit) Local() bool { return p.held.local }

// Wait is how long to sleep before the call. It is above 0 only in a group with rates whose calls
// were told to wait, and that was not to sleep.
func (p *Permit) Wait() time.Duration { return p.held.wait }

// Hold is after which time without a keep the server takes the token back; 0 for a local permit.
func (p *Permit) Hold() (hold time.Duration) {
	p.worker.look(func() { hold = millis(p.held.holdMs) })
	return hold
}

// Lost returns a channel that is closed when the permit is lost: the token ended, and this client
// did not release it; or this client, by its own clock, cannot be sure of it any more.
func (p *Permit) Lost() <-chan struct{} {
	p.IsLost()
	return p.held.lostSignal
}

// IsLost tells the same now. Once it has been true it stays so.
func (p *Permit) IsLost() (lost bool) {
	p.worker.look(func() { lost = p.held.lost() })
	return lost
}

// LostReason is the server's word for the reason, such as "admin"; "" if it is not known, or the
// permit is not lost.
func (p *Permit) LostReason() (reason string) {
	p.worker.look(func() {
		if p.held.lost() {
			reason = p.held.reason()
		}
	})
	return reason
}

// ValidUntil is until when the token is surely this client's, by CLOCK_BOOTTIME. Each keep and each
// answer of the server moves it on. It is the greatest Duration for a local permit.
func (p *Permit) ValidUntil() (until time.Duration) {
	p.worker.look(func() { until = p.held.validUntil() })
	return until
}

// ValidFor is the time until then; 0 once it is lost or released.
func (p *Permit) ValidFor() (left time.Duration) {
	p.worker.look(func() {
		switch {
		case p.held.state != stateHeld || p.held.lost():
		case p.held.local:
			left = never
		default:
			left = latest(0, p.held.validUntil()-p.worker.clock())
		}
	})
	return left
}

// Released tells whether Release was called.
func (p *Permit) Released() (released bool) {
	p.worker.look(func() { released = p.held.state != stateHeld && !p.held.lost() })
	return released
}

// String names the token and what became of it.
func (p *Permit) String() string {
	state := "held"
	p.worker.look(func() {
		switch h := p.held; {
		case h.lost():
			state = "lost"
		case h.local:
			state = "local"
		case h.state == stateReleasing:
			state = "releasing"
		case h.state == stateEnded:
			state = "ended"
		}
	})
	return fmt.Sprintf("<Permit flow %s token %d fence %d, %s>",
		p.held.flow, p.held.tokenID, p.held.fence, state)
}

// Release gives the token back; a second time does nothing, and nor does a nil permit, which stands
// for a rate. outcome says how the call ended; OutcomeOK without it.
//
// It returns false if the token had been lost. It returns Unavailable or OutcomeUnknown when no
// answer comes in time, and the error of ctx when that ends. In each case the client releases the
// token in the background, as soon as it can. After Close it returns Unavailable: the server then
// takes the token back.
func (p *Permit) Release(ctx context.Context, outcome ...Outcome) (held bool, err error) {
	how := OutcomeOK
	if len(outcome) > 0 {
		how = outcome[0]
	}
	if err := checkOutcome(how); err != nil || p == nil {
		return err == nil, err
	}
	return p.release(ctx, newRelease(p.held, how))
}

func (p *Permit) release(ctx context.Context, c *releaseCall) (held bool, err error) {
	runtime.SetFinalizer(p, nil)
	value, err := p.worker.await(ctx, c, func(s *session, now instant) { s.release(c, now, -1) })
	held, _ = value.(bool)
	return held, err
}

// leave is the end of a block, which has done its work whether or not the server is there.
func (p *Permit) leave(ctx context.Context, outcome Outcome) {
	c := newRelease(p.held, outcome)
	c.leaves = true
	if _, err := p.release(ctx, c); err != nil {
		how := "released in the background"
		p.worker.look(func() {
			if p.worker.closed {
				how = "not released"
			}
		})
		p.worker.config.logger.Printf("nowcalls: %s is %s: %s", p, how, err)
	}
}

// Keep renews the hold now. It returns false if the permit is lost.
func (p *Permit) Keep(ctx context.Context) (held bool, err error) {
	isLocal, isHeld := false, false
	p.worker.look(func() {
		isHeld = p.held.state == stateHeld && !p.held.lost()
		isLocal = p.held.local
	})
	if isLocal || !isHeld {
		return isHeld, nil
	}
	value, err := p.worker.ask(ctx, newKeep(p.held), -1)
	renewed, _ := value.(*kept)
	runtime.KeepAlive(p)
	return renewed != nil, err
}

// drop gives the token back: nobody refers to the permit any more.
func (p *Permit) drop() {
	p.worker.do(func(s *session, now instant) {
		if !p.held.open() {
			return
		}
		p.held.dropped = p.held.state == stateHeld && !p.held.lost()
		s.drop(p.held, now)
	})
}
