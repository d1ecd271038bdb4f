package nowcalls

import (
	"context"
	"sync"
	"time"
)

const (
	readBytes = 64 * 1024
	// Timers stand still while the machine sleeps; the clock of tokens does not.
	heldSleepMax = time.Second
	sleepMax     = time.Minute
	// timerSlack is what two clocks that are read one after the other may differ.
	timerSlack = time.Millisecond
	// brokenRead is how long a connection to which nothing can be written is read for the reason.
	brokenRead = time.Second
)

// worker drives the session of a client: it dials, reads, writes, and keeps time.
//
// mu guards all fields and the session, and is held for moments only: nothing waits, logs or calls
// the program under it. One goroutine keeps time (run), one logs and calls back (tell). While there
// is a connection, one reads and one writes. A dial has one of its own.
type worker struct {
	config   *config
	clock    func() instant
	mu       sync.Mutex
	session  *session
	link     *link // nil: no connection.
	dialing  bool
	closed   bool      // No more calls.
	drain    instant   // Until when releases on their way are awaited; once closed.
	rings    time.Time // When run looks next, by the clock of timers.
	wake     chan struct{}
	lost     []*held // To tell of.
	lines    []string
	toTell   chan struct{}
	ended    bool // The session is stopped.
	dials    context.Context
	endDials context.CancelFunc
	running  sync.WaitGroup
	telling  sync.WaitGroup
}

// link is one connection.
type link struct {
	dialed
	toWrite chan struct{}
	ended   chan struct{}
}

func newWorker(c *config, instance uint64, u uniform, clock func() instant) *worker {
	w := &worker{config: c, clock: clock, wake: make(chan struct{}, 1),
		toTell: make(chan struct{}, 1)}
	w.session = newSession(c, clock(), u, instance, newRequestID, clock)
	w.dials, w.endDials = context.WithCancel(context.Background())
	w.running.Add(1)
	w.telling.Add(1)
	go w.run()
	go w.tell()
	return w
}

// do has the session do something, on the goroutine of a caller.
func (w *worker) do(what func(s *session, now instant)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what(w.session, w.clock())
	w.afterwards()
}

// look reads what the session knows.
func (w *worker) look(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

func poke(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default: // It is poked already.
	}
}

// afterwards follows whatever the session was told. mu is held.
func (w *worker) afterwards() {
	w.lost = append(w.lost, w.session.takeLost()...)
	w.lines = append(w.lines, w.session.takeWarnings()...)
	if !w.ended && (len(w.lost) > 0 || len(w.lines) > 0) {
		poke(w.toTell)
	}
	if w.link != nil && len(w.session.exchange.output) > 0 {
		poke(w.link.toWrite)
	}
	// Of a machine that has slept the timer stood still, so it rings later than was meant.
	if time.Until(w.rings) > w.delay()+timerSlack {
		poke(w.wake)
	}
}

// delay is how long nothing will be due. mu is held.
func (w *worker) delay() time.Duration {
	at, longest := w.session.wakeup(), sleepMax
	if w.session.holds() {
		longest = heldSleepMax
	}
	if w.closed {
		at = earliest(at, w.drain)
		if w.isDrained() {
			return 0
		}
	}
	return earliest(latest(0, at-w.clock()), longest)
}

func (w *worker) isDrained() bool { return !w.session.ready() || w.session.isSettled() }

// run keeps time, until the client is closed.
func (w *worker) run() {
	defer w.running.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.wake:
			if !timer.Stop() {
				select {
				case <-timer.C:
				default:
				}
			}
		}
		delay, goesOn := w.turn()
		if !goesOn {
			return
		}
		timer.Reset(delay)
	}
}

// turn does what is due, and says how long nothing will be.
func (w *worker) turn() (delay time.Duration, goesOn bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.clock()
	if broken := w.session.tick(at); broken != "" {
		w.detach(broken)
	}
	if w.closed && (w.isDrained() || at >= w.drain) {
		w.end()
		return 0, false
	}
	if w.link == nil && !w.dialing && !w.closed && at >= w.session.dialing.at {
		w.dialing = true
		w.session.dialing.begin()
		w.running.Add(1)
		go w.dial(w.session.dialing.address(), w.session.connectTimeout())
	}
	w.afterwards()
	delay = w.delay()
	w.rings = time.Now().Add(delay)
	return delay, true
}

// end ends all calls and the connection. mu is held.
func (w *worker) end() {
	w.detach("the client was closed")
	w.session.stop("the client is closed")
	w.endDials()
	w.afterwards()
	w.ended = true
	close(w.toTell)
}

// close ends the client, and waits until nothing of it runs.
func (w *worker) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		w.drain = after(w.clock(), w.config.timeout)
		w.session.close(w.clock())
		w.afterwards()
		w.endDials()
		poke(w.wake)
	}
	w.mu.Unlock()
	w.running.Wait()
	w.telling.Wait()
}

// The connection.

func (w *worker) dial(to address, timeout time.Duration) {
	defer w.running.Done()
	got, failure := dial(w.dials, to, timeout, w.config.tls)
	var secret string
	var secretErr error
	private := failure == nil && (w.config.tls != nil || staysHere(got.raw))
	if private && w.config.secret.source != nil {
		secret, secretErr = w.config.secret.read() // A function of the program: not under mu.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialing = false
	switch {
	case w.ended || w.closed:
		if failure == nil {
			got.raw.Close()
		}
		return
	case failure != nil:
		if failure.denied {
			w.session.refusedCertificate(w.clock(), failure.why)
		}
		w.session.connectFailed(w.clock(), failure.why)
	default:
		w.session.readSecret = func() (string, error) { return secret, secretErr }
		w.attach(got, private)
	}
	w.afterwards()
}

// attach begins to use a connection. mu is held.
func (w *worker) attach(got dialed, private bool) {
	l := &link{got, make(chan struct{}, 1), make(chan struct{})}
	w.link = l
	if refusal := w.session.connected(w.clock(), private); refusal != "" {
		w.detach(refusal)
		return
	}
	w.running.Add(2)
	go w.read(l)
	go w.write(l)
}

// detach ends the connection, if there is one. mu is held.
func (w *worker) detach(reason string) {
	l := w.link
	if l == nil {
		return
	}
	w.link = nil
	l.raw.Close() // Of TLS: without its farewell, which may wait for the peer.
	close(l.ended)
	w.session.disconnected(w.clock(), reason)
}

func (w *worker) read(l *link) {
	defer w.running.Done()
	buffer := make([]byte, readBytes)
	for {
		count, err := l.conn.Read(buffer)
		if !w.take(l, buffer[:count], err) {
			return
		}
	}
}

// take handles what was read. False: the connection has ended.
func (w *worker) take(l *link, data []byte, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.link != l {
		return false
	}
	broken := ""
	if len(data) > 0 {
		broken = w.session.received(data, w.clock())
	}
	if broken == "" && err != nil {
		why := whyEnded(err, false)
		if denies(err) { // TLS 1.3 tells it behind the handshake.
			w.session.refusedCertificate(w.clock(), why)
		}
		broken = w.session.endOfConnection(why)
	}
	if broken != "" {
		w.detach(broken)
	}
	w.afterwards()
	return broken == ""
}

func (w *worker) write(l *link) {
	defer w.running.Done()
	var buffer []byte
	for {
		select {
		case <-l.toWrite:
		case <-l.ended:
			return
		}
		w.mu.Lock()
		if w.link != l {
			w.mu.Unlock()
			return
		}
		buffer = w.session.takeOutput(buffer)
		w.mu.Unlock()
		if _, err := l.conn.Write(buffer); err != nil {
			// Reading meets the same error, or the server's reason.
			l.raw.SetReadDeadline(time.Now().Add(brokenRead))
			return
		}
	}
}

// What the program is told.

func (w *worker) tell() {
	defer w.telling.Done()
	for range w.toTell {
		w.tellAll()
	}
	w.tellAll()
}

func (w *worker) tellAll() {
	w.mu.Lock()
	lost, lines := w.lost, w.lines
	w.lost, w.lines = nil, nil
	w.mu.Unlock()
	for _, line := range lines {
		w.config.logger.Print("nowcalls: " + line)
	}
	for _, h := range lost {
		w.tellLost(h)
	}
}

func (w *worker) tellLost(h *held) {
	var told func(*Permit)
	owned := false
	w.look(func() { told, owned = h.onLost, h.owned })
	for _, callback := range []func(*Permit){told, w.config.onLost} {
		if callback != nil && owned {
			w.callBack(callback, h)
		}
	}
}

func (w *worker) callBack(callback func(*Permit), h *held) {
	defer func() {
		if failure := recover(); failure != nil {
			w.config.logger.Printf("nowcalls: OnLost of token %d failed: %v", h.tokenID, failure)
		}
	}()
	callback(&Permit{h, w})
}
