// Which source may replace the rules of a namespace, also after a restart.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/loading.h"
#include "core/rules/rule_check.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::ReadLedger;
using testing::RuleOptions;
using testing::RulesJson;

constexpr char kFile[] = "file:/etc/nowcalls/shop.json";
constexpr char kOther[] = "file:/etc/nowcalls/other.json";

RuleSink::CheckedSet Checked(std::string_view source, const std::vector<RuleOptions>& rules,
                             std::string_view name_space = "shop") {
  auto set = CheckRuleSet(source, name_space, RulesJson(rules));
  REQUIRE(set.status().ToString() == "ok");
  return *set;
}

Status Load(CoreHarness* h, std::string_view source, const std::vector<RuleOptions>& rules,
            std::string_view name_space = "shop") {
  const RuleSink::CheckedSet set = Checked(source, rules, name_space);
  Status status = h->core().ReplaceRules(h->step(), RuleSetRefs{set.get()});
  if (!h->batch().empty()) h->Commit();
  return status;
}

Status Claim(CoreHarness* h, std::string_view source, bool takeover = false,
             std::string_view name_space = "shop") {
  return h->core().rule_book().Claim(
      {.source = source, .name_space = name_space, .takeover = takeover});
}

// "shop rpc\n"
std::string Recorded(CoreHarness* h) {
  std::string text;
  for (const auto& entry : ReadLedger(&h->store()).namespaces) {
    text += entry.name_space + " " + entry.source + "\n";
  }
  return text;
}

TEST_CASE("the ledger keeps the source of each namespace's rules, and knows it after a restart") {
  CoreHarness h;
  REQUIRE(Load(&h, "rpc", {{.flow = 1}}).ok());
  REQUIRE(Load(&h, kFile, {{.flow = 2}}, "bank").ok());
  CHECK(Recorded(&h) == "bank " + std::string(kFile) + "\nshop rpc\n");
  h.Restart();
  CHECK(Load(&h, kFile, {{.flow = 1}}).message() ==
        "namespace shop takes its rules from rpc and not from file:/etc/nowcalls/shop.json; load "
        "them by RPC (nowcalls-admin rules load), or load [] to give it up");
  REQUIRE(Load(&h, "rpc", {{.flow = 3}}).ok());
  CHECK(Recorded(&h) == "bank " + std::string(kFile) + "\nshop rpc\n");
}

TEST_CASE("a claimed namespace takes rules from its source only, and a refused load changes none") {
  CoreHarness h;
  REQUIRE(Claim(&h, kFile).ok());
  REQUIRE(Claim(&h, kFile).ok());
  REQUIRE(Load(&h, kFile, {{.flow = 1, .count = 7}}).ok());
  const Status refused = Load(&h, "rpc", {{.flow = 1, .count = 9}});
  CHECK(refused.code() == StatusCode::kAlreadyExists);
  CHECK(refused.message() ==
        "namespace shop takes its rules from file:/etc/nowcalls/shop.json and "
        "not from rpc; change them there");
  CHECK(Load(&h, kOther, {}).code() == StatusCode::kAlreadyExists);
  CHECK(Claim(&h, kOther).code() == StatusCode::kAlreadyExists);
  CHECK(Claim(&h, kOther, /*takeover=*/true).code() == StatusCode::kAlreadyExists);
  CHECK(h.Acquire(h.Hello("a"), 1).level == 7);
  CHECK(Recorded(&h) == "shop " + std::string(kFile) + "\n");
}

TEST_CASE("a claim holds before the first rules come, and when the last have gone") {
  CoreHarness h;
  REQUIRE(Claim(&h, kFile).ok());
  CHECK(Load(&h, "rpc", {{.flow = 1}}).code() == StatusCode::kAlreadyExists);
  REQUIRE(Load(&h, kFile, {{.flow = 1}}).ok());
  REQUIRE(Load(&h, kFile, {}).ok());
  CHECK(Load(&h, "rpc", {{.flow = 1}}).code() == StatusCode::kAlreadyExists);
}

TEST_CASE("a namespace whose file is configured no more may be taken by anybody") {
  for (const char* taker : {"rpc", kOther}) {
    CoreHarness h;
    REQUIRE(Claim(&h, kFile).ok());
    REQUIRE(Load(&h, kFile, {{.flow = 1}}).ok());
    h.Restart();
    REQUIRE(Load(&h, taker, {{.flow = 1}}).ok());
    CHECK(Recorded(&h) == "shop " + std::string(taker) + "\n");
    CHECK(h.NoticesText().find("its rules came from " + std::string(kFile) + " and come from " +
                               taker + " now") != std::string::npos);
  }
}

TEST_CASE("a claim takes a namespace over from the RPC only when it says so") {
  CoreHarness h;
  REQUIRE(Load(&h, "rpc", {{.flow = 1}}).ok());
  CHECK(Claim(&h, kFile).code() == StatusCode::kAlreadyExists);
  // Refused, it owns nothing.
  REQUIRE(Load(&h, "rpc", {{.flow = 1}, {.flow = 2}}).ok());
  REQUIRE(Claim(&h, kFile, /*takeover=*/true).ok());
  CHECK(Load(&h, "rpc", {}).code() == StatusCode::kAlreadyExists);
  CHECK(Recorded(&h) == "shop rpc\n");  // Until rules have come.
  REQUIRE(Load(&h, kFile, {{.flow = 1}}).ok());
  CHECK(Recorded(&h) == "shop " + std::string(kFile) + "\n");
  h.Restart();
  CHECK(Claim(&h, kFile).ok());
}

TEST_CASE("a namespace without rules is nobody's, also after a restart") {
  CoreHarness h;
  REQUIRE(Load(&h, "rpc", {{.flow = 1}}).ok());
  const TokenId token = h.Take(h.Hello("a", "shop"), 1);
  REQUIRE(Load(&h, "rpc", {}).ok());
  CHECK(Recorded(&h) == "");
  h.Restart();  // The removed rule is still there for its token.
  CHECK(h.IsLive(token));
  REQUIRE(Claim(&h, kFile).ok());
  REQUIRE(Load(&h, kFile, {{.flow = 1}}).ok());
  CHECK(Recorded(&h) == "shop " + std::string(kFile) + "\n");
}

TEST_CASE("the source is written when it changes and not with every load") {
  CoreHarness h;
  REQUIRE(Load(&h, "rpc", {{.flow = 1}}).ok());
  h.auto_commit = false;
  const RuleSink::CheckedSet same = Checked("rpc", {{.flow = 1}});
  REQUIRE(h.core().ReplaceRules(h.step(), RuleSetRefs{same.get()}).ok());
  CHECK(h.batch().empty());
  const RuleSink::CheckedSet other = Checked("rpc", {{.flow = 2}});
  REQUIRE(h.core().ReplaceRules(h.step(), RuleSetRefs{other.get()}).ok());
  CHECK(h.batch().records() == 2);  // One rule less, one more.
}

TEST_CASE("rules move between namespaces of two files in one step, each with its own source") {
  CoreHarness h;
  REQUIRE(Claim(&h, kFile).ok());
  REQUIRE(Claim(&h, kOther, false, "bank").ok());
  REQUIRE(Load(&h, kFile, {{.flow = 1}}).ok());
  REQUIRE(Load(&h, kOther, {{.flow = 2}}, "bank").ok());
  const RuleSink::CheckedSet shop = Checked(kFile, {{.flow = 2}});
  const RuleSink::CheckedSet bank = Checked(kOther, {{.flow = 1}}, "bank");
  REQUIRE(h.core().ReplaceRules(h.step(), RuleSetRefs{shop.get(), bank.get()}).ok());
  h.Commit();
  CHECK(Recorded(&h) == "bank " + std::string(kOther) + "\nshop " + std::string(kFile) + "\n");
  h.Restart();
  CHECK(h.core().flows().rules() == 2);
}

TEST_CASE("a claim counts as a namespace, and is refused where there are too many") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.namespaces_max = 1;
  CoreHarness h(options);
  REQUIRE(Claim(&h, kFile).ok());
  CHECK(Claim(&h, kOther, false, "bank").code() == StatusCode::kResourceExhausted);
  CHECK(Claim(&h, kFile).ok());
}

TEST_CASE("what is no name of a source, of a namespace or no rules is refused by name") {
  CHECK(CheckRuleSet("", "shop", "[]").status().message() ==
        "rule source: must be 1..4200 bytes, got 0");
  CHECK(CheckRuleSet("a\nb", "shop", "[]").status().message().starts_with("rule source: must be "));
  CHECK(CheckRuleSet("rpc", "", "[]").status().message() ==
        "namespace: must be 1..128 bytes, got 0");
  CHECK(CheckRuleSet("rpc", "shop", "{}").status().code() == StatusCode::kInvalidArgument);
  CoreHarness h;
  CHECK(Claim(&h, "", false).code() == StatusCode::kInvalidArgument);
  CHECK(Claim(&h, kFile, false, "").code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a namespace without its rules, one that is there twice or of no source is damage") {
  const auto load = [](const std::vector<ledger::NamespaceEntry>& entries) -> Status {
    Core core(testing::HarnessOptions());
    for (const auto& entry : entries) {
      NOWCALLS_RETURN_IF_ERROR(core.loading().LoadNamespace(entry));
    }
    return core.FinishLoad(std::nullopt);
  };
  CHECK(load({}).ok());
  CHECK(load({{"shop", "rpc"}}).ToString() ==
        "corruption: namespace shop takes its rules from rpc, but they are missing");
  CHECK(load({{"shop", "rpc"}, {"shop", "rpc"}}).ToString() ==
        "corruption: namespace shop is in the ledger twice");
  CHECK(load({{"shop", "a\nb"}}).code() == StatusCode::kCorruption);
}

}  // namespace
}  // namespace nowcalls::core
