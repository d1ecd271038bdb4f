// Invariant 8 for flows whose rules are gone: they stay while tokens are out, and are bounded too.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::RulesJson;
using Sets = std::map<std::string, std::set<int64_t>>;  // Flow ids by namespace.

constexpr uint32_t kRulesMax = 3;
constexpr size_t kFlowsMax = 6;

CoreOptions WithRulesMax(uint32_t rules_max) {
  CoreOptions options = testing::HarnessOptions();
  options.limits.rules_max = rules_max;
  return options;
}

Status Load(Core* core, const Step& step, const Sets& sets, double count = 100) {
  std::vector<RuleSet> parsed;
  for (const auto& [name_space, ids] : sets) {
    std::vector<testing::RuleOptions> rules;
    for (const int64_t id : ids) {
      rules.push_back({.flow = id, .count = count, .resource_timeout_ms = 600'000});
    }
    parsed.push_back({name_space, ParseRules(RulesJson(rules)).value()});
  }
  return core->ReplaceRules(step, RefsTo(parsed));
}

// Flows 1 to 3 of removed rules and 4 to 6 in force, a token of each out: as many as there may be.
struct Full {
  Full() {
    for (const int64_t first : {1, 4}) {
      REQUIRE(LoadText({{"app", {first, first + 1, first + 2}}}) == "ok");
      for (int64_t id = first; id < first + 3; ++id) tokens[id] = h.Take(a, id);
    }
    REQUIRE(flows().size() == kFlowsMax);
  }

  const FlowTable& flows() { return h.core().flows(); }
  std::string LoadText(const Sets& sets, double count = 100) {
    std::string text = Load(&h.core(), h.step(), sets, count).ToString();
    if (h.auto_commit && !h.batch().empty()) h.Commit();
    return text;
  }

  CoreHarness h{WithRulesMax(kRulesMax)};
  SessionSlot a = h.Hello("a");
  std::map<int64_t, TokenId> tokens;
};

TEST_CASE("beyond flows_max new flow ids are refused, and nothing is changed") {
  Full full;
  full.h.auto_commit = false;
  CHECK(full.LoadText({{"app", {7, 8, 9}}}) ==
        "resource_exhausted: the set would make 9 flows, 6 of them of removed rules with tokens "
        "out; at most 6 are allowed (flows_max): wait for those tokens to end, or take them back "
        "(nowcalls-admin purge)");
  CHECK(full.LoadText({{"app", {1, 2, 7}}})
            .starts_with("resource_exhausted: the set would make 7 flows, 4 of them of removed"));
  CHECK(full.LoadText({{"app", {4}}, {"two", {5, 7}}})
            .starts_with("resource_exhausted: the set would make 7 flows, 4 of them of removed"));
  CHECK(full.h.batch().empty());
  CHECK(full.flows().size() == kFlowsMax);
  CHECK(full.flows().rules() == 3);
  CHECK(full.flows().FindNamespace("two") == kNoNamespace);
  for (const int64_t id : {4, 5, 6}) {
    CHECK(full.h.Acquire(full.a, id).status == TokenStatus::kOk);
  }
  CHECK(full.h.Acquire(full.a, 1).status == TokenStatus::kNoRuleExists);
}

TEST_CASE("with flows_max flows rules may be changed, removed, put back and moved") {
  Full full;
  CHECK(full.LoadText({{"app", {4, 5, 6}}}, 1) == "ok");
  CHECK(full.h.Acquire(full.a, 4).status == TokenStatus::kBlocked);
  CHECK(full.LoadText({{"app", {1, 2, 4}}}) == "ok");
  CHECK(full.LoadText({{"app", {4}}, {"two", {1, 5}}}) == "ok");
  CHECK(full.LoadText({{"app", {1, 5}}, {"two", {4}}}) == "ok");
  CHECK(full.LoadText({{"app", {}}, {"two", {}}}) == "ok");
  CHECK(full.flows().rules() == 0);
  CHECK(full.flows().size() == kFlowsMax);
  CHECK(full.LoadText({{"app", {3, 4, 6}}}) == "ok");
  CHECK(full.flows().rules() == 3);
  CHECK(full.flows().size() == kFlowsMax);
}

TEST_CASE("below flows_max is room again as tokens of removed rules end") {
  Full full;
  full.h.Release(full.a, full.tokens[1]);
  CHECK(full.LoadText({{"app", {7, 8}}}).starts_with("resource_exhausted: "));
  CHECK(full.LoadText({{"app", {4, 5, 7}}}) == "ok");
  CHECK(full.flows().size() == kFlowsMax);
  // Taken back by an administrator.
  CHECK(full.LoadText({{"app", {4, 5, 8}}}) == "ok");  // 7 has no tokens: it makes room.
  full.h.Reclaim(full.tokens[2]);
  full.h.Reclaim(full.tokens[3]);
  CHECK(full.flows().size() == kFlowsMax - 2);
  CHECK(full.LoadText({{"app", {8, 9}}, {"two", {10}}}) == "ok");
  CHECK(full.flows().size() == kFlowsMax);
  full.h.Pass(1'300'000);
  CHECK(full.flows().size() == 3);
  CHECK(full.LoadText({{"app", {11, 12, 13}}, {"two", {}}}) == "ok");
}

TEST_CASE("a ledger with more flows than flows_max is loaded, and its rules may be replaced") {
  Full full;
  Core core(WithRulesMax(2));
  REQUIRE(testing::LoadCore(&full.h.store(), full.h.now(), &core).ToString() == "ok");
  CHECK(core.flows().size() == 6);
  CHECK(core.flows().rules() == 3);
  ledger::CommitBatch batch;
  const Step step{full.h.now(), &batch};
  CHECK(Load(&core, step, {{"app", {4, 7}}})
            .ToString()
            .starts_with("resource_exhausted: the set would make 7 flows, 5 of them of removed"));
  CHECK(batch.empty());
  CHECK(Load(&core, step, {{"app", {1}}, {"two", {5}}}).ok());
  CHECK(Load(&core, step, {{"app", {}}, {"two", {}}}).ok());
  CHECK(core.flows().size() == 6);
}

// Random sets and tokens, beside what the core must make of them: known from nothing but the ids in
// force and the tokens that are out.
class RandomSets {
 public:
  void Step() {
    const int64_t id = prng_.Between(1, 12);
    if (const auto token = held_.find(id); token != held_.end()) {
      if (prng_.Below(3) > 0) return Replace(Draw());
      h_.Release(a_, token->second);
      held_.erase(token);
    } else if (IdsOf(in_force_).contains(id)) {
      held_[id] = h_.Take(a_, id);
    }
    if (prng_.Below(3) == 0) Replace(Draw());
    REQUIRE(h_.core().flows().size() == Exist(in_force_).size());
  }

  int refused = 0;
  int filled = 0;

 private:
  static std::set<int64_t> IdsOf(const Sets& sets) {
    std::set<int64_t> all;
    for (const auto& [name_space, ids] : sets) all.insert(ids.begin(), ids.end());
    return all;
  }

  std::set<int64_t> Exist(const Sets& in_force) const {
    std::set<int64_t> ids = IdsOf(in_force);
    for (const auto& [id, token] : held_) ids.insert(id);
    return ids;
  }

  // For one namespace or more, within rules_max.
  Sets Draw() {
    Sets drawn;
    Sets kept = in_force_;
    for (const auto& [name_space, ids] : in_force_) {
      if (prng_.Below(2) == 0) continue;
      drawn[name_space] = {};
      kept.erase(name_space);
    }
    std::set<int64_t> taken = IdsOf(kept);
    for (auto& [name_space, ids] : drawn) {
      while (taken.size() < kRulesMax && prng_.Below(4) > 0) {
        const int64_t id = prng_.Between(1, 12);
        if (taken.insert(id).second) ids.insert(id);
      }
    }
    return drawn;
  }

  void Replace(const Sets& sets) {
    Sets after = in_force_;
    for (const auto& [name_space, ids] : sets) after[name_space] = ids;
    const std::set<int64_t> before = Exist(in_force_);
    const std::set<int64_t> wanted = IdsOf(after);
    const bool brings_new = !std::ranges::includes(before, wanted);
    const bool refuse = brings_new && Exist(after).size() > kFlowsMax;
    const Status status = Load(&h_.core(), h_.step(), sets);
    REQUIRE(status.code() == (refuse ? StatusCode::kResourceExhausted : StatusCode::kOk));
    refused += refuse ? 1 : 0;
    filled += !refuse && brings_new && Exist(after).size() == kFlowsMax ? 1 : 0;
    if (!refuse) in_force_ = after;
    if (!h_.batch().empty()) h_.Commit();
  }

  CoreHarness h_{WithRulesMax(kRulesMax)};
  SessionSlot a_ = h_.Hello("a");
  Prng prng_{5};
  Sets in_force_ = {{"one", {}}, {"two", {}}, {"three", {}}};
  std::map<int64_t, TokenId> held_;
};

TEST_CASE("whatever sets are replaced together, flows are counted exactly") {
  RandomSets sets;
  for (int i = 0; i < 10'000; ++i) sets.Step();
  CHECK(sets.refused > 100);
  CHECK(sets.filled > 100);
}

}  // namespace
}  // namespace nowcalls::core
