// Vectors of flows by name, of prioritized acquires, and of rules that change.
#include <doctest/doctest.h>

#include "nowcalls/flow_name.h"
#include "unit/client/vector_cases.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

// A page of rules_list with the rule of a name, which has the number 77.
Json RulesOfName(const char* name, double count, Json config = Json::object()) {
  Json page = Rules(77, count, true, "flow", std::move(config));
  Json rule = page[0][0];
  rule["resource"] = name;
  return Json::array({Json::array({rule}), nullptr});
}

// Names.

TEST_CASE("vector: a flow is a name") {
  const FlowId checkout = FlowNamed("checkout");
  VectorScript script = Begin("a flow is a name");
  script.Connect();
  script.Acquire("a", {.count = 2}, checkout);
  script.Answer("acquire", Granted(Terms(0)));
  script.Release("a");
  script.Answer("release", kReleased);
  script.Acquire("digits", {.param = "x"}, FlowNamed("1001"));
  script.Answer("acquire", Json::array({3, 0, 0, 0, 0, 0, nullptr}));
  Check(script);
}

TEST_CASE("vector: names in groups and rates") {
  const FlowId checkout = FlowNamed("checkout");
  const FlowId search = FlowNamed("search");
  VectorScript script = Begin("names in groups and rates");
  script.Connect();
  script.AcquireAll("group", {{checkout, 1}, {FlowId(1001), 2}, {search, 3, {}, true}});
  script.Answer("acquire_all", Json::array({0,
                                            Json::array({Json::array({102, 14, 4000, Terms(0)}),
                                                         Json::array({103, 15, 4000, Terms(0)}),
                                                         {0, 0, 0}}),
                                            nullptr, 0, 0, 0}));
  script.Request("r", {}, search);
  script.Answer("request", Json::array({0, 9, 0, nullptr}));
  script.RequestParam("p", {"key"}, {}, search);
  script.Answer("request_param", Json::array({1, 0, 0, "param"}));
  Check(script);
}

TEST_CASE("vector: a group is refused by the number of a name") {
  const FlowId checkout = FlowNamed("checkout");
  VectorScript script = Begin("a group is refused by a number");
  script.Connect();
  const auto refuse = [&](const char* call, const std::vector<FlowDemand>& demands,
                          int64_t number) {
    script.AcquireAll(call, demands);
    script.Answer("acquire_all", Json::array({1, Json::array(), "level", number, 1, 1}));
  };
  refuse("the name", {{checkout, 1}, {FlowId(7), 1}}, 77);
  refuse("the number", {{checkout, 1}, {FlowId(7), 1}}, 7);
  refuse("the name twice", {{checkout, 1}, {checkout, 1, "x"}}, 77);
  refuse("one of two names", {{checkout, 1}, {FlowNamed("search"), 1}}, 77);
  refuse("no flow", {{checkout, 1}, {FlowId(7), 1}}, 0);
  Check(script);
}

TEST_CASE("vector: fallback by name") {
  const FlowId checkout = FlowNamed("checkout");
  VectorScript script = Begin("fallback by name", Shop(Fallback::kByRule));
  script.Connect();
  script.Acquire("held", {}, checkout);
  script.Answer("rules_list", RulesOfName("checkout", 4));
  script.Answer("acquire", Granted(Terms(2)));
  script.At(100);
  script.Disconnected();
  script.DialFailed();
  script.Acquire("local", {}, checkout);
  script.Acquire("refused", {}, checkout);
  script.Acquire("by number, unseen", {}, FlowId(77));
  script.Release("held");
  script.Acquire("again", {}, checkout);
  Check(script);
}

TEST_CASE("vector: local levels by name") {
  const FlowId checkout = FlowNamed("checkout");
  ClientOptions options = Shop(Fallback::kLocal);
  options.local_levels = {{checkout, 1}, {FlowId(1001), 2}};
  VectorScript script = Begin("local levels by name", options);
  script.DialFailed();
  script.Acquire("a", {}, checkout);
  script.Acquire("b", {}, checkout);
  for (const char* call : {"c", "d", "e"}) script.Acquire(call);
  script.Acquire("unknown", {.timeout = 300ms}, FlowNamed("search"));
  Check(script);
}

TEST_CASE("vector: a server that knows no names") {
  const FlowId checkout = FlowNamed("checkout");
  VectorScript script = Begin("a server that knows no names", Shop(Fallback::kByRule));
  script.Connect();
  script.Acquire("a", {}, checkout);
  script.Refuse("rules_list", 3, "BAD_PARAMS");
  script.Refuse("acquire", 3, "BAD_PARAMS");
  script.Request("r", {}, checkout);
  script.Refuse("request", 3, "BAD_PARAMS");
  script.Disconnected();
  script.DialFailed();
  script.Acquire("offline", {}, checkout);
  Check(script);
}

// Prioritized.

Json Refusing(int strategy) { return Json{{"acquireRefuseStrategy", strategy}}; }

TEST_CASE("vector: acquireRefuseStrategy 1: once more") {
  VectorScript script = Begin("acquireRefuseStrategy 1 tries once more");
  script.Connect();
  script.Acquire("refused", {.prioritized = true});
  script.Answer("acquire", Blocked("level"));
  script.Answer("rules_list", Rules(1001, 2, true, "flow", Refusing(1)));
  script.HasDrawnPause();
  script.TickDue();
  script.Answer("acquire", Blocked("level"));
  script.Acquire("granted", {.prioritized = true});
  script.Answer("acquire", Blocked("waiters_ahead"));
  script.HasDrawnPause();
  script.TickDue();
  script.Answer("acquire", Granted(Terms(0)));
  script.Acquire("not prioritized");
  script.Answer("acquire", Blocked("level"));
  for (const char* limit : {"over_level", "draining", "queue_timeout"}) {
    script.Acquire(limit, {.prioritized = true});
    script.Answer("acquire", Blocked(limit));
  }
  Check(script);
}

TEST_CASE("vector: words of a later server") {
  VectorScript script = Begin("words of a later server", Shop(Fallback::kPass));
  script.Connect();
  script.Acquire("level", {.prioritized = true});
  script.Answer("acquire", Blocked("moon_phase"));
  script.Answer("rules_list", Rules(1001, 2, true, "flow", Refusing(1)));
  script.HasDrawnPause();
  script.TickDue();
  script.Answer("acquire", Granted(Terms(0)));
  script.Acquire("full", {.prioritized = true}, FlowId(1002));
  script.Answer("acquire", Json::array({-2, 0, 0, 0, 0, 0, "moon_limit"}));
  Check(script);
}

TEST_CASE("vector: acquireRefuseStrategy 2: until the deadline") {
  VectorScript script = Begin("acquireRefuseStrategy 2 tries until the deadline");
  script.Connect();
  script.Acquire("a", {.prioritized = true, .timeout = 200ms});
  script.At(5);
  script.Answer("acquire", Blocked("level"));
  script.At(8);
  script.Answer("rules_list", Rules(1001, 2, true, "flow", Refusing(2)));
  script.HasDrawnPause();
  // Each answer takes 5 ms. The last takes so long that the next might not come in time.
  for (int attempt = 0; attempt < 5; ++attempt) {
    script.TickDue();
    script.Elapse(5);
    script.Answer("acquire", Blocked("level"));
    script.HasDrawnPause();
  }
  script.TickDue();
  script.At(185);
  script.Answer("acquire", Blocked("level"));
  // The pause is over only when the connection is gone: it is asked on the next one.
  script.Acquire("over two connections", {.prioritized = true});
  script.Answer("acquire", Blocked("level"));
  script.HasDrawnPause();
  script.Disconnected();
  script.Elapse(100);
  script.Tick();
  script.Connect();
  script.Answer("acquire", Granted(Terms(0)));
  Check(script);
}

TEST_CASE("vector: acquireRefuseStrategy 0, 3 and of no rule: refused at once") {
  VectorScript script = Begin("acquireRefuseStrategy 0 and 3 try no more");
  script.Connect();
  int64_t flow = 1001;
  for (const int strategy : {0, 3}) {
    const std::string call = "strategy " + std::to_string(strategy);
    script.Acquire(call, {.prioritized = true}, FlowId(flow));
    script.Answer("acquire", Blocked("level"));
    script.Answer("rules_list", Rules(flow, 2, true, "flow", Refusing(strategy)));
    ++flow;
  }
  script.Acquire("no rule", {.prioritized = true}, FlowId(flow));
  script.Answer("acquire", Blocked("level"));
  script.Answer("rules_list", Json::array({Json::array(), nullptr}));
  Check(script);
}

TEST_CASE("vector: a prioritized group follows the rule in its way, by name") {
  const FlowId checkout = FlowNamed("checkout");
  VectorScript script = Begin("a prioritized group follows the rule in its way");
  script.Connect();
  script.AcquireAll("g", {{FlowId(1001), 1}, {checkout, 1}}, {.prioritized = true});
  script.Answer("acquire_all", Json::array({1, Json::array(), "level", 77, 1, 1}));
  script.Answer("rules_list", RulesOfName("checkout", 1, Refusing(1)));
  script.HasDrawnPause();
  script.TickDue();
  script.Answer("acquire_all", Json::array({0,
                                            Json::array({Json::array({101, 13, 4000, Terms(0)}),
                                                         Json::array({102, 14, 4000, Terms(0)})}),
                                            nullptr, 0, 0, 0}));
  script.AcquireAll("no flow in its way", {{FlowId(1001), 1}, {checkout, 1}},
                    {.prioritized = true});
  script.Answer("acquire_all", Json::array({1, Json::array(), "queue_full", 0, 0, 0}));
  Check(script);
}

// Rules.

TEST_CASE("vector: a rule is asked for again after 30 s, and counts as it is then") {
  VectorScript script = Begin("a rule that changes", Shop(Fallback::kByRule));
  script.Connect();
  script.Request("seen", {}, FlowId(1001));
  script.Answer("rules_list", Rules(1001, 2, true));
  script.Answer("request", Json::array({0, 1, 0, nullptr}));
  for (int ping = 0; ping < 3; ++ping) {
    script.TickDue();
    script.Answer("ping", Json::array({1'700'000'000'000}));
  }
  script.At(30'000);
  script.Acquire("fresh");
  script.Answer("acquire", Blocked("level"));
  script.At(30'001);
  script.Acquire("old");
  script.Answer("rules_list", Rules(1001, 6, true));
  script.Answer("acquire", Blocked("level"));
  script.Disconnected();
  script.DialFailed();
  for (const char* call : {"a", "b", "c", "d"}) script.Acquire(call);
  Check(script);
}

}  // namespace
}  // namespace nowcalls::client
