package nowcalls

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// Listings, page by page, of a scripted server.

// newPaged answers a listing with its pages, one after the other. The last one is answered for
// ever, each time with another cursor. Each takes as long as the clock leaps.
func newPaged(
	t *testing.T, clock *leapingClock, leap time.Duration, pages ...[]any,
) *scripted {
	t.Helper()
	var asked int64
	return newScripted(t, func(peer net.Conn, msgid any, method string, _ []any) {
		if method != "flows" {
			send(peer, 1, msgid, nil, honest(method))
			return
		}
		clock.leap(leap)
		number := int(atomic.AddInt64(&asked, 1))
		if number < len(pages) {
			send(peer, 1, msgid, nil, pages[number-1])
			return
		}
		last := pages[len(pages)-1]
		if last[1] != nil {
			last = []any{last[0], number}
		}
		send(peer, 1, msgid, nil, last)
	})
}

func TestAProgramMayTakeItsTimeForItsRows(t *testing.T) {
	row := Row{"flow_id": 1}
	clock := &leapingClock{}
	peer := newPaged(t, clock, 0, []any{[]any{row}, 1}, []any{[]any{}, 2}, []any{[]any{row}, 3},
		[]any{[]any{row}, nil})
	client := newSleeper(t, Config{Address: peer.address}, clock)
	rows, found := client.Flows(background), 0
	clock.leap(time.Hour)
	for rows.Next() {
		clock.leap(time.Hour)
		found++
	}
	check(t, rows.Err())
	equal(t, "rows", found, 3)
}

func TestPagesThatDoNotEndAreLeft(t *testing.T) {
	ofOneCursor := []any{[]any{Row{"flow_id": 1}}, 7}
	for name, pages := range map[string][][]any{
		"empty": {{[]any{}, 0}}, "of one cursor": {ofOneCursor, ofOneCursor, ofOneCursor},
	} {
		clock := &leapingClock{}
		peer := newPaged(t, clock, defaultTimeout*2/5, pages...)
		client := newSleeper(t, Config{Address: peer.address}, clock)
		rows := client.Flows(background)
		for rows.Next() {
		}
		contains(t, rows.Err(), "flows: the server's pages do not end")
		as[Error](t, rows.Err())
		var fault *BadRequest
		equal(t, name+": the program's fault", errors.As(rows.Err(), &fault), false)
		equal(t, name+": goes on", rows.Next(), false)
	}
}
