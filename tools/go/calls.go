package nowcalls

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Statuses and error codes of PROTOCOL.md.
const (
	statusBadRequest     = -4
	statusTooManyRequest = -2
	statusFail           = -1
	statusOK             = 0
	statusBlocked        = 1
	statusShouldWait     = 2
	statusNoRule         = 3
	statusNotAvailable   = 5
	statusReleaseOK      = 6

	codeMalformed     = 1
	codeUnknownMethod = 2
	codeBadParams     = 3
	codeHelloState    = 4
	codeUnsupported   = 6
	codePermission    = 9
)

var (
	// errTokenGone: an attempt before was granted, and some of its tokens have ended since.
	errTokenGone = errors.New("a token ended before its answer came")
	// errAskAgain: the server ends, and the call was not carried out: ask on the next connection.
	errAskAgain = errors.New("the server ends")
)

// call is one request and its outcome: a value or an error, set once.
type call struct {
	method     string
	args       []any
	repeatable bool          // Asked again on the next connection when this one breaks.
	persistent bool          // Asked until a server answers, although nobody waits any more.
	wantsRoom  bool          // May fall back, but not while it mayWait.
	patience   time.Duration // What the server may take, beyond the timeout.
	number     uint64        // The order in which calls were asked; 0: not yet.
	deadline   instant       // When the session gives it up.
	attempts   int           // How often it was sent.
	unsettled  bool          // It was sent, and no answer told whether it was carried out.
	strayed    bool          // An attempt was left on a connection that broke: it may still arrive.
	left       bool          // Its caller will not take the outcome.
	wakeAt     instant       // When its caller, who sleeps, is to have the outcome.
	sentAt     instant
	done       bool
	value      any
	err        error
	notify     func() // Called once the outcome is set; set by whoever waits.
}

// asked is a call of some kind.
type asked interface {
	base() *call
	// mayWait tells whether its caller said that it may wait for room beyond now.
	mayWait(now instant) bool
	params(now instant) []any
	// decode returns the value of an answer, or an Error, errAskAgain, errTokenGone or wrong.
	decode(result any) (any, error)
}

func newCall(method string, args ...any) call {
	return call{method: method, args: args, repeatable: true, deadline: never, wakeAt: never}
}

func (c *call) base() *call              { return c }
func (c *call) mayWait(instant) bool     { return false }
func (c *call) params(now instant) []any { return c.args }

func (c *call) settle(value any, err error) {
	if c.done {
		return
	}
	c.done, c.value, c.err = true, value, err
	if c.notify != nil {
		c.notify()
	}
}

// noAnswer is the error of a call that gets no answer any more.
func (c *call) noAnswer(reason string) error {
	if c.unsettled {
		return &OutcomeUnknown{fmt.Sprintf(
			"%s: no answer, perhaps it was carried out: %s", c.method, reason)}
	}
	return &Unavailable{fmt.Sprintf("%s: not carried out: %s", c.method, reason)}
}

// errorOf is the error for `error` of a response. What it answers was not carried out.
func errorOf(value any) error {
	read := readArray("an error", value, 3)
	code := read.int(0, "an error code")
	message := read.text(1, "an error") + ": " + read.text(2, "an error")
	switch {
	case read.err != nil:
		return read.err
	case code == codePermission:
		return &PermissionDenied{BadRequest{message, int(code)}}
	case code >= codeMalformed && code <= codeHelloState || code == codeUnsupported:
		return &BadRequest{message, int(code)}
	}
	return &Unavailable{message} // OVERLOADED, CONFLICT, INTERNAL, or of a later server.
}

// refusal is the error for a status that is neither OK nor NOT_AVAILABLE.
func refusal(flow Flow, status int64, refusedBy string, nowCalls, level uint64) error {
	switch status {
	case statusNoRule:
		return &NoRule{Refused{Message: fmt.Sprintf("flow %s has no rule", flow),
			Flow: flow, Status: status}}
	case statusBadRequest:
		reason := ""
		if refusedBy != "" {
			reason = ", refused by " + refusedBy
		}
		return badRequest("flow %s: the server calls the request wrong%s", flow, reason)
	}
	by, full := refusedBy, ""
	if by == "" {
		by = fmt.Sprint(status)
	}
	if level > 0 || nowCalls > 0 {
		full = fmt.Sprintf(": %d of %d in progress", nowCalls, level)
	}
	return &Refused{Message: fmt.Sprintf("flow %s refused by %s%s", flow, by, full),
		Flow: flow, Status: status, RefusedBy: refusedBy, NowCalls: nowCalls, Level: level}
}

// simpleCall asks for something that neither holds nor counts.
type simpleCall struct {
	call
	read func(result any) (any, error)
}

func (c *simpleCall) decode(result any) (any, error) { return c.read(result) }

func newPing() *simpleCall {
	return &simpleCall{newCall("ping"), func(result any) (any, error) {
		read := readArray("an answer", result, 1)
		return read.uint(0, "ledger_ms"), read.err
	}}
}

// newRowCall asks for one map.
func newRowCall(method string, args ...any) *simpleCall {
	return &simpleCall{newCall(method, args...), func(result any) (any, error) {
		row, isMap := result.(Row)
		if !isMap {
			return nil, wrongly("the answer to %s is %s", method, repr(result))
		}
		return row, nil
	}}
}

// page has rows, and the cursor of those behind them.
type page struct {
	rows   []Row
	cursor any
}

func newPageCall(method string, args ...any) *simpleCall {
	return &simpleCall{newCall(method, args...), func(result any) (any, error) {
		read := readArray("a page", result, 2)
		if read.err != nil {
			return nil, read.err
		}
		listed := readArray("rows", read.parts[0], 0)
		got := page{cursor: read.parts[1]}
		for _, one := range listed.parts {
			row, isMap := one.(Row)
			if !isMap {
				return nil, wrongly("a row is no map")
			}
			got.rows = append(got.rows, row)
		}
		return got, listed.err
	}}
}

// newCancel ends whatever a request id stands for; nobody waits for it.
func newCancel(requestID uint64) *simpleCall {
	cancel := &simpleCall{newCall("cancel", requestID), func(result any) (any, error) {
		return result, nil
	}}
	cancel.persistent = true
	return cancel
}

// releaseCall gives a token back. Value: true, or false if the token had ended before.
type releaseCall struct {
	call
	held   *held
	leaves bool // The end of a block, which does not wait for a server that is not there.
}

func newRelease(h *held, outcome Outcome) *releaseCall {
	release := &releaseCall{call: newCall("release", h.tokenID), held: h}
	if outcome != OutcomeOK {
		release.args = append(release.args, []option{{"outcome", string(outcome)}})
	}
	release.persistent = true
	return release
}

func (c *releaseCall) forgetOutcome() { c.args = c.args[:1] }

func (c *releaseCall) decode(result any) (any, error) {
	// After a first attempt without an answer, "gone" may be the work of that attempt.
	read := readArray("an answer", result, 1)
	status := read.int(0, "status")
	return status == statusReleaseOK || c.attempts > 1, read.err
}

// keepCall renews a token's hold. Value: *kept, nil if the token has ended. It is not asked again:
// the next connection begins with a keep of its own.
type keepCall struct {
	call
	held *held
}

type kept struct {
	holdMs int64
	terms  *terms
}

func newKeep(h *held) *keepCall {
	keep := &keepCall{newCall("keep", h.tokenID), h}
	keep.repeatable = false
	return keep
}

func (c *keepCall) decode(result any) (any, error) {
	read := readArray("an answer", result, 2)
	if status := read.int(0, "status"); status != statusOK || read.err != nil {
		return (*kept)(nil), read.err
	}
	got := &kept{holdMs: read.hold(1)}
	got.terms = read.terms(2)
	return got, read.err
}

// terms: nil is an older server.
func (a *answer) terms(index int) *terms {
	if a.err != nil || len(a.parts) <= index || a.parts[index] == nil {
		return nil
	}
	read := readArray("terms", a.parts[index], 3)
	got := &terms{read.uint(0, "a strategy"), read.hold(1), read.hold(2)}
	a.err = read.err
	return got
}

// Rate is the answer to a request for calls a second that passed.
type Rate struct {
	// Remaining is the number of calls that are left now; -1 if nobody can tell.
	Remaining int64
	// Wait is how long to sleep before the call. It is above 0 only if the request was told not to
	// sleep, or if the wait goes beyond its timeout.
	Wait time.Duration
}

// rateCall asks for calls a second. It is not asked again: each time counts. Value: Rate.
type rateCall struct {
	call
	flow   Flow
	count  int
	values []any // nil: the rule has no parameter.
	sleep  bool
	passed *Rate
}

func newRateCall(flow Flow, count int, values []any, prioritized, sleep bool) (*rateCall, error) {
	if err := checkFlow(flow, count); err != nil {
		return nil, err
	}
	method := "request"
	args := []any{flow, count}
	if values != nil {
		method = "request_param"
		listed := make([]any, len(values))
		for i, value := range values {
			var err error
			if listed[i], err = scalar("a value", value); err != nil {
				return nil, err
			}
		}
		values = listed
		args = append(args, listed)
	}
	if prioritized {
		args = append(args, true)
	}
	request := &rateCall{newCall(method, args...), flow, count, values, sleep, nil}
	request.repeatable, request.wantsRoom = false, true
	return request, nil
}

func (c *rateCall) decode(result any) (any, error) {
	read := readArray("an answer", result, 4)
	status, remaining := read.int(0, "status"), read.int(1, "remaining")
	wait, refusedBy := read.hold(2), ""
	if status != statusOK && status != statusShouldWait {
		refusedBy = read.textOrNil(3, "refused_by")
	}
	if read.err != nil {
		return nil, read.err
	}
	if status == statusOK || status == statusShouldWait {
		return Rate{remaining, millis(wait)}, nil
	}
	return nil, refusal(c.flow, status, refusedBy, 0, 0)
}

// newRequestID draws 63 random bits, never 0: unique also across processes that share a client id.
func newRequestID() uint64 {
	var drawn [8]byte
	if _, err := rand.Read(drawn[:]); err != nil {
		panic("nowcalls: no random numbers: " + err.Error())
	}
	id := binary.BigEndian.Uint64(drawn[:]) >> 1
	if id == 0 {
		return 1
	}
	return id
}
