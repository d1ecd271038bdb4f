//go:build !linux

package nowcalls

import (
	"sync"
	"time"
)

// sleepMin is how far the wall clock must have gone ahead of the monotonic one to tell of a sleep.
const sleepMin = time.Second

var clock struct {
	sync.Mutex
	begin, last time.Time
	slept       time.Duration
}

// now is the monotonic clock, and the time in which the machine slept as the wall clock tells it.
// A wall clock that is set forward counts as sleep: then a token is lost too early, which is safe.
func now() instant {
	clock.Lock()
	defer clock.Unlock()
	read := time.Now()
	if clock.begin.IsZero() {
		clock.begin, clock.last = read, read
	}
	awake := read.Sub(clock.last)
	if ahead := read.Round(0).Sub(clock.last.Round(0)) - awake; ahead > sleepMin {
		clock.slept += ahead
	}
	clock.last = read
	return read.Sub(clock.begin) + clock.slept
}
