package nowcalls

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

const (
	messageBytesMax = 64 * 1024       // The server closes the connection beyond it.
	answerBytesMax  = 8 * 1024 * 1024 // The server sends at most half of it.
	elementsMax     = 4096            // Of an array or map; servers send at most 1024.
	nestingMax      = 32
	holdMsMax       = 1_000_000_000_000
	textBytesMax    = 1000 // Of a message in an error.
	usualPort       = "the token port of a nowcalls-server is usually 18730"
)

// What a peer speaks that begins so.
var others = []struct{ begin, name string }{
	{"HTTP/", "HTTP"},
	{"\x15\x03", `TLS; so must the client (TLS: "on"), if that is a nowcalls-server`},
	{"SSH-", "SSH"},
	{"-ERR", "Redis's protocol"},
}

// wrong says that the peer does not speak the protocol.
type wrong struct{ message string }

func (w *wrong) Error() string { return w.message }

func wrongly(format string, args ...any) error { return &wrong{fmt.Sprintf(format, args...)} }

// option is one pair of a map whose order on the wire is that of the slice.
type option struct {
	key   string
	value any
}

// exchange has the requests and answers of one connection. msgids count from 1.
type exchange struct {
	output  []byte // To send; the client removes what it has sent.
	msgid   uint32
	heard   bool
	scanner scanner
	encoded bytes.Buffer
	encoder *msgpack.Encoder
	whole   bytes.Reader
	decoder *msgpack.Decoder
}

func newExchange() *exchange {
	e := &exchange{}
	e.encoder = msgpack.NewEncoder(&e.encoded)
	e.decoder = msgpack.NewDecoder(&e.whole)
	return e
}

// request returns the msgid, or what no message can hold.
func (e *exchange) request(method string, params []any) (uint32, error) {
	msgid := uint32(uint64(e.msgid)%math.MaxUint32 + 1)
	e.encoded.Reset()
	if err := encode(e.encoder, []any{0, int(msgid), method, params}); err != nil {
		return 0, badRequest("%s: %s", method, err)
	}
	if e.encoded.Len() > messageBytesMax {
		return 0, badRequest("%s: %d bytes are too many", method, e.encoded.Len())
	}
	e.msgid = msgid
	e.output = append(e.output, e.encoded.Bytes()...)
	return msgid, nil
}

func encode(to *msgpack.Encoder, value any) error {
	switch v := value.(type) {
	case nil:
		return to.EncodeNil()
	case bool:
		return to.EncodeBool(v)
	case int:
		return to.EncodeInt(int64(v))
	case int64:
		return to.EncodeInt(v)
	case uint64:
		return to.EncodeUint(v)
	case float32:
		return to.EncodeFloat32(v)
	case float64:
		return to.EncodeFloat64(v)
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("a text is not UTF-8")
		}
		return to.EncodeString(v)
	case Flow:
		return encode(to, v.asked())
	case []option:
		err := to.EncodeMapLen(len(v))
		for i := 0; i < len(v) && err == nil; i++ {
			if err = to.EncodeString(v[i].key); err == nil {
				err = encode(to, v[i].value)
			}
		}
		return err
	case []any:
		err := to.EncodeArrayLen(len(v))
		for i := 0; i < len(v) && err == nil; i++ {
			err = encode(to, v[i])
		}
		return err
	}
	return fmt.Errorf("a %T cannot be sent", value)
}

// feed takes bytes of the peer.
func (e *exchange) feed(data []byte) error {
	if !e.heard {
		for _, other := range others {
			if bytes.HasPrefix(data, []byte(other.begin)) {
				return wrongly("it speaks %s; %s", other.name, usualPort)
			}
		}
	}
	e.heard = true
	e.scanner.feed(data)
	return nil
}

// next returns the next message that has come whole, or nil:
// [1, msgid, error, result] or [2, method, params].
func (e *exchange) next() ([]any, error) {
	whole, err := e.scanner.next()
	if whole == nil || err != nil {
		return nil, err
	}
	e.whole.Reset(whole)
	e.decoder.Reset(&e.whole)
	e.decoder.UseLooseInterfaceDecoding(true)
	value, err := e.decoder.DecodeInterfaceLoose()
	if err != nil {
		return nil, wrongly("%.100s", err)
	}
	message, isArray := value.([]any)
	switch {
	case isArray && len(message) >= 4 && isNumber(message[0], 1):
		if _, right := asUint(message[1]); right {
			return message, nil
		}
		return nil, wrongly("msgid is %s", repr(message[1]))
	case isArray && len(message) == 3 && isNumber(message[0], 2):
		if _, right := message[1].(string); !right {
			return nil, wrongly("method is %s", repr(message[1]))
		}
		if _, right := message[2].([]any); !right {
			return nil, wrongly("params is %s", repr(message[2]))
		}
		return message, nil
	case isArray && len(message) > 0 && isNumber(message[0], 0): // Perhaps with the secret.
		return nil, wrongly("it sends requests back")
	}
	return nil, wrongly("a message is %s", repr(value))
}

// scanner finds the ends of messages in a stream, before anything is made of them. It reads each
// byte once, however the stream is cut, and bounds what a message may be.
type scanner struct {
	input []byte
	pos   int   // What is scanned of the message at the beginning of input.
	left  []int // Values that are missing, for each array or map that pos is in.
}

func (s *scanner) feed(data []byte) { s.input = append(s.input, data...) }

// next returns the bytes of a message. They are valid until the next feed.
func (s *scanner) next() ([]byte, error) {
	for s.pos < len(s.input) {
		size, elements, err := head(s.input[s.pos:])
		if err != nil {
			return nil, err
		}
		if size > answerBytesMax-s.pos || s.pos >= answerBytesMax {
			return nil, wrongly("a message is longer than %d bytes", answerBytesMax)
		}
		if size == 0 || size > len(s.input)-s.pos {
			return nil, nil
		}
		s.pos += size
		if elements > 0 {
			if len(s.left) == nestingMax {
				return nil, wrongly("arrays and maps are nested deeper than %d", nestingMax)
			}
			s.left = append(s.left, elements)
			continue
		}
		for len(s.left) > 0 {
			last := len(s.left) - 1
			if s.left[last]--; s.left[last] > 0 {
				break
			}
			s.left = s.left[:last]
		}
		if len(s.left) == 0 {
			whole := s.input[:s.pos]
			s.input, s.pos = s.input[s.pos:], 0
			return whole, nil
		}
	}
	if len(s.input) == 0 {
		s.input = nil
	}
	return nil, nil
}

// head returns the size of a value's head and text, and the number of values that follow in it.
// size is 0 if the head has not come whole.
func head(b []byte) (size, elements int, err error) {
	code := b[0]
	switch {
	case code <= 0x7f || code >= 0xe0 || code == 0xc0 || code == 0xc2 || code == 0xc3:
		return 1, 0, nil
	case code <= 0x8f:
		return 1, 2 * int(code&0x0f), nil
	case code <= 0x9f:
		return 1, int(code & 0x0f), nil
	case code <= 0xbf:
		return 1 + int(code&0x1f), 0, nil
	}
	switch code {
	case 0xca, 0xce, 0xd2:
		return 5, 0, nil
	case 0xcb, 0xcf, 0xd3:
		return 9, 0, nil
	case 0xcc, 0xd0:
		return 2, 0, nil
	case 0xcd, 0xd1:
		return 3, 0, nil
	case 0xd9, 0xda, 0xdb:
		length, width := number(b, 1<<(code-0xd9))
		if width == 0 {
			return 0, 0, nil
		}
		if length > answerBytesMax {
			return 0, 0, wrongly("a text is longer than %d bytes", answerBytesMax)
		}
		return 1 + width + int(length), 0, nil
	case 0xdc, 0xdd, 0xde, 0xdf:
		length, width := number(b, 2<<((code-0xdc)%2))
		if width == 0 {
			return 0, 0, nil
		}
		if length > elementsMax {
			return 0, 0, wrongly("an array or map has more than %d elements", elementsMax)
		}
		if code >= 0xde {
			length *= 2
		}
		return 1 + width, int(length), nil
	}
	return 0, 0, wrongly("it sends a byte 0x%02x where a value begins", code)
}

// number reads the length behind a code. width is 0 if it has not come whole.
func number(b []byte, bytes int) (length uint64, width int) {
	if len(b) <= bytes {
		return 0, 0
	}
	var wide [8]byte
	copy(wide[8-bytes:], b[1:1+bytes])
	return binary.BigEndian.Uint64(wide[:]), bytes
}

// Checks of what a server answers.

func asUint(value any) (uint64, bool) {
	switch v := value.(type) {
	case int64:
		return uint64(v), v >= 0
	case uint64:
		return v, true
	}
	return 0, false
}

func asInt(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

func isNumber(value any, number int64) bool {
	v, right := asInt(value)
	return right && v == number
}

// repr is short, whatever the value is.
func repr(value any) string {
	switch v := value.(type) {
	case nil:
		return "nil"
	case string:
		return "'" + cut(v, 60) + "'"
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case Row:
		return fmt.Sprintf("a map of %d", len(v))
	}
	return fmt.Sprint(value)
}

// cut is the text or its beginning, as UTF-8.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

// answer reads the elements of an array. After the first that is wrong, err says which one.
type answer struct {
	parts []any
	err   error
}

func readArray(what string, value any, least int) *answer {
	parts, isArray := value.([]any)
	if !isArray || len(parts) < least {
		return &answer{make([]any, least), wrongly("%s is %s", what, repr(value))}
	}
	return &answer{parts, nil}
}

func (a *answer) fail(what string, value any) {
	if a.err == nil {
		a.err = wrongly("%s is %s", what, repr(value))
	}
}

func (a *answer) uint(index int, what string) uint64 {
	value, right := asUint(a.parts[index])
	if !right {
		a.fail(what, a.parts[index])
	}
	return value
}

func (a *answer) int(index int, what string) int64 {
	value, right := asInt(a.parts[index])
	if !right {
		a.fail(what, a.parts[index])
	}
	return value
}

func (a *answer) text(index int, what string) string {
	value, right := a.parts[index].(string)
	if !right {
		a.fail(what, a.parts[index])
	}
	return cut(value, textBytesMax)
}

// textOrNil is "" for nil.
func (a *answer) textOrNil(index int, what string) string {
	if a.parts[index] == nil {
		return ""
	}
	return a.text(index, what)
}

// hold is a time in ms.
func (a *answer) hold(index int) int64 {
	ms := a.uint(index, "hold_ms")
	if ms > holdMsMax {
		return holdMsMax
	}
	return int64(ms)
}
