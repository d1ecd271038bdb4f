package nowcalls

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// The vectors of data/golden/sessions, written by the session of C++: Go's does the same.

const vectorsMin = 72

type fields map[string]any

type script struct {
	Name       string
	Client     fields
	RequestIDs []json.Number `json:"request_ids"`
	Steps      []fields
}

// number is of a field that is there.
func (f fields) number(name string) int64 {
	value, err := f[name].(json.Number).Int64()
	if err != nil {
		panic(name)
	}
	return value
}

func (f fields) text(name string) string { text, _ := f[name].(string); return text }
func (f fields) is(name string) bool     { value, _ := f[name].(bool); return value }

// time is -1 for null.
func (f fields) time(name string) time.Duration {
	if f[name] == nil {
		return -1
	}
	return millis(f.number(name))
}

// list is of a field that may be missing.
func (f fields) list(name string) []any { list, _ := f[name].([]any); return list }

func flowOf(value any) Flow {
	if name, isName := value.(string); isName {
		return Name(name)
	}
	id, err := value.(json.Number).Int64()
	if err != nil {
		panic(value)
	}
	return ID(id)
}

func paramOf(value any) any {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return value
	}
	if whole, err := number.Int64(); err == nil {
		return whole
	}
	float, err := number.Float64()
	if err != nil {
		panic(number)
	}
	return float
}

// player is a session and its owner, who does what the steps say.
type player struct {
	session *session
	now     instant
	ids     []json.Number
	permits map[string]*held
	answers []any
	told    map[string]instant
	hangsUp string
	pause   time.Duration // -1: the least.
	dials   string
	closed  bool
}

func newPlayer(t *testing.T, s script) *player {
	levels := map[Flow]int{}
	for flow, level := range s.Client["local_levels"].(map[string]any) {
		key := Name(flow)
		if id, err := strconv.ParseInt(flow, 10, 64); err == nil {
			key = ID(id)
		}
		levels[key] = int(paramOf(level).(int64))
	}
	var addresses []string
	for _, one := range s.Client.list("addresses") {
		addresses = append(addresses, one.(string))
	}
	settings := Config{
		Address: strings.Join(addresses, ","), Namespace: s.Client.text("namespace"),
		ClientID: s.Client.text("client_id"),
		Timeout:  s.Client.time("timeout_ms"), Fallback: Fallback(s.Client.text("fallback")),
		LocalLevels: levels, Exclusive: s.Client.is("exclusive"),
	}
	if secret, shows := s.Client["secret"].(string); shows {
		settings.Secret = SecretText(secret)
	}
	checked, err := settings.check()
	if err != nil {
		t.Fatal(err)
	}
	p := &player{ids: s.RequestIDs, permits: map[string]*held{}, told: map[string]instant{}}
	p.dials = addresses[0]
	clock := func() instant { return p.now }
	instance := uint64(s.Client.number("instance"))
	p.session = newSession(checked, 0, p.draw, instance, p.nextID, clock)
	return p
}

// draw is the pause that the step has.
func (p *player) draw(low, high time.Duration) time.Duration {
	if p.pause < 0 {
		return low
	}
	if p.pause < low || p.pause > high {
		panic(fmt.Sprintf("a pause of %s to %s", low, high))
	}
	return p.pause
}

func (p *player) nextID() uint64 {
	id, err := p.ids[0].Int64()
	if err != nil {
		panic(err)
	}
	p.ids = p.ids[1:]
	return uint64(id)
}

// play returns what came of a step, as the step has it.
func (p *player) play(step fields) fields {
	p.now = millis(step.number("at_ms"))
	if step.is("due") && p.session.wakeup() != p.now {
		panic(fmt.Sprintf("it wants to be told at %s, not at %s", p.session.wakeup(), p.now))
	}
	p.answers, p.hangsUp, p.pause = []any{}, "", step.time("pause_ms")
	p.do(step)
	came := fields{"sent": hex.EncodeToString(p.session.takeOutput(nil)), "answers": p.answers}
	came["hangs_up"] = p.hangsUp != ""
	lost := []any{}
	for _, h := range p.session.takeLost() {
		lost = append(lost, map[string]any{"permit": p.nameOf(h), "reason": h.lostReason})
	}
	came["lost"] = lost
	came["valid_until_ms"] = p.changedValidity()
	if name := p.session.dialing.name(); name != p.dials {
		p.dials, came["dials"] = name, name
	}
	came["settled"] = p.closed && p.session.isSettled()
	p.closed = p.closed && !p.session.isSettled()
	return came
}

func (p *player) do(step fields) {
	s := p.session
	switch step.text("do") {
	case "dial":
		s.dialing.begin()
	case "denied":
		s.refusedCertificate(p.now, step.text("reason"))
	case "connected":
		s.connected(p.now, true)
	case "dial_failed":
		s.connectFailed(p.now, step.text("reason"))
	case "disconnected":
		s.disconnected(p.now, step.text("reason"))
	case "received":
		data, err := hex.DecodeString(step.text("bytes"))
		if err != nil {
			panic(err)
		}
		p.hangsUp = s.received(data, p.now)
	case "tick":
		p.hangsUp = s.tick(p.now)
	case "release":
		c := newRelease(p.permits[step.text("permit")], Outcome(step.text("outcome")))
		c.notify = func() { p.answered("release "+step.text("permit"), c) }
		s.release(c, p.now, -1)
	case "keep":
		c := newKeep(p.permits[step.text("permit")])
		c.notify = func() { p.answered("keep "+step.text("permit"), c) }
		s.ask(c, p.now, -1)
	case "close":
		s.close(p.now)
		p.closed = true
	default:
		c, err := p.call(step)
		if err != nil {
			panic(err)
		}
		c.base().notify = func() { p.answered(step.text("call"), c) }
		s.ask(c, p.now, step.time("timeout_ms"))
	}
}

func (p *player) call(step fields) (asked, error) {
	var items []Item
	o := options{prioritized: step.is("prioritized"), keep: KeepMode(step.text("keep"))}
	if wait := step.time("wait_ms"); wait >= 0 {
		o.wait, o.hasWait = wait, true
	}
	switch step.text("do") {
	case "acquire":
		items = append(items, Item{Flow: flowOf(step["flow"]), Count: int(step.number("count")),
			Param: paramOf(step["param"])})
	case "acquire_all":
		o.noSleep = !step.is("sleep")
		for _, one := range step["items"].([]any) {
			item := one.([]any)
			items = append(items, Item{flowOf(item[0]), int(paramOf(item[1]).(int64)),
				paramOf(item[2]), paramOf(item[3]) == int64(1)})
		}
	case "request", "request_param":
		var values []any
		listed, _ := step["values"].([]any)
		for _, value := range listed {
			values = append(values, paramOf(value))
		}
		return newRateCall(flowOf(step["flow"]), int(step.number("count")), values, o.prioritized,
			step.is("sleep"))
	default:
		panic("a step does " + step.text("do"))
	}
	c, err := newAcquire(items, step.text("do") == "acquire_all", o)
	if err == nil {
		c.holdMs = step.number("hold_ms")
	}
	return c, err
}

// What came of it.

func (p *player) answered(name string, c asked) {
	b := c.base()
	told := map[string]any{"call": name, "outcome": "ok"}
	switch err := b.err.(type) {
	case nil:
		p.addValue(told, name, c)
	case *NoRule:
		told["outcome"] = "no_rule"
	case *Refused:
		told["outcome"] = "refused"
		if err.RefusedBy != "" {
			told["flow"], told["refused_by"] = err.Flow.asked(), err.RefusedBy
			told["now_calls"], told["level"] = err.NowCalls, err.Level
		}
		if err.Local {
			told["local"] = true
		}
	case *PermissionDenied:
		told["outcome"] = "permission_denied"
	case *BadRequest:
		told["outcome"] = "bad_request"
	case *Unavailable:
		told["outcome"] = "unavailable"
	case *OutcomeUnknown:
		told["outcome"] = "unknown"
	default:
		panic(err)
	}
	if release, isRelease := c.(*releaseCall); isRelease {
		told["lost"] = release.held.lost()
		if release.held.local {
			told["local"] = true
		}
	}
	p.answers = append(p.answers, told)
}

func (p *player) addValue(told map[string]any, name string, c asked) {
	switch c := c.(type) {
	case *rateCall:
		rate := c.value.(Rate)
		told["remaining"], told["wait_ms"] = rate.Remaining, rate.Wait.Milliseconds()
		if c.passed == nil {
			told["local"] = true
		}
	case *keepCall:
		if renewed := c.value.(*kept); renewed != nil {
			told["hold_ms"] = renewed.holdMs
		} else {
			told["outcome"] = "refused"
		}
	case *acquireCall:
		tokens := []any{}
		told["now_calls"], told["level"] = 0, 0
		for i, h := range c.value.([]*held) {
			if h == nil {
				tokens = append(tokens, nil)
				continue
			}
			tokens = append(tokens, h.tokenID)
			if i == 0 {
				told["now_calls"], told["level"] = h.nowCalls, h.level
			}
			if h.local {
				told["local"] = true
			}
			permit := name
			if c.group {
				permit = fmt.Sprintf("%s/%d", name, i)
			}
			p.permits[permit] = h
		}
		told["tokens"] = tokens
		if c.group {
			told["wait_ms"] = latest(0, c.waitUntil-p.now).Milliseconds()
			if told["local"] != nil {
				told["wait_ms"] = 0
			}
		}
	}
}

func (p *player) nameOf(h *held) string {
	for name, one := range p.permits {
		if one == h {
			return name
		}
	}
	return "?"
}

func (p *player) changedValidity() any {
	changed := map[string]any{}
	for name, h := range p.permits {
		if h.local || h.state != stateHeld {
			continue
		}
		until := h.validUntil()
		if before, told := p.told[name]; !told || before != until {
			changed[name] = int64(math.Round(float64(until) / float64(time.Millisecond)))
		}
		p.told[name] = until
	}
	return changed
}

// same compares what came as JSON has it.
func same(t *testing.T, came, expected any) bool {
	plain := func(value any) any {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		var read any
		if err := decoder.Decode(&read); err != nil {
			t.Fatal(err)
		}
		return read
	}
	return reflect.DeepEqual(plain(came), plain(expected))
}

func shown(t *testing.T, data string) string {
	raw, err := hex.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	decoder, text := msgpack.NewDecoder(bytes.NewReader(raw)), ""
	for {
		value, err := decoder.DecodeInterface()
		if err != nil {
			return text
		}
		text += fmt.Sprintf("%v\n", value)
	}
}

func playScript(t *testing.T, s script) {
	p := newPlayer(t, s)
	nothing := fields{
		"answers": []any{}, "lost": []any{}, "valid_until_ms": fields{}, "settled": false}
	for i, step := range s.Steps {
		where := fmt.Sprintf("step %d: %s at %v ms", i, step["do"], step["at_ms"])
		came := p.play(step)
		if expected := step.text("sent"); came["sent"] != expected {
			t.Fatalf("%s: sent\n%s, not\n%s", where, shown(t, came.text("sent")), shown(t, expected))
		}
		if _, expected := step["hangs_up"]; came["hangs_up"] != expected {
			t.Fatalf("%s: hangs up: %s", where, p.hangsUp)
		}
		for _, key := range []string{"answers", "lost", "valid_until_ms", "dials", "settled"} {
			expected := step[key]
			if expected == nil {
				expected = nothing[key]
			}
			if key == "answers" {
				came[key], expected = compared(came[key]), compared(expected)
			}
			if !same(t, came[key], expected) {
				t.Fatalf("%s: %s: %v, not %v", where, key, came[key], expected)
			}
		}
	}
}

// compared leaves out what this client does not tell: of a group of rates alone, that it is local;
// and the calls in progress where they limit nothing.
func compared(answers any) any {
	told := []any{}
	listed, _ := answers.([]any)
	for _, one := range listed {
		answer := map[string]any{}
		isOfRates := true
		for name, value := range one.(map[string]any) {
			answer[name] = value
		}
		tokens, isGroup := answer["tokens"].([]any)
		for _, token := range tokens {
			isOfRates = isOfRates && token == nil
		}
		if isGroup && isOfRates {
			delete(answer, "local")
		}
		if level := answer["level"]; level != nil && fmt.Sprint(level) == "0" {
			delete(answer, "now_calls")
		}
		told = append(told, answer)
	}
	return told
}

func TestEachVectorIsWhatTheSessionDoes(t *testing.T) {
	playAll(t, filepath.Join("..", "..", "data", "golden", "sessions"), vectorsMin)
}

// NOWCALLS_UNIT_CLIENT is the program of tests/unit/client, which writes lives.
func TestRandomLivesAreWhatTheSessionDoes(t *testing.T) {
	program, dir := os.Getenv("NOWCALLS_UNIT_CLIENT"), t.TempDir()
	if program == "" {
		t.Skip("no NOWCALLS_UNIT_CLIENT writes lives")
	}
	writes := exec.Command(program, "--test-case=random lives*")
	writes.Env = append(os.Environ(), "NOWCALLS_LIVES_DIR="+dir)
	if said, err := writes.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	playAll(t, dir, 100)
}

func playAll(t *testing.T, dir string, least int) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < least {
		t.Fatalf("there are %d vectors, %v", len(files), err)
	}
	sort.Strings(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		var s script
		if err := decoder.Decode(&s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		t.Run(s.Name, func(t *testing.T) { playScript(t, s) })
	}
}
