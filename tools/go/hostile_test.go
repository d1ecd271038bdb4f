package nowcalls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"net"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// Clients against servers that answer wrong: each field of each answer is each of these, and more.

const sample = 250

const nasty = "x\x1b]52;c;aGk=\x07\r\n\x00\x7f\u202e\ufeff\xff\xfe"

var wrongValues = map[string]any{
	"nil": nil, "true": true, "-1": -1, "2^63": uint64(1) << 63, "2^64-1": uint64(math.MaxUint64),
	"-2^63": int64(math.MinInt64), "0.5": 0.5, "NaN": math.NaN(), "infinity": math.Inf(1),
	"a text": "text", "a nasty text": nasty, "bytes": []byte{0xff}, "[]": []any{},
	"nested arrays": []any{[]any{[]any{[]any{[]any{}}}}}, "1024 nils": make([]any, 1024),
	"{}": map[string]any{}, "{1: nil}": map[int]any{1: nil}, "1 MB": strings.Repeat("x", 1_000_000),
	"a time": time.Unix(1, 0),
}

// hostileCase answers one method with raw, and all others as a server does.
type hostileCase struct {
	name, method string
	raw          func(msgid any) []byte // nil: silence.
	hangsUp      bool
}

func (c hostileCase) answer(peer net.Conn, msgid any, method string, _ []any) {
	if c.method != method && c.method != "" {
		send(peer, 1, msgid, nil, honest(method))
		return
	}
	if c.raw != nil {
		peer.Write(c.raw(msgid))
	}
	if c.hangsUp {
		peer.Close()
	}
}

func encoded(values ...any) []byte {
	var data []byte
	for _, value := range values {
		one, err := msgpack.Marshal(value)
		if err != nil {
			panic(err)
		}
		data = append(data, one...)
	}
	return data
}

func replaced(value any, path []int, wrong any) any {
	if len(path) == 0 {
		return wrong
	}
	copied := append([]any{}, value.([]any)...)
	copied[path[0]] = replaced(copied[path[0]], path[1:], wrong)
	return copied
}

func pathsOf(value any, path ...int) [][]int {
	paths := [][]int{path}
	parts, _ := value.([]any)
	for i, part := range parts {
		paths = append(paths, pathsOf(part, append(append([]int{}, path...), i)...)...)
	}
	return paths
}

func hostileCases() []hostileCase {
	var cases []hostileCase
	add := func(name, method string, raw func(msgid any) []byte) {
		cases = append(cases, hostileCase{method + ": " + name, method, raw, false})
	}
	methods := []string{"hello", "acquire", "keep", "release", "request", "ping", "cancel"}
	for _, method := range methods {
		right := honest(method)
		for name, value := range wrongValues {
			value := value
			for _, path := range pathsOf(right) {
				answer := replaced(right, path, value)
				add(fmt.Sprint(path, " is ", name), method, func(msgid any) []byte {
					return encoded([]any{1, msgid, nil, answer})
				})
			}
			add("error is "+name, method, func(msgid any) []byte {
				return encoded([]any{1, msgid, value, nil})
			})
		}
		for code := 1; code < 11; code++ {
			failure := []any{code, nasty, nasty}
			add(fmt.Sprint("error ", code), method, func(msgid any) []byte {
				return encoded([]any{1, msgid, failure, nil})
			})
		}
		add("silence", method, nil)
		add("twice", method, func(msgid any) []byte {
			one := []any{1, msgid, nil, right}
			return encoded(one, one)
		})
		add("another msgid", method, func(msgid any) []byte {
			return encoded([]any{1, 77_777, nil, right})
		})
		add("half a message", method, func(msgid any) []byte {
			whole := encoded([]any{1, msgid, nil, right})
			return whole[:len(whole)/2]
		})
		cases = append(cases, hostileCase{method + ": hangs up", method, nil, true})
	}
	for i, status := range []int{-4, -2, -1, 1, 2, 3, 4, 5, 6, 99} {
		answer := []any{status, i, 0, 1, 2, 0, nasty}
		add(fmt.Sprint("status ", status), "acquire", func(msgid any) []byte {
			return encoded([]any{1, msgid, nil, answer})
		})
	}
	for name, stream := range map[string]string{
		"garbage": nasty, "zeros": strings.Repeat("\x00", 100_000), "HTTP": "HTTP/1.1 400 Bad Request",
		"nested arrays": strings.Repeat("\x91", 1_000_000), "a map": "\x80", "a request": "\x94\x00",
		"8 M of arrays": "\x94\x01\x01\xc0\xdc\xff\xff" + strings.Repeat("\x90", 8_000_000),
		"a long text":   "\x94\x01\x01\xc0\xdb\x7f\xff\xff\xff" + strings.Repeat("x", 1_000_000),
	} {
		stream := stream
		add(name, "", func(any) []byte { return []byte(stream) })
	}
	for name, value := range wrongValues {
		value := value
		add("lost of "+name, "acquire", func(msgid any) []byte {
			return encoded([]any{2, "lost", []any{5, value, "x"}},
				[]any{2, "lost", []any{value, 5, "x"}}, []any{2, "lost", value},
				[]any{1, msgid, nil, honest("acquire")})
		})
	}
	sort.Slice(cases, func(i, j int) bool { return cases[i].name < cases[j].name })
	return cases
}

// use makes the calls of a program. Any other error than the package's is a defect.
func use(client *Client) error {
	ours := func(err error) error {
		var failure Error
		if err == nil || errors.As(err, &failure) {
			return nil
		}
		return err
	}
	for i := 0; i < 2; i++ {
		permit, err := client.Acquire(background, ID(1001), Wait(50*time.Millisecond), Prioritized())
		if err == nil {
			_, keepErr := permit.Keep(background)
			_, err = permit.Release(background, OutcomeFailed)
			if ours(keepErr) != nil {
				return keepErr
			}
		}
		if ours(err) != nil {
			return err
		}
	}
	permits, err := client.AcquireAll(background, []Item{{Flow: ID(1)}, {Flow: ID(2), Rate: true}})
	for _, permit := range permits {
		permit.Release(background)
	}
	_, rateErr := client.Request(background, ID(1001))
	_, pingErr := client.Ping(background)
	for _, one := range []error{err, rateErr, pingErr} {
		if ours(one) != nil {
			return one
		}
	}
	return nil
}

func TestEachWrongAnswerIsAnErrorOfTheCallAndNothingIsLeft(t *testing.T) {
	before, files := runtime.NumGoroutine(), openFiles(t)
	cases := hostileCases()
	if os.Getenv("NOWCALLS_TEST_WHOLE") != "1" { // Seeded, so that a failure can be had again.
		rand.New(rand.NewSource(51)).Shuffle(len(cases), func(i, j int) {
			cases[i], cases[j] = cases[j], cases[i]
		})
		cases = cases[:sample]
	}
	slots := make(chan struct{}, 32)
	var running sync.WaitGroup
	for i, one := range cases {
		running.Add(1)
		slots <- struct{}{}
		go func(one hostileCase, fallback Fallback) {
			defer func() { <-slots; running.Done() }()
			checkHostile(t, one, fallback)
		}(one, []Fallback{FallbackByRule, FallbackLocal, FallbackFail}[i%3])
	}
	running.Wait()
	goroutines(t, before)
	soon(t, "no file is left", func() bool { return openFiles(t) <= files })
}

func checkHostile(t *testing.T, one hostileCase, fallback Fallback) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return
	}
	peer := serveScripted(t, listener, one.answer)
	defer peer.close()
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		client, err := New(Config{Address: peer.address, Timeout: 100 * time.Millisecond,
			Fallback: fallback})
		if err == nil {
			err = use(client)
			client.Close()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%s: %v", one.name, err)
		}
	case <-ctx.Done():
		t.Errorf("%s: hangs", one.name)
	}
}

func TestAWrongAnswerIsToldInWords(t *testing.T) {
	for answer, words := range map[any]string{
		5:   "the peer does not speak nowcalls: hello is 5",
		nil: "the peer does not speak nowcalls: hello is nil",
	} {
		answer := answer
		peer := newScripted(t, func(peer net.Conn, msgid any, method string, _ []any) {
			send(peer, 1, msgid, nil, answer)
		})
		client := newClient(t, Config{Address: peer.address, Timeout: time.Second})
		_, err := client.Ping(background)
		as[*Unavailable](t, err)
		contains(t, err, "ping: not carried out: "+peer.address+": "+words)
	}
}

func TestASilentServerIsLeft(t *testing.T) {
	silent := make(chan string, 100)
	peer := newScripted(t, func(peer net.Conn, msgid any, method string, _ []any) {
		silent <- method
		if method == "hello" {
			send(peer, 1, msgid, nil, honest("hello"))
		}
	})
	client := newClient(t, Config{Address: peer.address, Timeout: 500 * time.Millisecond})
	_, err := client.Acquire(background, ID(1))
	contains(t, err, "acquire: no answer, perhaps it was carried out: the server did not answer in "+
		"time")
	as[*OutcomeUnknown](t, err)
	soon(t, "it is left", func() bool { return client.Stats().Disconnects > 0 })
	soon(t, "the acquire is cancelled on the next connection", func() bool {
		for {
			select {
			case method := <-silent:
				if method == "cancel" {
					return true
				}
			default:
				return false
			}
		}
	})
}
