package nowcalls

import "container/heap"

// entry is something that is due at a moment. number tells entries of one moment apart.
type entry[T any] struct {
	at     instant
	number uint64
	what   T
}

type entries[T any] []entry[T]

func (e entries[T]) Len() int      { return len(e) }
func (e entries[T]) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries[T]) Push(x any)   { *e = append(*e, x.(entry[T])) }
func (e entries[T]) Less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].number < e[j].number)
}

func (e *entries[T]) Pop() any {
	last := len(*e) - 1
	popped := (*e)[last]
	(*e)[last] = entry[T]{}
	*e = (*e)[:last]
	return popped
}

// agenda has entries by their moment.
type agenda[T any] struct {
	heap entries[T]
}

func (a *agenda[T]) add(at instant, number uint64, what T) {
	heap.Push(&a.heap, entry[T]{at, number, what})
}

func (a *agenda[T]) empty() bool     { return len(a.heap) == 0 }
func (a *agenda[T]) first() entry[T] { return a.heap[0] }
func (a *agenda[T]) pop() entry[T]   { return heap.Pop(&a.heap).(entry[T]) }

// keepOnly forgets all others, once the agenda has grown beyond what is current.
func (a *agenda[T]) keepOnly(isCurrent func(entry[T]) bool, current int) {
	if len(a.heap) <= 64+4*current {
		return
	}
	kept := a.heap[:0]
	for _, one := range a.heap {
		if isCurrent(one) {
			kept = append(kept, one)
		}
	}
	for i := len(kept); i < len(a.heap); i++ {
		a.heap[i] = entry[T]{}
	}
	a.heap = kept
	heap.Init(&a.heap)
}
