package nowcalls

import (
	"container/list"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	flowsMax = 10_000
	fresh    = 30 * time.Second
	windowMs = 1000

	onceMore      = 1 // acquireRefuseStrategy.
	untilDeadline = 2
)

// Row is a row of a listing, as PROTOCOL.md has it. Integers are int64, or uint64 above 2^63-1.
type Row = map[string]any

// rule is what a client must know of a rule. The fields are those of rules_list (PROTOCOL.md, "The
// client's half of a rule").
type rule struct {
	acquireRefuse   int64
	fallbackToLocal bool
	isGlobal        bool
	limit           float64
	items           map[string]float64 // Counts of values, by their text.
	windowMs        int64
	countPerWindow  bool
}

// share is the number of calls that one of the sessions may have in progress.
func (r *rule) share(param any, sessions uint64) int64 { return r.part(r.countOf(param), sessions) }

// windowShare is the number of calls that one of the sessions may make in a window.
func (r *rule) windowShare(param any, sessions uint64) int64 {
	calls := r.countOf(param)
	if !r.countPerWindow {
		calls *= float64(r.windowMs) / 1000
	}
	return r.part(calls, sessions)
}

func (r *rule) countOf(param any) float64 {
	if param != nil {
		if count, listed := r.items[textOf(param)]; listed {
			return count
		}
	}
	return r.limit
}

func (r *rule) part(calls float64, sessions uint64) int64 {
	switch {
	case calls <= 0:
		return 0
	case !r.isGlobal:
		return int64(calls)
	case sessions > 1:
		calls /= float64(sessions)
	}
	return int64(math.Max(1, calls))
}

// textOf is how a rule writes a value.
func textOf(param any) string {
	switch v := param.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float32:
		return textOf(float64(v))
	case float64:
		form := byte('f')
		if size := math.Abs(v); size >= 1e16 || (size < 1e-4 && size > 0) {
			form = 'e'
		}
		text := strconv.FormatFloat(v, form, -1, 64)
		if !strings.ContainsAny(text, ".eIN") {
			text += ".0"
		}
		return text
	}
	return ""
}

// floatOf reads a field that may be missing or of another type.
func floatOf(value any, otherwise float64) float64 {
	number := otherwise
	switch v := value.(type) {
	case int64:
		number = float64(v)
	case uint64:
		number = float64(v)
	case float64:
		number = v
	}
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return otherwise
	}
	return math.Max(-1e18, math.Min(number, 1e18))
}

// countIn is that of Sentinel's rules, or of sentinel-golang's.
func countIn(fields Row) float64 {
	return floatOf(fields["count"], floatOf(fields["threshold"], 0))
}

func readItems(row Row) map[string]float64 {
	items := map[string]float64{}
	for _, kind := range [][2]string{{"paramFlowItemList", "object"}, {"specificItems", "valStr"}} {
		listed, _ := row[kind[0]].([]any)
		for _, one := range listed {
			item, _ := one.(Row)
			if value, isText := item[kind[1]].(string); isText {
				items[value] = countIn(item)
			}
		}
	}
	return items
}

// readRule: fields of other types count as left out.
func readRule(row Row) *rule {
	config, _ := row["clusterConfig"].(Row)
	window := floatOf(config["windowIntervalMs"], windowMs)
	perWindow := config["countPerWindow"] == true
	if _, golang := row["threshold"]; golang { // sentinel-golang has its window beside it.
		perWindow = true
		window = floatOf(row["statIntervalInMs"], 1000*floatOf(row["durationInSec"], 1))
	}
	return &rule{
		acquireRefuse:   int64(floatOf(config["acquireRefuseStrategy"], 0)),
		fallbackToLocal: config["fallbackToLocalWhenFail"] == true,
		isGlobal:        isNumber(config["thresholdType"], 1),
		limit:           countIn(row),
		items:           readItems(row),
		windowMs:        int64(window),
		countPerWindow:  perWindow,
	}
}

// isRuleByValue: servers that know no kinds do not say it, but a key of the rule does.
func isRuleByValue(row Row) bool {
	if kind, told := row["kind"]; told {
		return kind == "value"
	}
	_, sentinel := row["paramIdx"]
	_, golang := row["paramIndex"]
	return sentinel || golang
}

// flowRules are the rules of a flow: it may have one of all calls and one by value.
type flowRules struct {
	flow, byValue *rule
}

// ruleCall asks for the rules of a flow. A number is found behind a cursor, as in every version; a
// name by servers that know names. Value: flowRules, none of what is not clearly a rule of this
// flow.
type ruleCall struct {
	call
	flow Flow
}

func newRuleCall(flow Flow) *ruleCall {
	if flow.name != "" {
		return &ruleCall{newCall("rules_list", nil, 2, nil, flow.name), flow}
	}
	return &ruleCall{newCall("rules_list", nil, 2, flow.id-1), flow}
}

func (c *ruleCall) decode(result any) (any, error) {
	var rules flowRules
	parts, _ := result.([]any)
	if len(parts) == 0 {
		return rules, nil
	}
	rows, _ := parts[0].([]any)
	for _, one := range rows {
		row, _ := one.(Row)
		config, _ := row["clusterConfig"].(Row)
		isOne := c.flow.name != "" && row["resource"] == c.flow.name
		if c.flow.name == "" {
			isOne = isNumber(config["flowId"], c.flow.id)
		}
		if isOne && isRuleByValue(row) {
			rules.byValue = readRule(row)
		} else if isOne {
			rules.flow = readRule(row)
		}
	}
	return rules, nil
}

// ruleBook has rules by flow, with the moment when they were seen. The oldest are forgotten.
type ruleBook struct {
	seen  map[Flow]*list.Element
	order list.List // Of seenRules; the oldest first.
}

type seenRules struct {
	flow  Flow
	rules flowRules
	at    instant
}

func newRuleBook() *ruleBook { return &ruleBook{seen: map[Flow]*list.Element{}} }

func (b *ruleBook) learn(flow Flow, rules flowRules, now instant) {
	if before := b.seen[flow]; before != nil {
		b.order.Remove(before)
	}
	b.seen[flow] = b.order.PushBack(&seenRules{flow, rules, now})
	if len(b.seen) > flowsMax {
		oldest := b.order.Remove(b.order.Front()).(*seenRules)
		delete(b.seen, oldest.flow)
	}
}

func (b *ruleBook) isStale(flow Flow, now instant) bool {
	seen := b.seen[flow]
	return seen == nil || now-seen.Value.(*seenRules).at > fresh
}

// find returns nil if the rule was not seen.
func (b *ruleBook) find(flow Flow, byValue bool) *rule {
	seen := b.seen[flow]
	if seen == nil {
		return nil
	}
	if byValue {
		return seen.Value.(*seenRules).rules.byValue
	}
	return seen.Value.(*seenRules).rules.flow
}
