package nowcalls

import (
	"math"
	"time"
)

// instant is a moment of the client's own clock. It goes on while the machine sleeps.
type instant = time.Duration

const never = instant(math.MaxInt64)

// after is never at the latest.
func after(at instant, pause time.Duration) instant {
	if at > never-pause {
		return never
	}
	return at + pause
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func earliest(first instant, others ...instant) instant {
	for _, other := range others {
		if other < first {
			first = other
		}
	}
	return first
}

func latest(a, b instant) instant {
	if a > b {
		return a
	}
	return b
}
