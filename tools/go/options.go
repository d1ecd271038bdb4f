package nowcalls

import "time"

// Outcome is how a call ended. The server counts them.
type Outcome string

// The outcomes that a release may tell.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeFailed  Outcome = "failed"
	OutcomeTimeout Outcome = "timeout"
)

func checkOutcome(outcome Outcome) error {
	switch outcome {
	case OutcomeOK, OutcomeFailed, OutcomeTimeout:
		return nil
	}
	return badRequest("outcome must be one of ok, failed, timeout, not '%s'", outcome)
}

// Option says more of one call.
type Option struct {
	name string
	set  func(*options) error
}

// options of a call, as its Options say.
type options struct {
	count       int
	wait        time.Duration
	hasWait     bool
	param       any
	prioritized bool
	keep        KeepMode
	timeout     time.Duration // -1: that of the client.
	onLost      func(*Permit)
	noSleep     bool
}

// Count is the number of calls that are asked for; 1 without it.
func Count(count int) Option {
	return Option{"Count", func(o *options) error {
		o.count = count
		return nil // It is checked with the flow.
	}}
}

// Wait is how long an acquire may wait for room; 0: not at all. Without it, as the rule has it.
func Wait(wait time.Duration) Option {
	return Option{"Wait", func(o *options) error {
		o.wait, o.hasWait = wait, true
		return checkTime("wait", wait)
	}}
}

// Param is the value of the rule's parameter, if it has one: an integer, float, bool or string.
func Param(value any) Option {
	return Option{"Param", func(o *options) error {
		o.param = value
		return nil // It is checked with the flow.
	}}
}

// Prioritized calls wait before those that are not.
func Prioritized() Option {
	return Option{"Prioritized", func(o *options) error {
		o.prioritized = true
		return nil
	}}
}

// Keep says whether this permit is kept, instead of the client's setting.
func Keep(mode KeepMode) Option {
	return Option{"Keep", func(o *options) error {
		o.keep = mode
		return checkKeep(mode)
	}}
}

// Timeout is what this call may take besides its wait, instead of the client's setting. Then the
// fallback decides. A context that ends before gives the call up.
func Timeout(timeout time.Duration) Option {
	return Option{"Timeout", func(o *options) error {
		o.timeout = timeout
		return checkTime("timeout", timeout)
	}}
}

// OnLost is called when this permit is lost, before the client's OnLost.
func OnLost(told func(*Permit)) Option {
	return Option{"OnLost", func(o *options) error {
		o.onLost = told
		return nil
	}}
}

// NoSleep: do not sleep until the calls may be made. The Wait of the answer, or of the permits,
// says how long to sleep.
func NoSleep() Option {
	return Option{"NoSleep", func(o *options) error {
		o.noSleep = true
		return nil
	}}
}

// readOptions refuses those that mean nothing to the method.
func readOptions(method string, given []Option, keep KeepMode, meant ...string) (options, error) {
	o := options{count: 1, keep: keep, timeout: -1}
	for _, one := range given {
		isMeant := false
		for _, name := range meant {
			isMeant = isMeant || name == one.name
		}
		if !isMeant || one.set == nil {
			return o, badRequest("%s takes no option %s", method, one.name)
		}
		if err := one.set(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}
