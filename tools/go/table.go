package nowcalls

import "sort"

// callTable has the calls without answer of a session, and their deadlines.
type callTable struct {
	last      uint64           // Number.
	awaited   map[uint64]asked // By their number: with a caller, without outcome.
	deadlines agenda[asked]    // Calls may have ended.
	queued    map[uint64]asked // For the next connection, by their number.
	inFlight  map[uint32]asked // By their msgid.
}

func newCallTable() *callTable {
	return &callTable{awaited: map[uint64]asked{}, queued: map[uint64]asked{},
		inFlight: map[uint32]asked{}}
}

// begin takes a call with a caller.
func (t *callTable) begin(c asked) {
	t.number(c)
	b := c.base()
	t.awaited[b.number] = c
	t.deadlines.add(b.deadline, b.number, c)
	t.deadlines.keepOnly(func(e entry[asked]) bool {
		return t.awaited[e.number] != nil
	}, len(t.awaited))
}

func (t *callTable) number(c asked) {
	if b := c.base(); b.number == 0 {
		t.last++
		b.number = t.last
	}
}

func (t *callTable) settle(c asked, value any, err error) {
	delete(t.awaited, c.base().number)
	c.base().settle(value, err)
}

func (t *callTable) queue(c asked) {
	t.number(c)
	t.queued[c.base().number] = c
}

func (t *callTable) dequeue(c asked) { delete(t.queued, c.base().number) }

func (t *callTable) takeQueue() []asked {
	taken := inOrder(t.queued)
	t.queued = map[uint64]asked{}
	return taken
}

func (t *callTable) sent(msgid uint32, c asked) {
	t.number(c)
	t.inFlight[msgid] = c
}

func (t *callTable) answered(msgid uint32) { delete(t.inFlight, msgid) }

func (t *callTable) takeInFlight() []asked {
	taken := inOrder(t.inFlight)
	t.inFlight = map[uint32]asked{}
	return taken
}

func (t *callTable) allAwaited() []asked { return inOrder(t.awaited) }

// persistent counts releases and cancels without answer.
func (t *callTable) persistent() int {
	count := 0
	for _, c := range t.inFlight {
		if c.base().persistent {
			count++
		}
	}
	for _, c := range t.queued {
		if c.base().persistent {
			count++
		}
	}
	return count
}

func (t *callTable) nextDeadline() instant {
	for !t.deadlines.empty() && t.awaited[t.deadlines.first().number] == nil {
		t.deadlines.pop()
	}
	if t.deadlines.empty() {
		return never
	}
	return t.deadlines.first().at
}

// overdue returns a call whose deadline has come, or nil.
func (t *callTable) overdue(now instant) asked {
	if t.nextDeadline() > now {
		return nil
	}
	return t.deadlines.first().what
}

// inOrder sorts calls by when they were asked.
func inOrder[K comparable](calls map[K]asked) []asked {
	sorted := make([]asked, 0, len(calls))
	for _, c := range calls {
		sorted = append(sorted, c)
	}
	sort.Slice(sorted, func(i, j int) bool {
		return sorted[i].base().number < sorted[j].base().number
	})
	return sorted
}
