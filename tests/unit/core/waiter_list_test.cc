// The listing of waiters: their order, their places, and its bounds.
#include "core/grants/waiter_list.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

// "1:2" is the second in line of flow 1.
std::vector<std::string> Listed(CoreHarness* h, const WaiterFilter& filter, size_t limit = 100) {
  std::vector<std::string> places;
  const Core& core = h->core();
  for (const WaiterPlace& found : ListWaiters(core.books(), core.wait_queues(), filter, limit)) {
    const Waiter& waiter = core.wait_queues().at(found.waiter);
    places.push_back(std::to_string(core.flows().at(waiter.lane.flow_slot).id.value) + ":" +
                     std::to_string(found.place) + " tag " + std::to_string(waiter.ticket.tag));
  }
  return places;
}

TEST_CASE("waiters are listed by flow and place, the prioritized ones first") {
  CoreHarness h;
  h.Rules({{.flow = 2, .count = 1}, {.flow = 1, .count = 1}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  for (const int64_t flow : {1, 2}) h.Take(a, flow);
  const auto wait = [&](SessionSlot session, int64_t flow, uint32_t tag, bool first = false) {
    REQUIRE_FALSE(h.Ask(session, {.flow = FlowId{flow}, .prioritized = first, .wait_ms = 1000}, tag)
                      .has_value());
  };
  CHECK(Listed(&h, {}).empty());
  wait(a, 2, 1);
  wait(b, 1, 2);
  wait(a, 1, 3);
  wait(b, 1, 4, /*first=*/true);
  using Places = std::vector<std::string>;
  CHECK(Listed(&h, {}) == Places{"1:1 tag 4", "1:2 tag 2", "1:3 tag 3", "2:1 tag 1"});
  CHECK(Listed(&h, {}, 2) == Places{"1:1 tag 4", "1:2 tag 2"});
  CHECK(Listed(&h, {.flow = FlowId{2}}) == Places{"2:1 tag 1"});
  CHECK(Listed(&h, {.flow = FlowId{3}}).empty());
  // Others keep their places when one client is asked for.
  CHECK(Listed(&h, {.client_id = "a"}) == Places{"1:3 tag 3", "2:1 tag 1"});
  h.Pass(1000);
  CHECK(Listed(&h, {}).empty());
}

TEST_CASE("each value of a parameter has a line of its own") {
  CoreHarness h;
  Rule rule;
  rule.resource = "chat";
  rule.flow_id = FlowId{1};
  rule.count = 1;
  rule.threshold_type = ThresholdType::kGlobal;
  rule.param.emplace();
  h.InstallRules({rule});
  const SessionSlot a = h.Hello("a");
  const auto ask = [&](const char* value, uint32_t tag) {
    return h.Ask(a, {.flow = FlowId{1}, .wait_ms = 1000, .param = Param{ParamType::kString, value}},
                 tag);
  };
  for (const char* value : {"x", "y"}) REQUIRE(ask(value, 0).has_value());
  for (uint32_t tag = 1; tag <= 4; ++tag) {
    REQUIRE_FALSE(ask(tag % 2 == 0 ? "y" : "x", tag).has_value());
  }
  CHECK(Listed(&h, {}) ==
        std::vector<std::string>{"1:1 tag 1", "1:2 tag 3", "1:1 tag 2", "1:2 tag 4"});
}

}  // namespace
}  // namespace nowcalls::core
