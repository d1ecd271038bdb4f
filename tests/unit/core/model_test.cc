// The core against CoreModel: random lives, everything compared after each operation.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "support/core_harness.h"
#include "support/sample.h"
#include "unit/core/core_model.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::CoreModel;
using testing::FindWrongBook;
using testing::HistoryOf;
using testing::ModelClient;
using testing::ModelEnd;
using testing::ModelRule;
using testing::ModelToken;
using testing::ReadLedger;
using testing::TokensText;

constexpr int64_t kFlows = 5;
constexpr uint32_t kHistoryMax = 12;
constexpr int64_t kTimeoutsMs[kFlows + 1] = {0, 200, 1000, 3000, 20'000, 200'000};

std::string NamespaceOf(int64_t flow) { return flow <= 3 ? "one" : "two"; }

CoreOptions Options() {
  CoreOptions options = testing::HarnessOptions();
  options.limits.history_max = kHistoryMax;
  return options;
}

class Life {
 public:
  explicit Life(uint64_t seed) : prng_(seed), h_(Options()) {
    h_.auto_commit = false;
    for (int64_t flow = 1; flow <= kFlows; ++flow) {
      const int64_t longest_ms[] = {0, kTimeoutsMs[flow] / 2, 3 * kTimeoutsMs[flow],
                                    8 * kTimeoutsMs[flow]};
      max_hold_ms_[flow] = longest_ms[prng_.Below(std::size(longest_ms))];
    }
    ReplaceRules("one", /*all=*/true);
    ReplaceRules("two", /*all=*/true);
    Commit();
  }

  void Step() {
    switch (prng_.Below(23)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: Acquire(); break;
      case 6:
      case 7:
      case 8: Release(); break;
      case 9:
      case 10: Keep(); break;
      case 11: Reclaim(); break;
      case 12:
      case 13: Hello(); break;
      case 14: Goodbye(); break;
      case 15: Pass(prng_.Between(0, 1500)); break;
      case 16: Pass(prng_.Between(0, 25'000)); break;
      case 17: h_.Sleep(prng_.Between(0, 3000)); break;
      case 18: Rules(); break;
      case 19: Restart(); break;
      case 20: ReclaimMany(); break;
      case 21:
      case 22: DrainFlow(); break;
    }
    if (prng_.Below(2) == 0) Commit();
    CompareBooks();
  }

  // Invariant 7: what is left drains.
  void Drain() {
    for (int i = 0; i < 45; ++i) Pass(10'000);
    REQUIRE(h_.core().books().tokens().size() == 0);
    REQUIRE(ReadLedger(&h_.store()).tokens.empty());
  }

 private:
  struct Handle {
    std::string client;
    SessionSlot slot = kNoSession;
  };

  void Commit() {
    if (!h_.batch().empty()) h_.Commit();
    committed_ = model_;
    REQUIRE(TokensText(ReadLedger(&h_.store())) == TokensText(h_.core()));
    REQUIRE(ReadLedger(&h_.store()).history == HistoryOf(h_.core()));
  }

  Handle* AnyHandle() {
    return handles_.empty() ? nullptr : &handles_[prng_.Below(handles_.size())];
  }

  // An id that is live, or was, or never was.
  uint64_t AnyToken() {
    if (!model_.tokens.empty() && prng_.Below(4) > 0) {
      return std::next(model_.tokens.begin(),
                       static_cast<int64_t>(prng_.Below(model_.tokens.size())))
          ->first;
    }
    if (model_.issued.empty() || prng_.Below(8) == 0) return prng_.Next();
    return *std::next(model_.issued.begin(),
                      static_cast<int64_t>(prng_.Below(model_.issued.size())));
  }

  void Acquire() {
    const Handle* handle = AnyHandle();
    if (handle == nullptr) return Hello();
    const int64_t flow = prng_.Between(1, kFlows);
    const int64_t count = prng_.Between(1, 3);
    const int64_t wanted_ms = prng_.Below(3) == 0 ? prng_.Between(1, 4 * kTimeoutsMs[flow]) : 0;
    const AcquireAnswer answer =
        *h_.Ask(handle->slot, {.flow = FlowId{flow}, .count = count, .hold_ms = wanted_ms}, 0);
    const auto& rule = model_.rules.at(flow);
    if (!rule.present) {
      REQUIRE(answer.status == TokenStatus::kNoRuleExists);
      return;
    }
    const int64_t now_calls = model_.NowCalls(flow);
    if (rule.draining) {
      REQUIRE(answer.status == TokenStatus::kBlocked);
      REQUIRE(answer.refused_by == RefusedBy::kDraining);
      return;
    }
    // Invariant 3, as requirements put it.
    if (static_cast<double>(now_calls + count) > model_.Level(flow)) {
      REQUIRE(answer.status == TokenStatus::kBlocked);
      REQUIRE(answer.now_calls == now_calls);
      return;
    }
    REQUIRE(answer.status == TokenStatus::kOk);
    REQUIRE(answer.now_calls == now_calls + count);
    int64_t hold_ms = rule.hold_ms;
    if (wanted_ms > 0) hold_ms = std::min(hold_ms, wanted_ms);
    if (rule.max_hold_ms > 0) hold_ms = std::min(hold_ms, rule.max_hold_ms);
    REQUIRE(answer.hold_ms == hold_ms);
    // Invariant 6.
    REQUIRE(answer.fence.value > model_.newest_fence);
    REQUIRE(model_.issued.insert(answer.token_id.value).second);
    model_.newest_fence = answer.fence.value;
    model_.tokens[answer.token_id.value] = {.fence = answer.fence.value,
                                            .flow = flow,
                                            .client = handle->client,
                                            .count = count,
                                            .issued_ms = h_.now().ms,
                                            .deadline_ms = h_.now().ms + answer.hold_ms,
                                            .held_since_ms = h_.now().ms};
  }

  bool Owns(const Handle& handle, uint64_t token) const {
    const auto it = model_.tokens.find(token);
    return it != model_.tokens.end() && it->second.client == handle.client;
  }

  void Release() {
    const Handle* handle = AnyHandle();
    if (handle == nullptr) return;
    const uint64_t token = AnyToken();
    const TokenStatus status = h_.Release(handle->slot, TokenId{token});
    if (!Owns(*handle, token)) {
      REQUIRE(status == TokenStatus::kAlreadyRelease);
      return;
    }
    REQUIRE(status == TokenStatus::kReleaseOk);
    End(token, model_.ReleaseReasons(model_.tokens.at(token), h_.now().ms));
    FollowHistory();
  }

  // The token is gone for one of these reasons.
  void End(uint64_t token, std::set<std::string> reasons) {
    ended_[token] = {token, model_.tokens.at(token), std::move(reasons)};
    model_.EraseToken(token);
  }

  // What the history has got since the last look are the ends since then, but for releases.
  void FollowHistory() {
    const std::vector<ledger::HistoryEntry> entries = HistoryOf(h_.core());
    const uint64_t newest = entries.empty() ? 0 : entries.back().sequence;
    REQUIRE(newest >= model_.ends.size());
    REQUIRE(entries.size() >= std::min<uint64_t>(newest, kHistoryMax));
    REQUIRE(entries.size() < 2 * kHistoryMax);
    const uint64_t oldest = newest - entries.size() + 1;
    // Ends that came and went between two looks are known to the model only as a number.
    const uint64_t unseen = oldest > model_.ends.size() ? oldest - 1 - model_.ends.size() : 0;
    for (uint64_t n = 0; n < unseen; ++n) model_.ends.push_back({});
    for (uint64_t sequence = model_.ends.size() + 1; sequence <= newest; ++sequence) {
      const uint64_t token = entries[sequence - oldest].token_id.value;
      REQUIRE(ended_.contains(token));
      model_.ends.push_back(ended_.extract(token).mapped());
    }
    // Of those left some were released in time, and the others are the unseen ones.
    uint64_t to_tell = 0;
    for (const auto& [token, end] : ended_) to_tell += end.reasons.contains("released") ? 0 : 1;
    REQUIRE(to_tell <= unseen);
    ended_.clear();
    for (const auto& entry : entries) CompareEnd(entry, model_.ends[entry.sequence - 1]);
  }

  static void CompareEnd(const ledger::HistoryEntry& entry, const ModelEnd& end) {
    REQUIRE(entry.token_id.value == end.token);
    REQUIRE(end.reasons.contains(std::string(EndReasonName(entry.reason))));
    REQUIRE(entry.fence.value == end.was.fence);
    REQUIRE(entry.flow.value == end.was.flow);
    REQUIRE(int64_t{entry.count} == end.was.count);
    REQUIRE(entry.issued_ms == end.was.issued_ms);
    REQUIRE(entry.name_space + "/" + entry.client_id == end.was.client);
  }

  void Keep() {
    const Handle* handle = AnyHandle();
    if (handle == nullptr) return;
    const uint64_t token = AnyToken();
    const KeepAnswer answer = h_.Keep(handle->slot, TokenId{token});
    if (!Owns(*handle, token)) {
      REQUIRE(answer.status == TokenStatus::kAlreadyRelease);
      return;
    }
    ModelToken& kept = model_.tokens.at(token);
    const int64_t left_ms = model_.HoldEndMs(kept) - h_.now().ms;
    if (left_ms <= 0) {
      REQUIRE(answer.status == TokenStatus::kAlreadyRelease);
      End(token, {"resource_timeout"});
      return FollowHistory();
    }
    REQUIRE(answer.status == TokenStatus::kOk);
    REQUIRE(answer.hold_ms == std::min(model_.rules.at(kept.flow).hold_ms, left_ms));
    kept.deadline_ms = h_.now().ms + answer.hold_ms;
    kept.held_since_ms = h_.now().ms;
  }

  void Reclaim() {
    const uint64_t token = AnyToken();
    const bool live = model_.tokens.contains(token);
    REQUIRE(h_.Reclaim(TokenId{token}) ==
            (live ? TokenStatus::kReleaseOk : TokenStatus::kAlreadyRelease));
    if (live) End(token, {"admin"});
    FollowHistory();
  }

  // Of a client, of a flow, or of a flow whose rule is gone: the oldest go, at most five.
  void ReclaimMany() {
    constexpr uint32_t kTokensMax = 5;
    constexpr AdminAct kAct{"test", "because"};
    const uint64_t what = prng_.Below(3);
    const int64_t flow = prng_.Between(1, kFlows);
    const std::string client = std::string(prng_.Below(3) > 0 ? "one" : "two") + "/" +
                               static_cast<char>('a' + prng_.Below(4));
    std::map<uint64_t, uint64_t> affected;  // Ids by fence.
    for (const auto& [id, token] : model_.tokens) {
      if (what == 0 ? token.client == client : token.flow == flow) affected[token.fence] = id;
    }
    Result<ReclaimAnswer> answer = ReclaimAnswer{};
    if (what == 0) {
      answer = h_.core().ReclaimClient(h_.step(), {client.substr(0, 3), client.substr(4)},
                                       kTokensMax, kAct);
    } else if (what == 1) {
      answer = h_.core().ReclaimFlow(h_.step(), FlowId(flow), kTokensMax, kAct);
    } else {
      answer = h_.core().Purge(h_.step(), FlowId(flow), kTokensMax, kAct);
    }
    const bool known = model_.rules.at(flow).present || !affected.empty();
    const bool refused = what == 2 ? model_.rules.at(flow).present || !known : what == 1 && !known;
    REQUIRE(answer.ok() == !refused);
    if (refused) return;
    REQUIRE(answer->reclaimed == std::min<size_t>(affected.size(), kTokensMax));
    REQUIRE(answer->more == (affected.size() > kTokensMax));
    for (uint32_t n = 0; n < answer->reclaimed; ++n) {
      const uint64_t token = affected.extract(affected.begin()).mapped();
      End(token, {what == 2 ? "rule_removed" : "admin"});
    }
    FollowHistory();
  }

  void DrainFlow() {
    const int64_t flow = prng_.Between(1, kFlows);
    const bool on = prng_.Below(2) == 0;
    ModelRule& rule = model_.rules.at(flow);
    const DrainAnswer answer = *h_.core().Drain(h_.step(), FlowId(flow), on, {"test", ""});
    REQUIRE(answer.status == (rule.present ? TokenStatus::kOk : TokenStatus::kNoRuleExists));
    if (rule.present) rule.draining = on;
  }

  void Hello() {
    const std::string name_space = prng_.Below(3) > 0 ? "one" : "two";
    Handle handle;
    if (prng_.Below(5) == 0) {
      const std::string display = "@" + std::to_string(++unnamed_);
      handle = {name_space + "/" + display, h_.HelloUnnamed(display, name_space)};
    } else {
      const std::string name(1, static_cast<char>('a' + prng_.Below(4)));
      handle = {name_space + "/" + name, h_.Hello(name, name_space)};
    }
    ModelClient& client = model_.clients[handle.client];
    ++client.connections;
    client.old = false;
    handles_.push_back(handle);
  }

  void Goodbye() {
    Handle* handle = AnyHandle();
    if (handle == nullptr) return;
    h_.Goodbye(handle->slot);
    model_.Goodbye(handle->client, h_.now().ms);
    handles_.erase(handles_.begin() + (handle - handles_.data()));
  }

  // The core works through what becomes due meanwhile, with a disk that is fast enough.
  void Pass(int64_t duration_ms) {
    Commit();
    h_.auto_commit = true;
    h_.Pass(duration_ms);
    h_.auto_commit = false;
    FollowExpiry();
    Commit();
  }

  // Invariant 5: what the core has taken back was due; what had to be taken back is gone.
  void FollowExpiry() {
    const int64_t now_ms = h_.now().ms;
    std::map<uint64_t, std::set<std::string>> gone;
    for (const auto& entry : model_.tokens) {
      const uint64_t id = entry.first;
      const ModelToken& token = entry.second;
      CAPTURE(id);
      const int64_t offline_due_ms = model_.OfflineDueMs(token);
      if (h_.IsLive(TokenId{id})) {
        REQUIRE(offline_due_ms > now_ms);
        REQUIRE(model_.SweptByMs(token) >= now_ms);
      } else {
        REQUIRE(std::min(offline_due_ms, model_.ExpiryMs(token)) <= now_ms);
        if (offline_due_ms <= now_ms) gone[id].insert("client_offline");
        if (model_.ExpiryMs(token) <= now_ms) gone[id].insert("resource_timeout");
      }
    }
    for (const auto& [id, reasons] : gone) End(id, reasons);
    FollowHistory();
  }

  void Rules() { ReplaceRules(prng_.Below(2) == 0 ? "one" : "two", /*all=*/false); }

  void ReplaceRules(const std::string& name_space, bool all) {
    std::vector<testing::RuleOptions> set;
    for (int64_t flow = 1; flow <= kFlows; ++flow) {
      if (NamespaceOf(flow) != name_space) continue;
      ModelRule& rule = model_.rules[flow];
      const bool draining = rule.draining;
      rule.draining = false;
      rule.present = all || prng_.Below(4) > 0;
      if (!rule.present) continue;
      constexpr int64_t kOfflineMs[] = {500, 2000, 15'000};
      rule = {.present = true,
              .draining = draining,
              .name_space = name_space,
              .count = static_cast<double>(prng_.Between(0, 24)) / 2,
              .avg_local = prng_.Below(3) == 0,
              .hold_ms = 2 * kTimeoutsMs[flow],
              .max_hold_ms = max_hold_ms_[flow],
              .client_offline_ms = kOfflineMs[prng_.Below(3)]};
      set.push_back({.flow = flow,
                     .count = rule.count,
                     .avg_local = rule.avg_local,
                     .resource_timeout_ms = kTimeoutsMs[flow],
                     .client_offline_ms = rule.client_offline_ms,
                     .max_hold_ms = rule.max_hold_ms});
    }
    h_.Rules(set, name_space);
  }

  void Restart() {
    h_.Restart(prng_.Between(0, 2000));
    handles_.clear();
    model_ = committed_;
    model_.Restart(h_.now().ms);
    committed_ = model_;
  }

  void CompareBooks() {
    REQUIRE(FindWrongBook(h_.core()) == "");
    REQUIRE(h_.core().books().tokens().size() == model_.tokens.size());
    for (const auto& [id, token] : model_.tokens) {
      const TokenSlot slot = h_.core().books().tokens().Find(token.fence);
      REQUIRE(slot != kNoToken);
      const TokenEntry& entry = h_.core().books().tokens().at(slot);
      REQUIRE(entry.count == token.count);
      REQUIRE(h_.core().flows().at(entry.flow_slot).id == FlowId{token.flow});
    }
    for (int64_t flow = 1; flow <= kFlows; ++flow) {
      REQUIRE(h_.NowCalls(flow) == model_.NowCalls(flow));  // Invariant 2.
    }
  }

  Prng prng_;
  CoreHarness h_;
  CoreModel model_;
  CoreModel committed_;
  std::vector<Handle> handles_;
  std::map<uint64_t, ModelEnd> ended_;  // Since the last look at the history.
  int unnamed_ = 0;
  int64_t max_hold_ms_[kFlows + 1] = {};
};

TEST_CASE("random lives of 300 operations agree with the model") {
  for (const uint64_t seed : testing::SampleOf(200, 25)) {
    CAPTURE(seed);
    Life life(seed);
    for (int step = 0; step < 300; ++step) {
      CAPTURE(step);
      life.Step();
    }
    life.Drain();
  }
}

}  // namespace
}  // namespace nowcalls::core
