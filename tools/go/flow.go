package nowcalls

import (
	"math"
	"strconv"
	"unicode/utf8"
)

const (
	countMax         = math.MaxInt32
	resourceBytesMax = 1024
	itemsMax         = 64
)

// Flow says which rule a call is under: its flowId, or the resource of a rule of the client's
// namespace. Flows can be compared, and be keys of maps.
type Flow struct {
	id   int64
	name string
}

// ID is the flow of the rule with this flowId.
func ID(flowID int64) Flow { return Flow{id: flowID} }

// Name is the flow of the rule of the client's namespace with this resource.
func Name(resource string) Flow { return Flow{name: resource} }

// ID is the flowId, or 0 for a flow by name.
func (f Flow) ID() int64 { return f.id }

// Name is the resource, or "" for a flow by number.
func (f Flow) Name() string { return f.name }

// String is the number, or the name in quotes.
func (f Flow) String() string {
	if f.name != "" {
		return "'" + f.name + "'"
	}
	return strconv.FormatInt(f.id, 10)
}

// asked is what the server is asked for.
func (f Flow) asked() any {
	if f.name != "" {
		return f.name
	}
	return f.id
}

func (f Flow) check() error {
	if f == (Flow{}) {
		return badRequest("flow must be ID(1 to 2^63-1), or Name(1 to %d bytes)", resourceBytesMax)
	}
	if f.name == "" {
		if f.id < 1 {
			return badRequest("flow_id must be 1 to %d, not %d", int64(math.MaxInt64), f.id)
		}
		return nil
	}
	if len(f.name) > resourceBytesMax {
		return badRequest("flow_id must be 1 to %d bytes, not %d", resourceBytesMax, len(f.name))
	}
	if !utf8.ValidString(f.name) {
		return badRequest("flow_id must be UTF-8")
	}
	return nil
}

// Item is one of the things that AcquireAll asks for.
type Item struct {
	Flow Flow
	// Count is the number of calls that the token stands for; 0 means 1.
	Count int
	// Param is the value of the rule's parameter, if it has one: an integer, float, bool or string.
	Param any
	// Rate: it asks for calls a second, and holds nothing.
	Rate bool
}

// checked is the item as it is asked for.
func (i Item) checked() (Item, error) {
	if i.Count == 0 {
		i.Count = 1
	}
	if err := checkFlow(i.Flow, i.Count); err != nil {
		return i, err
	}
	var err error
	i.Param, err = scalar("param", i.Param)
	return i, err
}

func checkFlow(flow Flow, count int) error {
	if err := flow.check(); err != nil {
		return err
	}
	if count < 1 || count > countMax {
		return badRequest("count must be 1 to %d, not %d", countMax, count)
	}
	return nil
}

// scalar gives values that the server does not tell apart one type. It closes a connection for
// types that it does not know.
func scalar(what string, value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int64:
		return v, nil
	case int:
		return int64(v), nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint8:
		return int64(v), nil
	case uint16:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint:
		return scalar(what, uint64(v))
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
		return v, nil
	case float32:
		_, err := scalar(what, float64(v))
		return v, err
	case float64:
		if v != v {
			return nil, badRequest("%s must not be NaN", what)
		}
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, badRequest("%s must be UTF-8", what)
		}
		return v, nil
	}
	return nil, badRequest("%s must be an int, float, bool or str, not %T", what, value)
}
