package nowcalls

import (
	"fmt"
	"strings"
	"testing"
)

// Flows by name, against a real server.

// loadNamed loads rules without flowId. A server that knows no names skips the test.
func (s *served) loadNamed(resources ...string) {
	s.Helper()
	version, err := s.server.call("rules_list", s.namespace, nil, nil, "x")
	if err != nil && strings.Contains(err.Error(), "BAD_PARAMS") {
		s.Skipf("the server knows no names: %v %v", version, err)
	}
	for _, resource := range resources {
		s.loadRule(map[string]any{"resource": resource}, 2, 0, nil)
	}
}

func (s *served) numberOf(resource string) Flow {
	s.Helper()
	listed, err := s.server.call("rules_list", s.namespace, nil, nil, resource)
	check(s.T, err)
	rule := listed.([]any)[0].([]any)[0].(Row)
	return ID(rule["clusterConfig"].(Row)["flowId"].(int64))
}

func TestANameWorksWhereverANumberDoes(t *testing.T) {
	s := onServer(t)
	s.loadNamed("checkout")
	s.loadRule(map[string]any{"resource": "search"}, 9, 77_001, nil)
	client, name, number := s.client(Config{}), Name("checkout"), s.numberOf("checkout")
	if number.ID() < 1<<52 || number.ID() >= 1<<53 {
		t.Fatalf("the number of a name is %s", number)
	}
	first, second := acquire(t, client, name), acquire(t, client, number)
	equal(t, "flow", first.Flow(), name)
	row, err := client.Flow(background, name)
	check(t, err)
	equal(t, "row", fmt.Sprint(row["now_calls"], row["flow_id"]), fmt.Sprint(2, number.ID()))
	rows, found := client.Tokens(background, name, ""), 0
	for rows.Next() {
		found++
	}
	check(t, rows.Err())
	equal(t, "tokens", found, 2)
	err = acquireError(client, name)
	contains(t, err, "flow 'checkout' refused by level: 2 of 2 in progress")
	equal(t, "flow", as[*Refused](t, err).Flow, name)
	release(t, first)
	release(t, second)
	rate, err := client.Request(background, Name("search"))
	check(t, err)
	equal(t, "remaining", rate.Remaining, int64(8))
	items := []Item{{Flow: name}, {Flow: Name("search"), Count: 2}}
	permits, err := client.AcquireAll(background, items)
	check(t, err)
	for _, permit := range permits {
		release(t, permit)
	}
	_, err = client.AcquireAll(background, []Item{{Flow: Name("search")}, {Flow: ID(77_001)}})
	as[*BadRequest](t, err)
	err = acquireError(client, Name("Checkout"))
	contains(t, err, "flow 'Checkout' has no rule")
	as[*NoRule](t, err)
}

func TestANameIsTheSameFlowAfterKill9(t *testing.T) {
	s := onOwnServer(t)
	s.loadNamed("checkout")
	client, number := s.client(Config{Timeout: patience}), s.numberOf("checkout")
	permit := acquire(t, client, Name("checkout"), Count(2))
	s.server.kill()
	check(t, s.server.start())
	equal(t, "number", s.numberOf("checkout"), number)
	as[*Refused](t, acquireError(client, Name("checkout")))
	equal(t, "released", release(t, permit), true)
	equal(t, "released", release(t, acquire(t, client, Name("checkout"))), true)
}
