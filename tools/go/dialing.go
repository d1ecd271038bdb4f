package nowcalls

import (
	"net"
	"strconv"
	"time"
)

const (
	pauseMin     = 50 * time.Millisecond
	pauseMax     = 2 * time.Second
	doublingsMax = 10
)

// uniform draws a random time from low to high.
type uniform func(low, high time.Duration) time.Duration

type address struct {
	host string
	port int
}

func (a address) String() string { return a.host + ":" + strconv.Itoa(a.port) }

// dialString is the same for package net, with brackets around IPv6.
func (a address) dialString() string { return net.JoinHostPort(a.host, strconv.Itoa(a.port)) }

// dialing says which address a session dials next, and when.
//
// Addresses are tried in rows. Between rows, and after a connection that was of no use, comes a
// random pause whose bound doubles. So clients that lose a server do not come back in step.
type dialing struct {
	at        instant // When to dial; never while the client dials or is connected.
	addresses []address
	uniform   uniform
	index     int
	failures  int // Attempts and useless connections since the last useful one.
}

func (d *dialing) address() address { return d.addresses[d.index%len(d.addresses)] }
func (d *dialing) name() string     { return d.address().String() }
func (d *dialing) allFailed() bool  { return d.failures >= len(d.addresses) }
func (d *dialing) begin()           { d.at = never }

func (d *dialing) failed(now instant) {
	d.index++
	d.failures++
	rows, withinRow := d.failures/len(d.addresses), d.failures%len(d.addresses)
	bound := time.Duration(0)
	if withinRow == 0 {
		if rows > doublingsMax {
			rows = doublingsMax
		}
		bound = earliest(pauseMax, pauseMin<<rows)
	}
	d.at = after(now, d.uniform(0, bound))
}

// ended: a useful connection ended. Its address comes first again, after a short pause.
func (d *dialing) ended(now instant) {
	d.failures = 0
	d.at = after(now, d.uniform(0, pauseMin))
}
