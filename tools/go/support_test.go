package nowcalls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// What the tests stand on: a real server, a proxy that cuts connections, and a scripted server.

const patience = 20 * time.Second

var background = context.Background()

func binDir() string {
	if dir := os.Getenv("NOWCALLS_BIN_DIR"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "build", "bin")
}

// pollUntil tells whether the condition comes true in time.
func pollUntil(condition func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return condition()
}

func soon(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !pollUntil(condition) {
		t.Fatalf("it did not come true: %s", what)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, what string, came, expected any) {
	t.Helper()
	if came != expected {
		t.Fatalf("%s: %v, not %v", what, came, expected)
	}
}

// as finds an error of this type.
func as[T error](t *testing.T, err error) T {
	t.Helper()
	var found T
	if !errors.As(err, &found) {
		t.Fatalf("%T: %v; not %T", err, err, found)
	}
	return found
}

func contains(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Fatalf("%v, not %q", err, words)
	}
}

// server is a real one with a ledger of its own, on a free port that it keeps over restarts.
type server struct {
	dir       string
	address   string
	arguments []string
	process   *exec.Cmd
	log       *os.File
}

func newServer(arguments ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "nowcalls-go-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, address: "127.0.0.1:0", arguments: arguments}
	if s.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	return s, s.start()
}

func (s *server) start() error {
	file := filepath.Join(s.dir, "port")
	os.Remove(file)
	s.process = exec.Command(filepath.Join(binDir(), "nowcalls-server"), append([]string{
		"--listen", s.address, "--port-file", file, "--data-dir", filepath.Join(s.dir, "data"),
	}, s.arguments...)...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		return err
	}
	if !pollUntil(func() bool { port, _ := os.ReadFile(file); return len(port) > 0 }) {
		return fmt.Errorf("the server did not start:\n%s", s.logged())
	}
	port, err := os.ReadFile(file)
	s.address = "127.0.0.1:" + strings.TrimSpace(string(port))
	return err
}

func (s *server) logged() string {
	text, _ := os.ReadFile(s.log.Name())
	return string(text)
}

func (s *server) kill() {
	s.process.Process.Kill()
	s.process.Wait()
}

func (s *server) remove() {
	s.kill()
	s.log.Close()
	os.RemoveAll(s.dir)
}

// call is one by a client that is not the one under test.
func (s *server) call(method string, params ...any) (any, error) {
	conn, err := net.DialTimeout("tcp", s.address, patience)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if params == nil {
		params = []any{}
	}
	asked, err := msgpack.Marshal([]any{0, 1, method, params})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(asked); err != nil {
		return nil, err
	}
	decoder := msgpack.NewDecoder(conn)
	decoder.UseLooseInterfaceDecoding(true)
	value, err := decoder.DecodeInterfaceLoose()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	parts := value.([]any)
	if parts[2] != nil {
		return nil, fmt.Errorf("%s: %v", method, parts[2])
	}
	return plainNumbers(parts[3]), nil
}

func (s *server) flow(t *testing.T, flow any) Row {
	t.Helper()
	row, err := s.call("flow", flow)
	check(t, err)
	return row.(Row)
}

func (s *server) nowCalls(t *testing.T, flow Flow) int64 {
	t.Helper()
	return s.flow(t, flow.asked())["now_calls"].(int64)
}

func (s *server) waiters(t *testing.T, flow Flow) int64 {
	t.Helper()
	return s.flow(t, flow.asked())["waiters"].(int64)
}

// shared is the server of all tests that do not end theirs.
var shared struct {
	once sync.Once
	*server
	err error
}

var flowIDs int64 = 1000

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	code := m.Run()
	if shared.server != nil {
		shared.remove()
	}
	os.Exit(code)
}

// served is a test with a server and a namespace of its own.
type served struct {
	*testing.T
	server    *server
	namespace string
	rules     []map[string]any
}

func onServer(t *testing.T) *served {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = newServer() })
	check(t, shared.err)
	return &served{T: t, server: shared.server, namespace: namespaceOf(t)}
}

func onOwnServer(t *testing.T, arguments ...string) *served {
	t.Helper()
	s, err := newServer(arguments...)
	check(t, err)
	t.Cleanup(s.remove)
	return &served{T: t, server: s, namespace: namespaceOf(t)}
}

func namespaceOf(t *testing.T) string {
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	if len(name) > 100 {
		name = name[:100]
	}
	return name
}

// set is a change of a rule's clusterConfig.
type set map[string]any

// load loads one more rule of calls in progress whose tokens are kept, with a long hold unless
// config has another.
func (s *served) load(count float64, config set) Flow {
	s.Helper()
	flow := atomic.AddInt64(&flowIDs, 1)
	s.loadRule(map[string]any{"resource": fmt.Sprintf("r%d", flow)}, count, flow, config)
	return ID(flow)
}

func (s *served) loadRule(fields map[string]any, count float64, flow int64, config set) {
	s.Helper()
	cluster := set{"flowId": flow, "thresholdType": 1, "resourceTimeoutStrategy": 2,
		"resourceTimeout": 30_000, "clientOfflineTime": 30_000}
	if flow == 0 {
		delete(cluster, "flowId")
	}
	for name, value := range config {
		cluster[name] = value
	}
	rule := map[string]any{"grade": 0, "clusterMode": true, "count": count, "clusterConfig": cluster}
	for name, value := range fields {
		rule[name] = value
	}
	s.rules = append(s.rules, rule)
	text, err := json.Marshal(s.rules)
	check(s.T, err)
	_, err = s.server.call("rules_load", s.namespace, string(text))
	check(s.T, err)
}

// client is one that tells of each failure, unless the settings say that it is to fall back.
func (s *served) client(settings Config) *Client {
	s.Helper()
	if settings.Address == "" {
		settings.Address = s.server.address
	}
	settings.Namespace = s.namespace
	return newClient(s.T, settings)
}

func newClient(t *testing.T, settings Config) *Client {
	t.Helper()
	if settings.Fallback == "" {
		settings.Fallback = FallbackFail
	}
	client, err := New(settings)
	check(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func acquire(t *testing.T, client *Client, flow Flow, opts ...Option) *Permit {
	t.Helper()
	permit, err := client.Acquire(background, flow, opts...)
	check(t, err)
	return permit
}

// release returns whether the permit was not lost.
func release(t *testing.T, permit *Permit) bool {
	t.Helper()
	held, err := permit.Release(background)
	check(t, err)
	return held
}

func (s *served) releasedAll(flow Flow) {
	s.Helper()
	soon(s.T, "no call is in progress", func() bool { return s.server.nowCalls(s.T, flow) == 0 })
}

// logBook is a logger whose lines can be read.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBook) logger() *log.Logger { return log.New(b, "", 0) }

// proxy passes bytes between clients and a server, and breaks connections when told to.
type proxy struct {
	listener net.Listener
	address  string
	target   string
	requests atomic.Bool // false swallows what the client sends. Both: a black hole.
	answers  atomic.Bool
	accepts  atomic.Bool // false ends new connections at once.
	mu       sync.Mutex
	open     map[net.Conn]bool
	running  sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &proxy{listener: listener, address: listener.Addr().String(), target: target,
		open: map[net.Conn]bool{}}
	p.requests.Store(true)
	p.answers.Store(true)
	p.accepts.Store(true)
	p.running.Add(1)
	go p.accept()
	t.Cleanup(func() {
		listener.Close()
		p.cut()
		p.running.Wait()
	})
	return p
}

func (p *proxy) accept() {
	defer p.running.Done()
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if !p.accepts.Load() {
			client.Close()
			continue
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = true, true
		p.mu.Unlock()
		p.running.Add(2)
		go p.pump(client, server, &p.requests)
		go p.pump(server, client, &p.answers)
	}
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		conn.Close()
	}
}

func (p *proxy) pump(from, to net.Conn, passes *atomic.Bool) {
	defer p.running.Done()
	buffer := make([]byte, 65536)
	for {
		count, err := from.Read(buffer)
		if passes.Load() && count > 0 {
			to.Write(buffer[:count])
		}
		if err != nil {
			break
		}
	}
	from.Close()
	to.Close()
	p.mu.Lock()
	delete(p.open, from)
	delete(p.open, to)
	p.mu.Unlock()
}

// scripted is a server that answers each request with what answer sends.
type scripted struct {
	listener net.Listener
	address  string
	answer   func(peer net.Conn, msgid any, method string, params []any)
	running  sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

func newScripted(
	t *testing.T, answer func(peer net.Conn, msgid any, method string, params []any),
) *scripted {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	return serveScripted(t, listener, answer)
}

func serveScripted(
	t *testing.T, listener net.Listener, answer func(net.Conn, any, string, []any),
) *scripted {
	s := &scripted{listener: listener, address: listener.Addr().String(), answer: answer}
	s.running.Add(1)
	go s.serve()
	t.Cleanup(s.close)
	return s
}

func (s *scripted) close() {
	s.listener.Close()
	s.cut()
	s.running.Wait()
}

// cut breaks all connections.
func (s *scripted) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		conn.Close()
	}
}

func (s *scripted) serve() {
	defer s.running.Done()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.mu.Unlock()
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			defer conn.Close()
			decoder := msgpack.NewDecoder(conn)
			decoder.UseLooseInterfaceDecoding(true)
			for {
				value, err := decoder.DecodeInterfaceLoose()
				if err != nil {
					return
				}
				parts, isArray := value.([]any)
				if !isArray || len(parts) < 4 {
					return
				}
				s.answer(conn, parts[1], parts[2].(string), parts[3].([]any))
			}
		}()
	}
}

func send(peer net.Conn, message ...any) {
	data, err := msgpack.Marshal(message)
	if err != nil {
		panic(err)
	}
	peer.Write(data)
}

// honest is what a server answers.
func honest(method string) any {
	switch method {
	case "hello":
		return []any{"1.0", 9, 1, 0}
	case "ping":
		return []any{5}
	case "identify":
		return []any{"checkout", "client", "secret", nil}
	case "acquire":
		return []any{0, rand.Int63() | 1, 13, 1, 2, 4000, nil, nil, []any{2, 2000, 60000}}
	case "keep":
		return []any{0, 4000, []any{2, 2000, 60000}}
	case "release", "cancel":
		return []any{6}
	case "request", "request_param":
		return []any{0, 5, 0, nil}
	case "flow":
		return map[string]any{"level": 2}
	}
	return []any{[]any{}, nil}
}

// goroutines fails if there are more than before, a moment after the end of the clients.
func goroutines(t *testing.T, before int) {
	t.Helper()
	if !pollUntil(func() bool { return runtime.NumGoroutine() <= before }) {
		stacks := make([]byte, 1<<16)
		t.Fatalf("%d goroutines, not %d:\n%s", runtime.NumGoroutine(), before,
			stacks[:runtime.Stack(stacks, true)])
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(files)
}
