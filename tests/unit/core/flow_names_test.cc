// Flows by name: found in their namespace while their rules come, move, go and come back.
#include "core/tables/flow_names.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "core/books.h"
#include "core/rules/flow_number.h"
#include "core/rules/rule_set.h"
#include "core/tables/flow_table.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;
using testing::RulesJson;

// "7 8": the numbers of a name, by slot; "-": the namespace does not exist.
std::string NumbersOf(CoreHarness* h, std::string_view name_space, const FlowName& name) {
  const FlowTable& flows = h->core().flows();
  const NamespaceSlot space = flows.FindNamespace(name_space);
  if (space == kNoNamespace) return "-";
  std::string text;
  ForEachNamed(flows, space, name, [&](FlowSlot slot) {
    text += (text.empty() ? "" : " ") + std::to_string(flows.at(slot).id.value);
    return true;
  });
  return text;
}

FlowName NamedInForce(std::string_view resource) { return {.resource = resource}; }
FlowName NamedRemoved(std::string_view resource) { return {.resource = resource, .removed = true}; }
FlowName NamedByValue(std::string_view resource) {
  return {.resource = resource, .kind = FlowKind::kValue};
}

TEST_CASE("a name finds the rules of its namespace and kind, however many have it") {
  CoreHarness h;
  h.Rules({{.flow = 7, .resource = "checkout"},
           {.flow = 8, .resource = "checkout"},
           {.flow = 7, .param = ParamRule{}, .resource = "checkout"},
           {.flow = 9, .resource = "search"}});
  h.Rules({{.flow = 11, .resource = "checkout"}}, "bank");
  CHECK(NumbersOf(&h, "app", NamedInForce("checkout")) == "7 8");
  CHECK(NumbersOf(&h, "app", NamedByValue("checkout")) == "7");
  CHECK(NumbersOf(&h, "app", NamedInForce("search")) == "9");
  CHECK(NumbersOf(&h, "app", NamedInForce("Checkout")).empty());
  CHECK(NumbersOf(&h, "app", NamedRemoved("checkout")).empty());
  CHECK(NumbersOf(&h, "bank", NamedInForce("checkout")) == "11");
  // Over all namespaces, and only as far as the caller wants.
  int seen = 0;
  ForEachNamed(h.core().flows(), NamedInForce("checkout"), [&](FlowSlot) { return ++seen < 2; });
  CHECK(seen == 2);
  ForEachNamed(h.core().flows(), NamedInForce("checkout"), [&](FlowSlot) { return ++seen > 0; });
  CHECK(seen == 5);
  CHECK(FindWrongBook(h.core()) == "");
}

TEST_CASE("a rule that changes its resource or its namespace is found by its new name only") {
  CoreHarness h;
  h.Rules({{.flow = 7, .resource = "checkout"}});
  h.Take(h.Hello("a"), 7);
  h.Rules({{.flow = 7, .resource = "pay"}});
  CHECK(NumbersOf(&h, "app", NamedInForce("checkout")).empty());
  CHECK(NumbersOf(&h, "app", NamedInForce("pay")) == "7");
  CHECK(FindWrongBook(h.core()) == "");

  const RuleSet empty{.name_space = "app", .parsed = {}};
  const RuleSet moved{
      .name_space = "bank",
      .parsed = ParseRules(RulesJson({{.flow = 7, .resource = "pay"}}), "bank").value()};
  REQUIRE(h.core().ReplaceRules(h.step(), {&empty, &moved}).ToString() == "ok");
  CHECK(NumbersOf(&h, "app", NamedInForce("pay")).empty());
  CHECK(NumbersOf(&h, "bank", NamedInForce("pay")) == "7");
  CHECK(FindWrongBook(h.core()) == "");
}

TEST_CASE("a removed rule is found as removed while it has tokens, and in force when it is back") {
  CoreHarness h;
  h.Rules({{.resource = "checkout"}, {.flow = 8, .resource = "idle"}});
  const std::string number = std::to_string(FlowNumberOf("app", "checkout").value);
  CHECK(NumbersOf(&h, "app", NamedInForce("checkout")) == number);
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, FlowNumberOf("app", "checkout").value);
  h.Rules({});
  CHECK(NumbersOf(&h, "app", NamedInForce("checkout")).empty());
  CHECK(NumbersOf(&h, "app", NamedRemoved("checkout")) == number);
  CHECK(NumbersOf(&h, "app", NamedRemoved("idle")).empty());
  CHECK(FindWrongBook(h.core()) == "");

  h.Restart();
  CHECK(NumbersOf(&h, "app", NamedRemoved("checkout")) == number);
  CHECK(FindWrongBook(h.core()) == "");
  h.Rules({{.resource = "checkout"}});
  CHECK(NumbersOf(&h, "app", NamedRemoved("checkout")).empty());
  CHECK(NumbersOf(&h, "app", NamedInForce("checkout")) == number);
  CHECK(h.NowCalls(FlowNumberOf("app", "checkout").value) == 1);

  h.Rules({});
  h.Release(h.Hello("a"), token);
  CHECK(NumbersOf(&h, "app", NamedRemoved("checkout")).empty());
  CHECK(FindWrongBook(h.core()) == "");
}

TEST_CASE("rules without flowId are the same flows after a restart and after another load") {
  CoreHarness h;
  const int64_t number = FlowNumberOf("app", "checkout").value;
  h.Rules({{.count = 3, .resource = "checkout"}});
  h.Take(h.Hello("a"), number, 2);
  h.Restart();
  CHECK(h.Acquire(h.Hello("a"), number, 2).status == TokenStatus::kBlocked);
  h.Rules({{.count = 4, .resource = "checkout"}});
  CHECK(h.Acquire(h.Hello("a"), number, 2).now_calls == 4);
  CHECK(NumbersOf(&h, "app", NamedInForce("checkout")) == std::to_string(number));
}

TEST_CASE("a number of a name that another namespace has refuses the set") {
  CoreHarness h;
  const int64_t number = FlowNumberOf("bank", "checkout").value;
  h.Rules({{.flow = number, .resource = "mine"}});
  const Status refused =
      testing::ReplaceRules(&h.core(), h.step(), "bank", RulesJson({{.resource = "checkout"}}));
  CHECK(refused.code() == StatusCode::kAlreadyExists);
  CHECK(refused.message().starts_with(
      "namespace bank: rule of resource 'checkout': clusterConfig.flowId " +
      std::to_string(number) +
      ", in the range of rules without flowId, belongs to namespace app; "));
}

}  // namespace
}  // namespace nowcalls::core
