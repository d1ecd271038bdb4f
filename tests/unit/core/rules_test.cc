// Rules: replaced as a set; lowered, removed and added again while tokens are out.
#include <doctest/doctest.h>

#include <string>

#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::ReadLedger;
using testing::RulesJson;

Status Load(CoreHarness* h, std::string_view name_space, const std::string& json) {
  return testing::ReplaceRules(&h->core(), h->step(), name_space, json);
}

TEST_CASE("a level lowered below nowCalls refuses new grants and lets the rest drain") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}});
  const SessionSlot a = h.Hello("a");
  const TokenId two = h.Take(a, 1, 2);
  const TokenId three = h.Take(a, 1, 3);
  h.Rules({{.flow = 1, .count = 2}});
  CHECK(h.NowCalls(1) == 5);
  CHECK(h.Acquire(a, 1).status == TokenStatus::kBlocked);
  CHECK(h.Acquire(a, 1).level == 2);
  CHECK(h.Keep(a, three).status == TokenStatus::kOk);
  h.Release(a, two);
  CHECK(h.Acquire(a, 1).status == TokenStatus::kBlocked);
  h.Release(a, three);
  CHECK(h.Acquire(a, 1, 2).status == TokenStatus::kOk);
}

TEST_CASE("a raised level grants at once") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  CHECK(h.Acquire(a, 1).status == TokenStatus::kBlocked);
  h.Rules({{.flow = 1, .count = 2}});
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
}

TEST_CASE("tokens of a removed rule stay counted, keepable and releasable; nothing is granted") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5, .resource_timeout_ms = 7000}});
  const SessionSlot a = h.Hello("a");
  const TokenId kept = h.Take(a, 1, 2);
  const TokenId released = h.Take(a, 1);
  h.Rules({});
  CHECK(h.core().flows().rules() == 0);
  CHECK(h.Acquire(a, 1).status == TokenStatus::kNoRuleExists);
  CHECK(h.NowCalls(1) == 3);
  CHECK(h.Release(a, released) == TokenStatus::kReleaseOk);
  CHECK(h.Keep(a, kept).hold_ms == 14'000);
  CHECK(h.NowCalls(1) == 2);
  h.Pass(14'200);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().flows().size() == 0);
}

TEST_CASE("a rule that is added again finds its tokens counted") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1, 4);
  h.Rules({});
  h.Rules({{.flow = 1, .count = 5}});
  CHECK(h.Acquire(a, 1, 2).status == TokenStatus::kBlocked);
  CHECK(h.Acquire(a, 1, 1).now_calls == 5);
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
  CHECK(h.NowCalls(1) == 1);
}

TEST_CASE("a removed rule may be added again by another namespace, with tokens still out") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1, 4);
  h.Rules({});
  h.Rules({{.flow = 1, .count = 6}}, "heir");
  CHECK(h.NowCalls(1) == 4);
  CHECK(h.Acquire(a, 1, 2).level == 6);
  const auto rules = ReadLedger(&h.store()).rules;
  REQUIRE(rules.size() == 1);
  CHECK(rules[0].name_space == "heir");
  CHECK(rules[0].state == ledger::RuleState::kActive);
}

TEST_CASE("a set replaces only the rules of its own namespace") {
  CoreHarness h;
  h.Rules({{.flow = 1}, {.flow = 2}}, "one");
  h.Rules({{.flow = 3}}, "two");
  h.Rules({{.flow = 2}, {.flow = 4}}, "one");
  const SessionSlot a = h.Hello("a", "one");
  CHECK(h.Acquire(a, 1).status == TokenStatus::kNoRuleExists);
  for (const int64_t flow : {2, 3, 4}) CHECK(h.Acquire(a, flow).status == TokenStatus::kOk);
  CHECK(h.core().flows().rules() == 3);
  CHECK(ReadLedger(&h.store()).rules.size() == 3);
}

TEST_CASE("a rule that did not change leaves no record") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}, {.flow = 2}});
  h.auto_commit = false;
  h.Rules({{.flow = 1, .count = 5}, {.flow = 2}});
  CHECK(h.batch().empty());
  h.Rules({{.flow = 1, .count = 6}, {.flow = 2}});
  CHECK(h.batch().records() == 1);
}

TEST_CASE("one invalid rule refuses the whole set and the old one stays") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}, {.flow = 2}});
  h.auto_commit = false;
  const Status status =
      Load(&h, "app", RulesJson({{.flow = 1, .count = 9}, {.flow = 3, .count = -1}}));
  CHECK(status.ToString() ==
        "invalid_argument: rule 2 (resource \"r3\", flowId 3): count must be >= 0");
  CHECK(h.batch().empty());
  const SessionSlot a = h.Hello("a");
  CHECK(h.Acquire(a, 1).level == 5);
  CHECK(h.Acquire(a, 2).status == TokenStatus::kOk);
  CHECK(h.Acquire(a, 3).status == TokenStatus::kNoRuleExists);
}

TEST_CASE("a flowId of another namespace refuses the whole set") {
  CoreHarness h;
  h.Rules({{.flow = 1}}, "owner");
  h.auto_commit = false;
  const Status status = Load(&h, "thief", RulesJson({{.flow = 5}, {.flow = 1}}));
  CHECK(StatusCodeName(status.code()) == "already_exists");
  CHECK(status.message() ==
        "namespace thief: rule of resource 'r1': clusterConfig.flowId 1 belongs to "
        "namespace owner; of each kind, flow ids are unique across namespaces (to move it, load a "
        "set "
        "without "
        "it there first, such as []; to give a namespace another name, configure both, the old one "
        "with [])");
  CHECK(h.batch().empty());
  CHECK(OnlyFlow(h.core().flows(), 5) == kNoFlow);
  CHECK(h.core().flows().FindNamespace("thief") == kNoNamespace);
}

TEST_CASE("a namespace name is checked") {
  CoreHarness h;
  for (const std::string& name : {std::string(), std::string(129, 'n'), std::string("a\nb"),
                                  std::string("a\0b", 3), std::string("\xff")}) {
    const Status status = Load(&h, name, "[]");
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message().starts_with("namespace: must "));
  }
  CHECK(Load(&h, std::string(128, 'n'), "[]").ok());
}

TEST_CASE("an empty set for a namespace that nobody uses leaves no trace") {
  CoreHarness h;
  h.auto_commit = false;
  CHECK(Load(&h, "ghost", "[]").ok());
  CHECK(h.batch().empty());
  CHECK(h.core().flows().namespaces() == 0);
}

TEST_CASE("a load is told in the log, skipped rules up to ten") {
  CoreHarness h;
  std::string json = RulesJson({{.flow = 1}});
  json.pop_back();
  for (int i = 0; i < 12; ++i) json += R"(,{"resource":"local","clusterMode":false})";
  json += ']';
  REQUIRE(Load(&h, "app", json).ok());
  const auto notices = h.core().TakeNotices();
  REQUIRE(notices.size() == 12);
  CHECK(notices[0].text == "namespace app: 1 rule, 1 new or changed, 0 removed, 12 skipped");
  CHECK_FALSE(notices[0].warning);
  CHECK(notices[10].text ==
        "namespace app: rule 11 (resource \"local\") is skipped: clusterMode is false");
  CHECK(notices[10].warning);
  CHECK(notices[11].text == "namespace app: 2 more are skipped");
  CHECK(h.core().TakeNotices().empty());
}

TEST_CASE("a load by RPC that changes nothing is left to be told by who took it") {
  CoreHarness h;
  const std::string json = RulesJson({{.flow = 1}});
  REQUIRE(Load(&h, "app", json).ok());
  CHECK(h.core().rule_book().set_changes() == 1);
  h.core().TakeNotices();
  REQUIRE(Load(&h, "app", json).ok());
  CHECK(h.core().rule_book().set_changes() == 1);
  CHECK(h.core().TakeNotices().empty());
  // The sets of other sources cost the operator's own doing, such as SIGHUP.
  const auto from_file = [&] {
    return h.core().ReplaceRules(h.step(),
                                 RefsTo({{"ours", ParseRules("[]").value(), "file:/x.json"}}));
  };
  REQUIRE(from_file().ok());
  REQUIRE(from_file().ok());
  const auto notices = h.core().TakeNotices();
  REQUIRE(notices.size() == 2);
  CHECK(notices[1].text == "namespace ours: 0 rules, 0 new or changed, 0 removed, 0 skipped");
  REQUIRE(Load(&h, "app", "[]").ok());
  CHECK(h.core().rule_book().set_changes() == 2);
  CHECK(h.core().TakeNotices().size() == 2);
}

TEST_CASE("a load that removes rules in force warns of it with their number") {
  CoreHarness h;
  REQUIRE(Load(&h, "app", RulesJson({{.flow = 1}, {.flow = 2}, {.flow = 3}})).ok());
  h.core().TakeNotices();
  REQUIRE(Load(&h, "app", RulesJson({{.flow = 2}})).ok());
  const auto notices = h.core().TakeNotices();
  REQUIRE(notices.size() == 2);
  CHECK(notices[0].warning);
  CHECK(notices[0].text ==
        "namespace app: 2 rules in force removed: acquires under them answer NO_RULE_EXISTS, for "
        "which Sentinel's clients let calls pass");
  REQUIRE(Load(&h, "app", "[]").ok());
  CHECK(h.core().TakeNotices()[0].text.starts_with("namespace app: 1 rule in force removed: "));
}

TEST_CASE(
    "a load that changes a rule or moves it to another namespace does not warn of a removal") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}}, "one");
  h.core().TakeNotices();
  const auto parsed = [](const std::string& json) { return ParseRules(json).value(); };
  const std::vector<RuleSet> sets = {{"one", parsed("[]")},
                                     {"two", parsed(RulesJson({{.flow = 1, .count = 6}}))}};
  REQUIRE(h.core().ReplaceRules(h.step(), RefsTo(sets)).ok());
  for (const Notice& notice : h.core().TakeNotices()) CHECK_FALSE(notice.warning);
}

TEST_CASE("flows move between namespaces whose sets are replaced together") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}}, "one");
  h.Rules({{.flow = 2, .count = 5}, {.flow = 3, .count = 5}}, "two");
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1, 2);
  const auto parsed = [](const std::vector<testing::RuleOptions>& rules) {
    return ParseRules(RulesJson(rules)).value();
  };
  // One and two swap flows 1 and 2; flow 3 goes; a namespace is renamed in the same step.
  REQUIRE(h.core()
              .ReplaceRules(h.step(), RefsTo({{"one", parsed({{.flow = 2, .count = 7}})},
                                              {"two", parsed({})},
                                              {"three", parsed({{.flow = 1, .count = 3}})}}))
              .ToString() == "ok");
  CHECK(h.core().flows().rules() == 2);
  CHECK(h.core().flows().FindNamespace("two") == kNoNamespace);
  CHECK(h.NowCalls(1) == 2);
  CHECK(h.Acquire(a, 1, 2).status == TokenStatus::kBlocked);
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
  h.Commit();
  h.Restart();
  const FlowTable& flows = h.core().flows();
  CHECK(flows.rules() == 2);
  CHECK(flows.name_space(flows.at(OnlyFlow(flows, 1)).name_space).name == "three");
  CHECK(flows.name_space(flows.at(OnlyFlow(flows, 2)).name_space).name == "one");
}

TEST_CASE("of several sets none is loaded when one is refused") {
  CoreHarness h;
  h.Rules({{.flow = 1}}, "one");
  h.Rules({{.flow = 9}}, "other");
  const auto load = [&h](int64_t flow_of_two, std::string second) {
    return h.core()
        .ReplaceRules(
            h.step(),
            RefsTo({{"one", ParseRules(RulesJson({{.flow = 2}})).value()},
                    {std::move(second), ParseRules(RulesJson({{.flow = flow_of_two}})).value()}}))
        .ToString();
  };
  CHECK(load(2, "two").ends_with("clusterConfig.flowId 2 is also in the set of namespace one"));
  CHECK(load(9, "two").starts_with("already_exists: namespace two: rule of resource"));
  CHECK(load(3, "one") == "invalid_argument: namespace one: is given two sets of rules");
  CHECK(load(3, "").starts_with("invalid_argument: namespace: "));
  CHECK(h.core().flows().rules() == 2);
  CHECK(h.core().flows().at(OnlyFlow(h.core().flows(), 1)).rule != nullptr);
  CHECK(load(3, "two") == "ok");
}

// A session that waits for the longer of two clientOfflineTimes is looked at anew.
TEST_CASE("a lowered clientOfflineTime reaches clients that are offline already") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Goodbye(a);
  h.Pass(1000);
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 5000}});
  h.Pass(3999);
  CHECK(h.NowCalls(1) == 1);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("a lowered clientOfflineTime pays for each session that is looked at") {
  constexpr uint64_t kSessions = 100;
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .client_offline_ms = 2000}});
  for (uint64_t i = 0; i < kSessions; ++i) h.Take(h.Hello("c" + std::to_string(i)), 1);
  uint64_t before = h.core().books().looks();
  h.Rules({{.flow = 1, .count = 1e6, .client_offline_ms = 3000}});
  CHECK(h.core().books().looks() - before < kSessions);
  before = h.core().books().looks();
  h.Rules({{.flow = 1, .count = 1e6, .client_offline_ms = 1000}});
  CHECK(h.core().books().looks() - before >= kSessions);
}

TEST_CASE("a lowered clientOfflineTime counts also after tokens of a shorter one were reclaimed") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 1000},
           {.flow = 2, .resource_timeout_ms = 600'000, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Take(a, 2);
  h.Goodbye(a);
  h.Pass(2000);
  REQUIRE(h.NowCalls(1) == 0);
  REQUIRE(h.NowCalls(2) == 1);
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 1000},
           {.flow = 2, .resource_timeout_ms = 600'000, .client_offline_ms = 5000}});
  h.Pass(3000);
  CHECK(h.NowCalls(2) == 0);
}

TEST_CASE("a clientOfflineTime lowered while the session is walked counts for tokens passed over") {
  CoreHarness h;
  const std::vector<testing::RuleOptions> before = {
      {.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000, .client_offline_ms = 100'000},
      {.flow = 2, .count = 1e6, .resource_timeout_ms = 600'000, .client_offline_ms = 1000}};
  h.Rules(before);
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 900; ++i) h.Take(a, 1);
  for (int i = 0; i < 1500; ++i) h.Take(a, 2);
  h.Goodbye(a);
  h.Sleep(1000);
  h.core().OnTime(h.step());  // Passes over all of flow 1.
  h.Commit();
  REQUIRE(h.NowCalls(2) > 0);
  REQUIRE(h.NowCalls(2) < 1500);
  auto after = before;
  after[0].client_offline_ms = 5000;
  h.Rules(after);
  h.Pass(3999);
  CHECK(h.NowCalls(2) == 0);
  CHECK(h.NowCalls(1) == 900);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("a raised clientOfflineTime gives clients that are offline the longer time") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Goodbye(a);
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 5000}});
  h.Pass(4999);
  CHECK(h.NowCalls(1) == 1);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
}

}  // namespace
}  // namespace nowcalls::core
