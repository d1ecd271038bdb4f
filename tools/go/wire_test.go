package nowcalls

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// all returns the messages in the pieces of a stream.
func all(e *exchange, pieces ...[]byte) (messages [][]any, err error) {
	for _, piece := range pieces {
		if err := e.feed(piece); err != nil {
			return messages, err
		}
		for {
			message, err := e.next()
			if message == nil || err != nil {
				if err != nil {
					return messages, err
				}
				break
			}
			messages = append(messages, message)
		}
	}
	return messages, nil
}

func packed(t *testing.T, values ...any) []byte {
	t.Helper()
	var data []byte
	for _, value := range values {
		one, err := msgpack.Marshal(value)
		check(t, err)
		data = append(data, one...)
	}
	return data
}

func TestMessagesAreReadHoweverTheStreamIsCut(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	stream := packed(t,
		[]any{1, 1, nil, []any{"1.0", 9, 1, 0}},
		[]any{2, "lost", []any{uint64(math.MaxUint64), int64(math.MinInt64), "admin"}},
		[]any{1, 2, nil, map[string]any{"a": []any{true, 1.5, float32(2), nil, -1, long}}},
		[]any{1, 3, nil, []any{[]any{}, map[string]any{}, make([]any, 300), strings.Repeat("y", 200)}},
	)
	whole, err := all(newExchange(), stream)
	check(t, err)
	equal(t, "messages", len(whole), 4)
	for _, size := range []int{1, 2, 3, 7, 1000} {
		var pieces [][]byte
		for rest := stream; len(rest) > 0; {
			cut := size
			if cut > len(rest) {
				cut = len(rest)
			}
			pieces, rest = append(pieces, rest[:cut]), rest[cut:]
		}
		got, err := all(newExchange(), pieces...)
		check(t, err)
		equal(t, "the same", fmt.Sprint(got), fmt.Sprint(whole))
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	head := "\x94\x01\x01\xc0"
	for name, one := range map[string]struct{ stream, words string }{
		"a str of 4 GiB":        {head + "\xdb\xff\xff\xff\xff", "longer than"},
		"a bin":                 {head + "\xc4\x01x", "0xc4"},
		"an ext":                {head + "\xd4\x05x", "0xd4"},
		"an array of 4 G":       {head + "\xdd\xff\xff\xff\xff", "more than 4096 elements"},
		"a map of 4 G":          {head + "\xdf\xff\xff\xff\xff", "more than 4096 elements"},
		"nested arrays":         {head + strings.Repeat("\x91", 100), "deeper than 32"},
		"the byte that is none": {head + "\xc1", "0xc1"},
		"a number":              {"\x05", "a message is 5"},
		"a request":             {"\x94\x00\x01\xa1x\x90", "it sends requests back"},
		"a type 7":              {"\x94\x07\x01\xc0\xc0", "a message is an array of 4"},
		"a short response":      {"\x93\x01\x01\xc0", "a message is an array of 3"},
		"a msgid of text":       {"\x94\x01\xa1x\xc0\xc0", "msgid is 'x'"},
		"a method of nil":       {"\x93\x02\xc0\x90", "method is nil"},
		"params of nil":         {"\x93\x02\xa1x\xc0", "params is nil"},
		"a key that is no text": {head + "\x81\x01\x01", ""},
		"HTTP":                  {"HTTP/1.1 400 Bad", "it speaks HTTP; the token port"},
		"TLS":                   {"\x15\x03\x01", "it speaks TLS; so must the client"},
		"SSH":                   {"SSH-2.0-OpenSSH", "it speaks SSH"},
		"Redis":                 {"-ERR unknown", "it speaks Redis's protocol"},
	} {
		_, err := all(newExchange(), []byte(one.stream))
		if _, isWrong := err.(*wrong); !isWrong || !strings.Contains(err.Error(), one.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAMessageThatNeverEndsIsRefusedInTime(t *testing.T) {
	e := newExchange()
	check(t, e.feed([]byte("\x94\x01\x01\xc0\xdc\x10\x00")))
	one := append([]byte{0xda, 0x0f, 0xff}, bytes.Repeat([]byte("x"), 4095)...)
	for fed := 0; fed < answerBytesMax; fed += len(one) {
		check(t, e.feed(one))
		if _, err := e.next(); err != nil {
			contains(t, err, "a message is longer than 8388608 bytes")
			return
		}
	}
	t.Fatal("it was not refused")
}

func TestARequestThatNoServerTakesIsNotSent(t *testing.T) {
	e := newExchange()
	_, err := e.request("acquire", []any{strings.Repeat("x", messageBytesMax)})
	contains(t, err, "bytes are too many")
	_, err = e.request("acquire", []any{"\xff"})
	contains(t, err, "not UTF-8")
	equal(t, "sent", len(e.output), 0)
	e.msgid = math.MaxUint32 - 1
	for _, expected := range []uint32{math.MaxUint32, 1, 2} {
		msgid, err := e.request("ping", nil)
		check(t, err)
		equal(t, "msgid", msgid, expected)
	}
}

func TestNumbersAreSentInTheirShortestForm(t *testing.T) {
	e := newExchange()
	_, err := e.request("x", []any{127, 128, uint64(math.MaxUint64), int64(-33), float32(0.5), 0.5})
	check(t, err)
	equal(t, "bytes", fmt.Sprintf("%x", e.output),
		"940001a178967fcc80cfffffffffffffffffd0dfca3f000000cb3fe0000000000000")
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x94\x01\x01\xc0\x94\xa31.0\x09\x01\x00"))
	f.Add([]byte("\x93\x02\xa4lost\x93\x01\x02\xa1x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, err := all(newExchange(), data)
		if _, isWrong := err.(*wrong); err != nil && !isWrong {
			t.Fatal(err)
		}
		var pieces [][]byte
		for i := range data {
			pieces = append(pieces, data[i:i+1])
		}
		if len(data) > 0 && others[0].begin[0] != data[0] && data[0] != 'S' && data[0] != '-' &&
			data[0] != 0x15 {
			cut, _ := all(newExchange(), pieces...)
			if fmt.Sprint(cut) != fmt.Sprint(messages) {
				t.Fatalf("%v, not %v", cut, messages)
			}
		}
	})
}
