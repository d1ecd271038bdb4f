package nowcalls

import "time"

// Outcome is how a call ended.
type Outcome string

const (
	OutcomeOK      Outcome = "ok"
	OutcomeFailed  Outcome = "failed"
	OutcomeTimeout Outcome = "timeout"
)

type Permit struct{ held *held }
type options struct {
	prioritized, noSleep, hasWait bool
	wait                          time.Duration
	keep                          KeepMode
	onLost                        func(*Permit)
}

// Stats are figures of a client.
type Stats struct {
	Connected                                                bool
	Address                                                  string
	ClientID                                                 string
	SessionsOnline                                           uint64 // When it last connected.
	Held                                                     int    // Permits on the server.
	Waiting                                                  int    // Calls with a caller.
	Unsettled                                                int    // Releases and cancels without answer.
	TellsLost                                                bool   // The server tells of lost tokens.
	LocalGranted, LocalRefused, LocalPassed                  uint64
	Connects, Disconnects, Kept, Lost, Cancelled, AskedAgain uint64
}
