package nowcalls

import (
	"math"
	"time"
)

// instant is a moment of the client's own clock. It goes on while the machine sleeps.
type instant = time.Duration

const never = instant(math.MaxInt64)

// after is never at the latest. A pause below 0 is a span that its margin has used up.
func after(at instant, pause time.Duration) instant {
	if pause > 0 && at > never-pause {
		return never
	}
	return at + pause
}

// millis is never at the most: a rule may tell a window of any length.
func millis(ms int64) time.Duration {
	if ms > int64(never/time.Millisecond) {
		return never
	}
	return time.Duration(ms) * time.Millisecond
}

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
