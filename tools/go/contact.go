package nowcalls

import "time"

const (
	pingAfter   = 10 * time.Second // Of silence.
	pingPauseMs = 10               // Whatever clientOfflineTime a server tells.
)

// contact is what a session has heard of its server, and when it must ask for a sign of life.
//
// A ping is due after 10 s of silence. While tokens are held, it is also due when no answer has
// confirmed the session for a third of the smallest clientOfflineTime.
type contact struct {
	clock    func() instant
	at       instant // When the latest request that was answered had been sent.
	heardAt  instant
	pingedAt instant // Or the connection began.
	probedAt instant // A ping that has met silence so far; never: none.
}

func newContact(now instant, clock func() instant) *contact {
	return &contact{clock: clock, at: now, heardAt: now, pingedAt: now, probedAt: never}
}

// begin says that a connection stands.
func (c *contact) begin(now instant) {
	c.heard(now)
	c.pingedAt = now
}

// heard counts any byte of the server.
func (c *contact) heard(now instant) {
	c.heardAt = now
	c.probedAt = never
}

func (c *contact) pinged(now instant) {
	c.pingedAt = now
	if c.probedAt == never {
		c.probedAt = now
	}
}

func (c *contact) answered(sentAt instant) { c.at = latest(c.at, sentAt) }

func (c *contact) probes() bool { return c.probedAt != never }

// silentAt is when the silence has lasted too long.
func (c *contact) silentAt(timeout time.Duration) instant { return after(c.probedAt, timeout) }

// pingAt: offlineMs is the smallest clientOfflineTime of a token, -1: there is none.
func (c *contact) pingAt(offlineMs int64) instant {
	at := never
	if !c.probes() {
		at = after(c.heardAt, pingAfter)
	}
	if offlineMs < 0 {
		return at
	}
	pause := offlineMs / 3
	if pause < pingPauseMs {
		pause = pingPauseMs
	}
	return earliest(at, after(latest(c.at, c.pingedAt), millis(pause)))
}
