package nowcalls

import "fmt"

// Error is implemented by all errors that a client makes on purpose:
//
//	var failure nowcalls.Error
//	if errors.As(err, &failure) { ... }
//
// The others that a call returns are those of its context.
type Error interface {
	error
	ofNowcalls()
}

// BadRequest is the caller's own fault: wrong arguments, a closed client, or a server that is too
// old for it. Code is the error code of PROTOCOL.md, or 0 if no server answered.
type BadRequest struct {
	Message string
	Code    int
}

// PermissionDenied says that the server does not let this client in, or not to this flow. No
// fallback admits the call. It is a BadRequest, too: errors.As finds both.
type PermissionDenied struct {
	BadRequest
}

// Refused says that the server refused. Nothing is held and nothing is counted.
type Refused struct {
	Message string
	Flow    Flow
	// Status is 1 BLOCKED, -2 TOO_MANY_REQUEST, or 3 for NoRule.
	Status int64
	// RefusedBy is the word of PROTOCOL.md for the limit, such as "level" or "queue_timeout", or
	// "".
	RefusedBy string
	// NowCalls and Level are of the rule or of the parameter's value; 0 where the answer has none.
	NowCalls, Level uint64
	// Local: the fallback of this process refused, not the server.
	Local bool
}

// NoRule says that no rule has this flow, so nothing limits the call. The caller decides what that
// means. It is a Refused, too: errors.As finds both.
type NoRule struct {
	Refused
}

// Unavailable says that no server could be asked in time. The request was surely not carried out.
type Unavailable struct {
	Message string
}

// OutcomeUnknown says that the request was sent, and its answer did not come in time. Perhaps it
// was carried out. The client cancels an acquire as soon as it can, so that no token stays behind.
type OutcomeUnknown struct {
	Message string
}

// wrongServer is an Error of no other kind: a server answered as none does.
type wrongServer struct {
	message string
}

func (e *wrongServer) Error() string    { return e.message }
func (e *BadRequest) Error() string     { return e.Message }
func (e *Refused) Error() string        { return e.Message }
func (e *Unavailable) Error() string    { return e.Message }
func (e *OutcomeUnknown) Error() string { return e.Message }

// Unwrap tells the BadRequest that it is.
func (e *PermissionDenied) Unwrap() error { return &e.BadRequest }

// Unwrap tells the Refused that it is.
func (e *NoRule) Unwrap() error { return &e.Refused }

func (*wrongServer) ofNowcalls()    {}
func (*BadRequest) ofNowcalls()     {}
func (*Refused) ofNowcalls()        {}
func (*Unavailable) ofNowcalls()    {}
func (*OutcomeUnknown) ofNowcalls() {}

func badRequest(format string, args ...any) error {
	return &BadRequest{Message: fmt.Sprintf(format, args...)}
}

// isBadRequest tells also of a PermissionDenied.
func isBadRequest(err error) bool {
	switch err.(type) {
	case *BadRequest, *PermissionDenied:
		return true
	}
	return false
}

// withMessage is the same error in other words.
func withMessage(err error, message string) error {
	switch e := err.(type) {
	case *PermissionDenied:
		return &PermissionDenied{BadRequest{message, e.Code}}
	case *BadRequest:
		return &BadRequest{message, e.Code}
	}
	return err
}
