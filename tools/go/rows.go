package nowcalls

import (
	"context"
	"math"
	"reflect"
)

const pageRows = 100

// Ping returns the server's clock in ms.
func (c *Client) Ping(ctx context.Context, opts ...Option) (uint64, error) {
	o, err := readOptions("Ping", opts, "", "Timeout")
	if err != nil {
		return 0, err
	}
	value, err := c.worker.ask(ctx, newPing(), o.timeout)
	ms, _ := value.(uint64)
	return ms, err
}

// Flow returns the row of a flow as in PROTOCOL.md: level, now_calls, waiters, counters and more.
func (c *Client) Flow(ctx context.Context, flow Flow) (Row, error) {
	if err := flow.check(); err != nil {
		return nil, err
	}
	value, err := c.worker.ask(ctx, newRowCall("flow", flow), -1)
	row, _ := plainNumbers(value).(Row)
	return row, err
}

// Flows tells of all flows.
func (c *Client) Flows(ctx context.Context) *Rows { return c.rows(ctx, "flows") }

// Sessions tells of all sessions of the server.
func (c *Client) Sessions(ctx context.Context) *Rows { return c.rows(ctx, "sessions") }

// History tells of tokens that ended without a release in time, the newest first.
func (c *Client) History(ctx context.Context) *Rows { return c.rows(ctx, "history") }

// Tokens tells of live tokens, the oldest first: of all flows and clients, if flow is its zero
// value and clientID is "".
func (c *Client) Tokens(ctx context.Context, flow Flow, clientID string) *Rows {
	filter := []option{}
	if flow != (Flow{}) {
		filter = append(filter, option{"flow_id", flow})
	}
	if clientID != "" {
		filter = append(filter, option{"client_id", clientID})
	}
	return c.rows(ctx, "tokens", filter)
}

// Rows reads a listing, page by page:
//
//	rows := client.Tokens(ctx, nowcalls.ID(1001), "")
//	for rows.Next() {
//		fmt.Println(rows.Row()["token_id"])
//	}
//	err := rows.Err()
type Rows struct {
	client   *Client
	ctx      context.Context
	method   string
	head     []any
	patience instant // Until when pages without rows are taken.
	advanced bool    // The page before had rows, or there was none.
	page     []Row
	cursor   any
	row      Row
	err      error
	ended    bool
}

func (c *Client) rows(ctx context.Context, method string, head ...any) *Rows {
	return &Rows{client: c, ctx: ctx, method: method, head: head, advanced: true}
}

// Next goes to the next row. False: there is none, or Err says what failed.
func (r *Rows) Next() bool {
	for len(r.page) == 0 && !r.ended && r.err == nil {
		r.err = r.turn()
	}
	if len(r.page) == 0 {
		r.row = nil
		return false
	}
	r.row, r.page = r.page[0], r.page[1:]
	return true
}

// Row is the row of the last Next.
func (r *Rows) Row() Row { return r.row }

// Err is what failed.
func (r *Rows) Err() error { return r.err }

// turn asks for the next page.
func (r *Rows) turn() error {
	clock := r.client.worker.clock
	if r.advanced { // Not before: the program takes its own time for its rows.
		r.patience = after(clock(), r.client.config.timeout)
	}
	args := append(append([]any{}, r.head...), pageRows, r.cursor)
	value, err := r.client.worker.ask(r.ctx, newPageCall(r.method, args...), -1)
	if err != nil {
		return err
	}
	got := value.(page)
	for _, row := range got.rows {
		r.page = append(r.page, plainNumbers(row).(Row))
	}
	if got.cursor == nil {
		r.ended = true
		return nil
	}
	r.advanced = len(got.rows) > 0
	isLate := !r.advanced && clock() > r.patience
	if isLate || reflect.DeepEqual(got.cursor, r.cursor) {
		r.ended = true
		return &wrongServer{r.method + ": the server's pages do not end"}
	}
	r.cursor = got.cursor
	return nil
}

// plainNumbers makes integers int64 that fit.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case Row:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	}
	return value
}
