// Admission against a model: random acquires that wait or not, with and without request ids, under
// caps, shadow mode, parameters and changing rules and levels, with clients that come and go and
// servers that restart; administrators drain flows and take tokens back. No token expires here
// (model_test.cc is for that), so every single answer is foretold. A core that grants only a few
// waiters a call is late with them: then what it grants must be what the model would grant next,
// and when it says that it is no longer behind, nobody may be left who could go.
#include "unit/core/queue_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "support/core_harness.h"
#include "support/sample.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;
using testing::HistoryOf;
using testing::QueueModel;
using testing::RuleOptions;

constexpr int64_t kLongMs = 20LL * 24 * 3600 * 1000;
constexpr int64_t kQueueFlows = 3;
constexpr int64_t kKeyedFlow = 3;  // It mostly has a rule by value, and often one of the flow, too.

// The model's number of the flow by value of a flow id: the two are flows of their own.
constexpr int64_t ByValue(int64_t flow) { return flow + 100; }
constexpr int64_t ModelFlow(int64_t flow, bool by_value) { return by_value ? ByValue(flow) : flow; }
constexpr int64_t OtherFlow(int64_t model_flow) {
  return model_flow > 100 ? model_flow - 100 : ByValue(model_flow);
}
constexpr int64_t kModelFlows[] = {1, 2, kKeyedFlow, ByValue(kKeyedFlow)};

class QueueLife {
 public:
  // As many waiters are granted by one call; 0: as many as there are.
  explicit QueueLife(uint64_t seed, uint32_t grants_max = 0)
      : prng_(seed), grants_max_(grants_max), h_(Options(grants_max)) {
    model_.serves_later = grants_max > 0;
    ChangeRules();
    Connect();
  }

  void Step() {
    const uint64_t dice = prng_.Below(100);
    if (dice < 45) {
      Acquire();
    } else if (dice < 63) {
      Release();
    } else if (dice < 68) {
      Cancel();
    } else if (dice < 72) {
      Drain();
    } else if (dice < 75) {
      ReclaimMany();
    } else if (dice < 81) {
      Connect();
    } else if (dice < 86) {
      Disconnect();
    } else if (dice < 93) {
      Pass();
    } else if (dice < 98) {
      ChangeRules();
    } else {
      Restart();
    }
    TakeLateAnswers();
    if (prng_.Below(3) == 0) {
      h_.DoDue();
      REQUIRE_FALSE(Behind());
      TakeLateAnswers();
    }
    Compare();
  }

  uint64_t times_behind() const { return times_behind_; }

 private:
  struct Connection {
    uint32_t owner = 0;
    std::string client;
  };

  static CoreOptions Options(uint32_t grants_max) {
    CoreOptions options = testing::HarnessOptions();
    if (grants_max > 0) options.grants_per_call_max = grants_max;
    return options;
  }

  // Nothing else is ever due at once.
  bool Behind() { return h_.core().NextDeadline() == Instant{0}; }

  static RuleOptions Shape(int64_t flow) {
    return {.flow = flow, .resource_timeout_ms = kLongMs, .client_offline_ms = kLongMs};
  }

  const Connection* Any() {
    return connections_.empty() ? nullptr : &connections_[prng_.Below(connections_.size())];
  }

  // "": none.
  std::string AnyValue() {
    constexpr const char* kValues[] = {"", "u", "v", "w"};
    return kValues[prng_.Below(4)];
  }

  // The rule limits each value for itself, some by an item. Such a rule has no cap.
  void AddParam(RuleOptions* rule) {
    rule->max_per_client = 0;
    rule->max_per_client_percent = 0;
    rule->param.emplace();
    for (const char* value : {"u", "v"}) {
      if (prng_.Below(3) > 0) continue;
      rule->param->items.push_back(
          {ParamValue(ParamType::kString, value), static_cast<double>(prng_.Between(0, 40)) / 10});
    }
  }

  std::string AnyName() { return std::string(1, static_cast<char>('a' + prng_.Below(4))); }

  SessionSlot SlotOf(const std::string& client) { return slots_.at(client); }

  uint64_t AnyRequestId() { return prng_.Below(3) > 0 ? 0 : 1 + prng_.Below(6); }

  void ChangeRules() {
    std::vector<RuleOptions> set;
    for (const int64_t flow : kModelFlows) {
      if (prng_.Below(flow == kKeyedFlow ? 2 : 8) == 0) continue;
      RuleOptions rule = Shape(flow % 100);
      rule.count = static_cast<double>(prng_.Between(0, 60)) / 10;
      rule.avg_local = prng_.Below(3) == 0;
      if (prng_.Below(3) == 0) rule.max_per_client = prng_.Between(1, 4);
      if (prng_.Below(4) == 0 && rule.max_per_client == 0) {
        rule.max_per_client_percent = static_cast<double>(prng_.Between(1, 100));
      }
      rule.shadow = prng_.Below(8) == 0;
      rule.refuse_strategy = static_cast<int>(prng_.Between(0, 3));
      rule.max_queueing_ms = prng_.Between(0, 400);
      if (flow == ByValue(kKeyedFlow)) AddParam(&rule);
      set.push_back(rule);
    }
    h_.Rules(set);
    std::map<int64_t, RuleOptions> in_force;
    for (const RuleOptions& rule : set) {
      in_force[ModelFlow(rule.flow, rule.param.has_value())] = rule;
    }
    for (const int64_t flow : kModelFlows) {
      if (in_force.contains(flow)) {
        model_.rules[flow] = in_force.at(flow);
        continue;
      }
      // Who waited is answered as if it asked now.
      if (in_force.contains(OtherFlow(flow))) {
        model_.RefuseAll(flow, {TokenStatus::kBadRequest, RefusedBy::kParam});
      }
      model_.RemoveRule(flow);
    }
    model_.ServeAll();
  }

  void Connect() {
    const std::string client = AnyName();
    slots_[client] = h_.Hello(client);
    connections_.push_back({++last_owner_, client});
    model_.clients[client].insert(last_owner_);
    model_.ServeAll();
  }

  void Disconnect() {
    if (connections_.empty()) return;
    const size_t index = prng_.Below(connections_.size());
    const Connection gone = connections_[index];
    connections_.erase(connections_.begin() + static_cast<int64_t>(index));
    if (prng_.Below(4) == 0) {
      h_.DropWaiters(gone.owner);  // Its waiters first, as when what it has asked keeps it open.
      model_.DropWaiters(gone.owner);
      model_.ServeAll();
      TakeLateAnswers();
    }
    h_.Goodbye(SlotOf(gone.client), gone.owner);
    model_.DropWaiters(gone.owner);
    model_.Disconnect(gone.client, gone.owner);
    model_.ServeAll();
  }

  void Acquire() {
    const Connection* from = Any();
    if (from == nullptr) return Connect();
    AcquireRequest request{.flow = FlowId{prng_.Between(1, kQueueFlows)},
                           .count = prng_.Between(1, 3),
                           .prioritized = prng_.Below(3) == 0};
    if (prng_.Below(3) > 0) request.wait_ms = prng_.Below(4) == 0 ? 0 : prng_.Between(1, 600);
    request.request_id = AnyRequestId();
    const bool keyed = request.flow.value == kKeyedFlow || prng_.Below(20) == 0;
    const std::string value = keyed ? AnyValue() : "";
    const QueueModel::Lane lane{ModelFlow(request.flow.value, !value.empty()), value};
    if (!lane.second.empty()) request.param = Param{ParamType::kString, lane.second};
    const uint32_t tag = ++last_tag_;
    const auto foretold = Foretell(*from, lane, request, tag);
    const auto answer = h_.Ask(SlotOf(from->client), request, tag, from->owner);
    REQUIRE(answer.has_value() == foretold.has_value());
    if (!answer.has_value()) return;
    REQUIRE(TokenStatusName(answer->status) == TokenStatusName(foretold->status));
    REQUIRE(RefusedByName(answer->refused_by) == RefusedByName(foretold->refused_by));
    if (answer->status != TokenStatus::kOk) return;
    const QueueModel::Token token{lane, from->client, request.count, request.request_id};
    const auto [known, is_new] = model_.tokens.emplace(answer->token_id.value, token);
    model_.Serve(lane.first);
    if (!is_new) {
      REQUIRE(known->second.request_id == request.request_id);
      REQUIRE(request.request_id != 0);
    } else {
      REQUIRE(issued_.insert(answer->token_id.value).second);
    }
  }

  std::optional<QueueModel::Foretold> Foretell(const Connection& from, const QueueModel::Lane& lane,
                                               const AcquireRequest& request, uint32_t tag) {
    const int64_t flow = lane.first;
    if (request.request_id != 0) {
      for (const auto& [id, token] : model_.tokens) {
        if (token.client != from.client || token.request_id != request.request_id) continue;
        if (token.lane == lane && token.count == request.count) return QueueModel::Foretold{};
        return QueueModel::Foretold{TokenStatus::kBadRequest, RefusedBy::kRequestId};
      }
      const auto cancelled = model_.cancelled.find({from.client, request.request_id});
      if (cancelled != model_.cancelled.end() && cancelled->second > h_.now().ms) {
        return QueueModel::Foretold{TokenStatus::kBlocked, RefusedBy::kCancelled};
      }
      for (QueueModel::Waiter& waiter : model_.waiters) {
        if (waiter.client != from.client || waiter.request_id != request.request_id) continue;
        if (waiter.lane != lane || waiter.count != request.count) {
          return QueueModel::Foretold{TokenStatus::kBadRequest, RefusedBy::kRequestId};
        }
        model_.AnswerLate(waiter, {TokenStatus::kBlocked, RefusedBy::kSuperseded});
        const int64_t wait_ms = WaitOf(lane, request);
        if (wait_ms > 0) {
          waiter.tag = tag;
          waiter.owner = from.owner;
          waiter.deadline_ms = h_.now().ms + wait_ms;
          return std::nullopt;
        }
        model_.Forget(waiter.tag);
        ServeBefore(lane);
        break;
      }
    }
    if (!model_.rules.contains(flow)) {
      if (!model_.rules.contains(OtherFlow(flow))) {
        return QueueModel::Foretold{TokenStatus::kNoRuleExists, {}};
      }
      return QueueModel::Foretold{TokenStatus::kBadRequest, RefusedBy::kParam};
    }
    if (model_.draining.contains(flow)) {
      return QueueModel::Foretold{TokenStatus::kBlocked, RefusedBy::kDraining};
    }
    RefusedBy limit = model_.Limit(lane, from.client, request.count);
    if (limit == RefusedBy::kNone && model_.SomebodyAhead(lane, request.prioritized)) {
      limit = RefusedBy::kWaitersAhead;
    }
    if (limit == RefusedBy::kNone || model_.rules.at(flow).shadow) return QueueModel::Foretold{};
    const bool hope = request.count <= model_.Level(lane) && request.count <= model_.Cap(lane);
    const int64_t wait_ms = WaitOf(lane, request);
    if (wait_ms == 0 || !hope) return QueueModel::Foretold{TokenStatus::kBlocked, limit};
    model_.waiters.push_back({tag, from.owner, lane, from.client, request.count,
                              request.prioritized, request.request_id, h_.now().ms + wait_ms});
    return std::nullopt;
  }

  // Those whom the place of a call that was given up lets go, before the new one is looked at.
  void ServeBefore(const QueueModel::Lane& lane) {
    model_.Serve(lane.first);
    if (grants_max_ == 0 || Behind()) return;
    for (uint32_t left = grants_max_; left > 0; --left) {
      if (const QueueModel::Waiter* next = model_.Next(lane)) model_.Grant(*next);
    }
  }

  int64_t WaitOf(const QueueModel::Lane& lane, const AcquireRequest& request) {
    if (request.wait_ms.has_value()) return *request.wait_ms;
    const RuleOptions& rule = model_.rules.at(lane.first);
    return request.prioritized && rule.refuse_strategy == 3 ? rule.max_queueing_ms : 0;
  }

  void Erase(uint64_t id) {
    const int64_t flow = model_.tokens.at(id).lane.first;
    model_.EraseToken(id);
    model_.Serve(flow);
  }

  void Release() {
    const Connection* from = Any();
    if (from == nullptr || model_.tokens.empty()) return;
    const auto it =
        std::next(model_.tokens.begin(), static_cast<int64_t>(prng_.Below(model_.tokens.size())));
    const uint64_t id = it->first;
    const bool own = it->second.client == from->client;
    const bool by_admin = prng_.Below(4) == 0;
    const TokenStatus status =
        by_admin ? h_.Reclaim(TokenId{id}) : h_.Release(SlotOf(from->client), TokenId{id});
    REQUIRE(TokenStatusName(status) == (own || by_admin ? "RELEASE_OK" : "ALREADY_RELEASE"));
    if (by_admin) model_.history[id] = "admin";
    if (own || by_admin) Erase(id);
  }

  // Of the kinds: both, or one.
  std::optional<FlowKind> AnyKind() {
    if (prng_.Below(2) == 0) return std::nullopt;
    return FlowKindIf(prng_.Below(2) == 0);
  }
  static std::vector<int64_t> FlowsOf(int64_t flow, std::optional<FlowKind> kind) {
    if (!kind) return {flow, ByValue(flow)};
    return {ModelFlow(flow, *kind == FlowKind::kValue)};
  }

  void Drain() {
    const int64_t id = prng_.Between(1, kQueueFlows);
    const std::optional<FlowKind> kind = AnyKind();
    const bool on = prng_.Below(2) == 0;
    const DrainAnswer answer = *h_.core().Drain(h_.step(), {FlowId{id}, kind}, on, {"test", ""});
    h_.Commit();
    int64_t now_calls = 0;
    bool any = false;
    for (const int64_t flow : FlowsOf(id, kind)) {
      if (!model_.rules.contains(flow)) continue;
      any = true;
      now_calls += model_.NowCalls({flow, ""});
      if (!on) {
        model_.draining.erase(flow);
      } else if (model_.draining.insert(flow).second) {
        model_.RefuseAll(flow, {TokenStatus::kBlocked, RefusedBy::kDraining});
      }
    }
    REQUIRE(TokenStatusName(answer.status) == (any ? "OK" : "NO_RULE_EXISTS"));
    REQUIRE(answer.now_calls == now_calls);
  }

  // All tokens of a client, of a flow, or of a flow whose rule was removed.
  void ReclaimMany() {
    constexpr uint32_t kTokensMax = 100;
    constexpr AdminAct kAct{"test", "because"};
    const uint64_t what = prng_.Below(3);
    const int64_t id = prng_.Between(1, kQueueFlows);
    const std::optional<FlowKind> kind = AnyKind();
    const std::string client = AnyName();
    std::set<int64_t> flows;  // That it acts on.
    bool known = false;
    for (const int64_t flow : FlowsOf(id, kind)) {
      const bool in_force = model_.rules.contains(flow);
      const bool holds = std::any_of(model_.tokens.begin(), model_.tokens.end(),
                                     [&](const auto& t) { return t.second.lane.first == flow; });
      if (!in_force && !holds) continue;
      known = true;
      if (what == 1 || !in_force) flows.insert(flow);
    }
    std::vector<uint64_t> affected;
    for (const auto& [token_id, token] : model_.tokens) {
      const bool its = what == 0 ? token.client == client : flows.contains(token.lane.first);
      if (its) affected.push_back(token_id);
    }
    Result<ReclaimAnswer> answer = ReclaimAnswer{};
    if (what == 0) {
      answer = h_.core().ReclaimClient(h_.step(), {"app", client}, kTokensMax, kAct);
    } else if (what == 1) {
      answer = h_.core().ReclaimFlow(h_.step(), {FlowId{id}, kind}, kTokensMax, kAct);
    } else {
      answer = h_.core().Purge(h_.step(), {FlowId{id}, kind}, kTokensMax, kAct);
    }
    h_.Commit();
    REQUIRE(answer.ok() == (what == 0 || (known && !flows.empty())));
    if (!answer.ok()) return;
    REQUIRE(answer->reclaimed == affected.size());
    for (const uint64_t token_id : affected) {
      model_.history[token_id] = what == 2 ? "rule_removed" : "admin";
      model_.EraseToken(token_id);
    }
    model_.ServeAll();
  }

  void Cancel() {
    const Connection* from = Any();
    if (from == nullptr) return;
    const std::string client = from->client;
    const uint64_t request_id = 1 + prng_.Below(6);
    const TokenStatus status = h_.Cancel(SlotOf(client), request_id);
    model_.cancelled[{client, request_id}] = h_.now().ms + Limits().cancel_remembered_ms;
    for (const auto& [id, token] : model_.tokens) {
      if (token.client != client || token.request_id != request_id) continue;
      REQUIRE(TokenStatusName(status) == "RELEASE_OK");
      return Erase(id);
    }
    for (const QueueModel::Waiter& waiter : std::vector<QueueModel::Waiter>(model_.waiters)) {
      if (waiter.client != client || waiter.request_id != request_id) continue;
      REQUIRE(TokenStatusName(status) == "RELEASE_OK");
      model_.AnswerLate(waiter, {TokenStatus::kBlocked, RefusedBy::kCancelled});
      model_.Forget(waiter.tag);
      return model_.Serve(waiter.lane.first);
    }
    REQUIRE(TokenStatusName(status) == "ALREADY_RELEASE");
  }

  void Pass() {
    const int64_t until_ms = h_.now().ms + prng_.Between(0, prng_.Below(10) == 0 ? 70'000 : 400);
    for (;;) {
      std::vector<QueueModel::Waiter> due = model_.waiters;
      std::erase_if(due, [&](const QueueModel::Waiter& w) { return w.deadline_ms > until_ms; });
      if (due.empty()) break;
      int64_t next_ms = until_ms;
      for (const QueueModel::Waiter& waiter : due) next_ms = std::min(next_ms, waiter.deadline_ms);
      h_.Pass(next_ms - h_.now().ms);
      ExpireAt(next_ms);
    }
    h_.Pass(until_ms - h_.now().ms);
  }

  // Those with one deadline are told in an order of no meaning, so the core's is taken.
  void ExpireAt(int64_t now_ms) {
    for (const LateAnswer& late : h_.core().TakeLateAnswers()) {
      got_.push_back(late);
      if (late.answer.status == TokenStatus::kOk) FollowGrant(late);
      if (late.answer.refused_by != RefusedBy::kQueueTimeout) continue;
      const auto waiter = std::find_if(model_.waiters.begin(), model_.waiters.end(),
                                       [&](const auto& w) { return w.tag == late.ticket.tag; });
      REQUIRE(waiter != model_.waiters.end());
      REQUIRE(waiter->deadline_ms == now_ms);
      model_.AnswerLate(*waiter, {TokenStatus::kBlocked, RefusedBy::kQueueTimeout});
      model_.Forget(waiter->tag);
    }
    model_.ServeAll();
    TakeLateAnswers();
  }

  void Restart() {
    h_.Restart(prng_.Between(0, 100));
    model_.Restart();
    connections_.clear();
    slots_.clear();
  }

  // Takes what the core said late, and compares it with what was foretold, lane by lane.
  void TakeLateAnswers() {
    for (const LateAnswer& late : h_.core().TakeLateAnswers()) {
      got_.push_back(late);
      if (late.answer.status == TokenStatus::kOk) FollowGrant(late);
    }
    std::map<uint32_t, QueueModel::Lane> lane_of;
    for (const auto& [lane, answers] : model_.late) {
      for (const auto& [tag, answer] : answers) lane_of[tag] = lane;
    }
    std::map<QueueModel::Lane, std::vector<LateAnswer>> got;
    for (const LateAnswer& late : got_) {
      CAPTURE(late.ticket.tag);
      REQUIRE(lane_of.contains(late.ticket.tag));
      got[lane_of[late.ticket.tag]].push_back(late);
    }
    for (const auto& [lane, answers] : model_.late) {
      REQUIRE(got[lane].size() == answers.size());
      for (size_t i = 0; i < answers.size(); ++i) {
        CAPTURE(i);
        REQUIRE(got[lane][i].ticket.tag == answers[i].first);
        const AcquireAnswer& answer = got[lane][i].answer;
        REQUIRE(TokenStatusName(answer.status) == TokenStatusName(answers[i].second.status));
        REQUIRE(RefusedByName(answer.refused_by) == RefusedByName(answers[i].second.refused_by));
        if (answer.status == TokenStatus::kOk) TakeGrant(answers[i].first, answer);
      }
    }
    REQUIRE(model_.granted.empty());
    model_.late.clear();
    got_.clear();
    if (Behind()) {
      ++times_behind_;
      REQUIRE(grants_max_ > 0);
    } else {
      for (const QueueModel::Waiter& waiter : model_.waiters) {
        REQUIRE(model_.Next(waiter.lane) == nullptr);
      }
    }
  }

  // A grant that was not foretold must be the next one of its flow.
  void FollowGrant(const LateAnswer& late) {
    if (grants_max_ == 0) return;
    const auto has_tag = [&](const QueueModel::Waiter& w) { return w.tag == late.ticket.tag; };
    if (std::any_of(model_.granted.begin(), model_.granted.end(), has_tag)) return;
    const auto waiter = std::find_if(model_.waiters.begin(), model_.waiters.end(), has_tag);
    REQUIRE(waiter != model_.waiters.end());
    REQUIRE(model_.Next(waiter->lane) == &*waiter);
    model_.Grant(*waiter);
  }

  void TakeGrant(uint32_t tag, const AcquireAnswer& answer) {
    const auto waiter = std::find_if(model_.granted.begin(), model_.granted.end(),
                                     [&](const auto& w) { return w.tag == tag; });
    REQUIRE(waiter != model_.granted.end());
    REQUIRE(issued_.insert(answer.token_id.value).second);
    model_.tokens[answer.token_id.value] = {waiter->lane, waiter->client, waiter->count,
                                            waiter->request_id};
    model_.granted.erase(waiter);
  }

  void Compare() {
    REQUIRE(h_.core().books().tokens().size() == model_.tokens.size());
    REQUIRE(h_.core().wait_queues().size() == model_.waiters.size());
    for (int64_t flow = 1; flow <= kQueueFlows; ++flow) {
      REQUIRE(h_.NowCalls(flow) ==
              model_.NowCalls({flow, ""}) + model_.NowCalls({ByValue(flow), ""}));
    }
    CompareKeys();
    CompareHistory();
    REQUIRE(FindWrongBook(h_.core()).empty());
    REQUIRE(testing::TokensText(testing::ReadLedger(&h_.store())) ==
            testing::TokensText(h_.core()));
  }

  void CompareKeys() {
    std::set<QueueModel::Lane> lanes;
    for (const auto& [id, token] : model_.tokens) lanes.insert(token.lane);
    for (const QueueModel::Waiter& waiter : model_.waiters) lanes.insert(waiter.lane);
    std::erase_if(lanes, [](const QueueModel::Lane& lane) { return lane.second.empty(); });
    const FlowTable& flows = h_.core().flows();
    REQUIRE(flows.keys().size() == lanes.size());
    for (const QueueModel::Lane& lane : lanes) {
      const FlowSlot flow = flows.Find({FlowId{lane.first % 100}, FlowKind::kValue});
      const KeySlot key = flows.keys().Find(flow, {ParamType::kString, lane.second});
      REQUIRE(key != kNoKey);
      REQUIRE(flows.keys().at(key).lane.now_calls == model_.NowCalls(lane));
      if (!model_.rules.contains(lane.first) || !model_.IsKeyed(lane.first)) continue;
      REQUIRE(flows.LevelOf({flow, key}) == model_.Level(lane));
    }
  }

  void CompareHistory() {
    const std::vector<ledger::HistoryEntry> entries = HistoryOf(h_.core());
    REQUIRE(entries.size() == model_.history.size());
    for (; history_seen_ < entries.size(); ++history_seen_) {
      const ledger::HistoryEntry& entry = entries[history_seen_];
      REQUIRE(model_.history.contains(entry.token_id.value));
      REQUIRE(EndReasonName(entry.reason) == model_.history.at(entry.token_id.value));
    }
  }

  Prng prng_;
  const uint32_t grants_max_;
  CoreHarness h_;
  QueueModel model_;
  std::vector<Connection> connections_;
  std::map<std::string, SessionSlot> slots_;
  std::set<uint64_t> issued_;
  std::vector<LateAnswer> got_;
  size_t history_seen_ = 0;
  uint64_t times_behind_ = 0;
  uint32_t last_owner_ = 0;
  uint32_t last_tag_ = 0;
};

// The seeds 0 to NOWCALLS_MODEL_RUNS - 1, or a sample of 1,000.
std::vector<uint64_t> SeedsOfLives() {
  const char* given = std::getenv("NOWCALLS_MODEL_RUNS");  // NOLINT(concurrency-mt-unsafe)
  const uint64_t runs = given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
  return runs > 0 ? testing::SampleOf(runs, runs) : testing::SampleOf(1'000, 100);
}

TEST_CASE("random lives of 200 operations are admitted as the model says") {
  for (const uint64_t seed : SeedsOfLives()) {
    CAPTURE(seed);
    QueueLife life(seed);
    for (int step = 0; step < 200; ++step) {
      CAPTURE(step);
      life.Step();
    }
  }
}

TEST_CASE("random lives with few grants a call are admitted in the order of the model") {
  uint64_t times_behind = 0;
  const std::vector<uint64_t> seeds = SeedsOfLives();
  for (const uint64_t seed : seeds) {
    CAPTURE(seed);
    QueueLife life(seed, /*grants_max=*/1 + seed % 2);
    for (int step = 0; step < 200; ++step) {
      CAPTURE(step);
      life.Step();
    }
    times_behind += life.times_behind();
  }
  CHECK(times_behind > seeds.size() / 3);
}

}  // namespace
}  // namespace nowcalls::core
