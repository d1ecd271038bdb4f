// Groups against a model: random acquire_alls beside single acquires, under caps, shadow mode,
// parameters and changing rules, with waits, keeps, cancels, drains, clients that come and go, and
// servers that restart. The model is a list of tokens and one of waiters; it shares no code with
// the core. It foretells each answer that comes at once.
//
// Which waiter is served first when room is made depends on the order in which lanes are looked at.
// There the model takes the core's word, and judges two things. All items of a grant fit. At rest,
// each waiter's line has one that lacks room there: the waiter itself, or one before it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "core/grants/waiter_list.h"
#include "support/core_harness.h"
#include "support/sample.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::RuleOptions;

constexpr int64_t kGroupFlows = 4;
constexpr int64_t kGroupKeyedFlow = 4;

// A flow, or one value of its rule's parameter; "": the flow as a whole.
using GroupLane = std::pair<int64_t, std::string>;
// The counts of a request by lane, in the order in which lanes are looked at.
using Wanted = std::map<GroupLane, int64_t>;

struct GroupToken {
  GroupLane lane;
  std::string client;
  int64_t count = 0;
  uint64_t request_id = 0;
};

struct GroupWaiter {
  uint32_t owner = 0;
  std::string client;
  Wanted wanted;
  bool is_group = false;
  bool prioritized = false;
  uint64_t request_id = 0;
  int64_t deadline_ms = 0;
  uint64_t arrival = 0;
  // As the core lists it, at rest.
  GroupLane lane;
};

class GroupLife {
 public:
  explicit GroupLife(uint64_t seed) : prng_(seed) {
    ChangeRules();
    Connect();
  }

  void Step() {
    const uint64_t dice = prng_.Below(100);
    if (dice < 50) {
      Ask();
    } else if (dice < 70) {
      Release();
    } else if (dice < 75) {
      Cancel();
    } else if (dice < 80) {
      Keep();
    } else if (dice < 85) {
      Connect();
    } else if (dice < 89) {
      Disconnect();
    } else if (dice < 94) {
      Pass();
    } else if (dice < 96) {
      Drain();
    } else if (dice < 99) {
      ChangeRules();
    } else {
      Restart();
    }
    TakeLateAnswers();
    FindLines();
    CheckNobodyWaitsInVain();
    Compare();
  }

  uint64_t groups_granted_late() const { return groups_granted_late_; }
  uint64_t moves() const { return moves_; }

 private:
  struct Connection {
    uint32_t owner = 0;
    std::string client;
  };

  // --- The model. ---
  bool IsKeyed(int64_t flow) const { return rules_.at(flow).param.has_value(); }
  int64_t NowCalls(const GroupLane& lane) const {
    int64_t sum = 0;
    for (const auto& [id, token] : tokens_) sum += token.lane == lane ? token.count : 0;
    return sum;
  }
  int64_t Held(int64_t flow, const std::string& client) const {
    int64_t sum = 0;
    for (const auto& [id, token] : tokens_) {
      sum += token.lane.first == flow && token.client == client ? token.count : 0;
    }
    return sum;
  }
  int64_t Level(int64_t flow) const {
    const RuleOptions& rule = rules_.at(flow);
    const int64_t online = std::count_if(clients_.begin(), clients_.end(),
                                         [](const auto& client) { return client.second > 0; });
    return std::llround(rule.count) * (rule.avg_local ? online : 1);
  }
  int64_t Cap(int64_t flow) const {
    const int64_t cap = rules_.at(flow).max_per_client;
    return cap > 0 ? cap : INT64_MAX;
  }
  RefusedBy Limit(const GroupLane& lane, const std::string& client, int64_t count) const {
    if (count > std::min(Level(lane.first), Cap(lane.first))) return RefusedBy::kOverLevel;
    if (NowCalls(lane) + count > Level(lane.first)) {
      return IsKeyed(lane.first) ? RefusedBy::kParam : RefusedBy::kLevel;
    }
    return Held(lane.first, client) + count > Cap(lane.first) ? RefusedBy::kClientCap
                                                              : RefusedBy::kNone;
  }
  bool Fits(const GroupLane& lane, const std::string& client, int64_t count) const {
    return rules_.at(lane.first).shadow || Limit(lane, client, count) == RefusedBy::kNone;
  }
  // In its line, but no room that others make would help.
  bool IsAside(const GroupWaiter& waiter) const {
    const int64_t flow = waiter.lane.first;
    const int64_t count = waiter.wanted.at(waiter.lane);
    return !rules_.at(flow).shadow &&
           (count > Level(flow) ||
            (Cap(flow) < INT64_MAX && Held(flow, waiter.client) + count > Cap(flow)));
  }
  static bool IsBefore(const GroupWaiter& a, bool prioritized, uint64_t arrival) {
    return a.prioritized != prioritized ? a.prioritized : a.arrival < arrival;
  }
  // Whether somebody in the lane's line comes first.
  bool SomebodyIsBefore(const GroupLane& lane, bool prioritized, uint64_t arrival) const {
    return std::any_of(waiters_.begin(), waiters_.end(), [&](const auto& entry) {
      const GroupWaiter& other = entry.second;
      return other.lane == lane && IsBefore(other, prioritized, arrival) && !IsAside(other);
    });
  }

  struct Foretold {
    TokenStatus status = TokenStatus::kOk;
    RefusedBy limit = RefusedBy::kNone;
    int64_t flow = 0;
  };
  // Nothing: it waits.
  std::optional<Foretold> Foretell(const Connection& from, const Wanted& wanted, bool prioritized,
                                   int64_t wait_ms) const {
    for (const auto& [lane, count] : wanted) {
      const int64_t flow = lane.first;
      if (!rules_.contains(flow)) return Foretold{TokenStatus::kNoRuleExists, {}, flow};
      if (IsKeyed(flow) == lane.second.empty()) {
        return Foretold{TokenStatus::kBadRequest, RefusedBy::kParam, flow};
      }
      if (draining_.contains(flow)) {
        return Foretold{TokenStatus::kBlocked, RefusedBy::kDraining, flow};
      }
    }
    for (const auto& [lane, count] : wanted) {
      if (!rules_.at(lane.first).shadow &&
          Limit(lane, from.client, count) == RefusedBy::kOverLevel) {
        return Foretold{TokenStatus::kBlocked, RefusedBy::kOverLevel, lane.first};
      }
    }
    for (const auto& [lane, count] : wanted) {
      if (rules_.at(lane.first).shadow) continue;
      RefusedBy limit = Limit(lane, from.client, count);
      if (limit == RefusedBy::kNone && SomebodyIsBefore(lane, prioritized, UINT64_MAX)) {
        limit = RefusedBy::kWaitersAhead;
      }
      if (limit == RefusedBy::kNone) continue;
      if (wait_ms > 0) return std::nullopt;
      return Foretold{TokenStatus::kBlocked, limit, lane.first};
    }
    return Foretold{};
  }

  // --- What happens. ---
  std::string AnyName() { return std::string(1, static_cast<char>('a' + prng_.Below(4))); }
  const Connection* Any() {
    return connections_.empty() ? nullptr : &connections_[prng_.Below(connections_.size())];
  }

  void ChangeRules() {
    std::vector<RuleOptions> set;
    for (int64_t flow = 1; flow <= kGroupFlows; ++flow) {
      if (prng_.Below(12) == 0) continue;
      RuleOptions rule{.flow = flow,
                       .count = static_cast<double>(prng_.Between(0, 5)),
                       .resource_timeout_ms = 20LL * 24 * 3600 * 1000,
                       .client_offline_ms = 20LL * 24 * 3600 * 1000};
      rule.avg_local = prng_.Below(4) == 0;
      rule.shadow = prng_.Below(10) == 0;
      if (flow == kGroupKeyedFlow) {
        rule.param.emplace();
      } else if (prng_.Below(3) == 0) {
        rule.max_per_client = prng_.Between(1, 4);
      }
      set.push_back(rule);
    }
    h_.Rules(set);
    rules_.clear();
    for (const RuleOptions& rule : set) rules_[rule.flow] = rule;
    std::erase_if(draining_, [&](int64_t flow) { return !rules_.contains(flow); });
  }

  void Connect() {
    const std::string client = AnyName();
    slots_[client] = h_.Hello(client);
    connections_.push_back({++last_owner_, client});
    ++clients_[client];
  }

  void Disconnect() {
    if (connections_.empty()) return;
    const size_t index = prng_.Below(connections_.size());
    const Connection gone = connections_[index];
    connections_.erase(connections_.begin() + static_cast<int64_t>(index));
    h_.Goodbye(slots_.at(gone.client), gone.owner);
    --clients_[gone.client];
    std::erase_if(waiters_, [&](const auto& entry) { return entry.second.owner == gone.owner; });
  }

  Wanted AnyWanted(bool is_group) {
    Wanted wanted;
    for (uint64_t items = is_group ? prng_.Between(1, 5) : 1; items > 0; --items) {
      const int64_t flow = prng_.Between(1, kGroupFlows);
      const bool keyed = (flow == kGroupKeyedFlow) != (prng_.Below(30) == 0);
      const std::string value =
          keyed ? std::string(1, static_cast<char>('u' + prng_.Below(3))) : "";
      wanted[{flow, value}] = prng_.Below(4) == 0 ? prng_.Between(1, 4) : 1;
    }
    return wanted;
  }

  // The items in any order.
  std::vector<std::pair<GroupLane, int64_t>> Shuffled(const Wanted& wanted) {
    std::vector<std::pair<GroupLane, int64_t>> items(wanted.begin(), wanted.end());
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[prng_.Below(i)]);
    return items;
  }

  void Ask() {
    const Connection* const from = Any();
    if (from == nullptr) return;
    const bool is_group = prng_.Below(3) > 0;
    const int64_t wait_ms = prng_.Below(2) == 0 ? 0 : prng_.Between(1, 2000);
    const bool prioritized = prng_.Below(4) == 0;
    // An id that is free, or one that is in use.
    const uint64_t request_id = prng_.Below(2) == 0 ? 0 : ++last_request_id_;
    const Wanted wanted = AnyWanted(is_group);
    const auto foretold = Foretell(*from, wanted, prioritized, wait_ms);
    AskFor(*from, wanted, is_group, prioritized, wait_ms, request_id, foretold);
    if (request_id != 0 && prng_.Below(2) == 0) AskAgain(*from, wanted, is_group, request_id);
  }

  void AskFor(const Connection& from, const Wanted& wanted, bool is_group, bool prioritized,
              int64_t wait_ms, uint64_t request_id, const std::optional<Foretold>& foretold) {
    const uint32_t tag = ++last_tag_;
    order_[tag] = Shuffled(wanted);
    const std::optional<AcquireAllAnswer> answer =
        Call(from, tag, is_group, prioritized, wait_ms, request_id);
    CAPTURE(tag);
    REQUIRE(answer.has_value() == foretold.has_value());
    if (!answer.has_value()) {
      waiters_[tag] = {from.owner, from.client,           wanted,          is_group, prioritized,
                       request_id, h_.now().ms + wait_ms, ++last_arrival_, {}};
      return;
    }
    REQUIRE(TokenStatusName(answer->status) == TokenStatusName(foretold->status));
    REQUIRE(RefusedByName(answer->refused_by) == RefusedByName(foretold->limit));
    if (is_group) REQUIRE(answer->flow.value == foretold->flow);
    if (answer->status == TokenStatus::kOk) TakeTokens(tag, from.client, request_id, *answer);
  }

  // One call of the core; the answer to a single acquire in the form of a group's.
  std::optional<AcquireAllAnswer> Call(const Connection& from, uint32_t tag, bool is_group,
                                       bool prioritized, int64_t wait_ms, uint64_t request_id) {
    std::vector<AllItem> items;
    for (const auto& [lane, count] : order_.at(tag)) {
      items.push_back({.flow = FlowId{lane.first}, .count = count});
      if (!lane.second.empty()) items.back().param = Param{ParamType::kString, lane.second};
    }
    const SessionSlot session = slots_.at(from.client);
    if (is_group) {
      return h_.AskAll(session,
                       {.items = items,
                        .prioritized = prioritized,
                        .wait_ms = wait_ms,
                        .request_id = request_id},
                       tag, from.owner);
    }
    const std::optional<AcquireAnswer> answer = h_.Ask(session,
                                                       {.flow = items[0].flow,
                                                        .count = items[0].count,
                                                        .prioritized = prioritized,
                                                        .wait_ms = wait_ms,
                                                        .request_id = request_id,
                                                        .param = items[0].param},
                                                       tag, from.owner);
    if (!answer.has_value()) return std::nullopt;
    return AsGroup(*answer);
  }

  static AcquireAllAnswer AsGroup(const AcquireAnswer& answer) {
    AcquireAllAnswer all{.status = answer.status, .refused_by = answer.refused_by};
    if (answer.status == TokenStatus::kOk) {
      all.tokens.push_back({answer.token_id, answer.fence, answer.hold_ms});
    }
    return all;
  }

  // All of a request, in its order.
  void TakeTokens(uint32_t tag, const std::string& client, uint64_t request_id,
                  const AcquireAllAnswer& answer) {
    const auto& order = order_.at(tag);
    REQUIRE(answer.tokens.size() == order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      const auto& [lane, count] = order[i];
      REQUIRE(Fits(lane, client, count));
      REQUIRE(answer.tokens[i].fence.value > last_fence_);
      last_fence_ = answer.tokens[i].fence.value;
      tokens_[answer.tokens[i].id.value] = {lane, client, count, request_id};
    }
  }

  // The same request, or another with the same id.
  void AskAgain(const Connection& from, const Wanted& wanted, bool is_group, uint64_t request_id) {
    TakeLateAnswers();
    std::map<GroupLane, uint64_t> live;
    for (const auto& [id, token] : tokens_) {
      if (token.request_id == request_id) live[token.lane] = id;
    }
    if (live.empty()) return;
    if (prng_.Below(3) == 0 && live.size() > 1) {
      // A part of it has ended: the whole is refused.
      h_.Release(slots_.at(from.client), TokenId{live.begin()->second});
      tokens_.erase(live.begin()->second);
      TakeLateAnswers();
      const uint32_t tag = ++last_tag_;
      order_[tag] = Shuffled(wanted);
      const auto refused = Call(from, tag, is_group, false, 0, request_id);
      REQUIRE(refused->status == TokenStatus::kBadRequest);
      REQUIRE(refused->refused_by == RefusedBy::kRequestId);
      return;
    }
    const uint32_t tag = ++last_tag_;
    order_[tag] = Shuffled(wanted);
    const auto answer = Call(from, tag, is_group, false, 0, request_id);
    REQUIRE(answer->status == TokenStatus::kOk);
    REQUIRE(answer->tokens.size() == live.size());
    for (size_t i = 0; i < answer->tokens.size(); ++i) {
      REQUIRE(answer->tokens[i].id.value == live.at(order_.at(tag)[i].first));
    }
  }

  void Release() {
    if (tokens_.empty()) return;
    const auto it = std::next(tokens_.begin(), static_cast<int64_t>(prng_.Below(tokens_.size())));
    REQUIRE(h_.Reclaim(TokenId{it->first}) == TokenStatus::kReleaseOk);
    tokens_.erase(it);
  }

  void Keep() {
    if (tokens_.empty()) return;
    const auto it = std::next(tokens_.begin(), static_cast<int64_t>(prng_.Below(tokens_.size())));
    if (!slots_.contains(it->second.client)) return;
    REQUIRE(h_.Keep(slots_.at(it->second.client), TokenId{it->first}).status == TokenStatus::kOk);
  }

  void Cancel() {
    const Connection* const from = Any();
    if (from == nullptr || last_request_id_ == 0) return;
    const uint64_t request_id =
        last_request_id_ - prng_.Below(std::min<uint64_t>(last_request_id_, 8));
    const auto is_it = [&](const auto& entry) {
      return entry.second.client == from->client && entry.second.request_id == request_id;
    };
    const bool stands = std::any_of(tokens_.begin(), tokens_.end(), is_it) ||
                        std::any_of(waiters_.begin(), waiters_.end(), is_it);
    const TokenStatus status = h_.Cancel(slots_.at(from->client), request_id);
    REQUIRE(TokenStatusName(status) == (stands ? "RELEASE_OK" : "ALREADY_RELEASE"));
    std::erase_if(tokens_, is_it);
  }

  void Drain() {
    const int64_t flow = prng_.Between(1, kGroupFlows);
    const bool on = prng_.Below(2) == 0;
    REQUIRE(h_.core().Drain(h_.step(), FlowId{flow}, on, {"test", ""}).ok());
    h_.Commit();
    if (!on) draining_.erase(flow);
    if (on && rules_.contains(flow)) draining_.insert(flow);
  }

  void Pass() {
    for (int64_t left = prng_.Between(0, 1000); left > 0; left -= 50) {
      h_.Pass(50);
      TakeLateAnswers();
    }
  }

  void Restart() {
    h_.Restart(prng_.Between(0, 100));
    waiters_.clear();
    connections_.clear();
    slots_.clear();
    clients_.clear();
  }

  // --- What the core says late, in its order. ---
  void TakeLateAnswers() {
    for (const LateAnswer& late : h_.core().TakeLateAnswers()) {
      const uint32_t tag = late.ticket.tag;
      CAPTURE(tag);
      REQUIRE(waiters_.contains(tag));
      const GroupWaiter waiter = waiters_.at(tag);
      waiters_.erase(tag);
      REQUIRE(late.ticket.owner == waiter.owner);
      REQUIRE(late.all.has_value() == waiter.is_group);
      const AcquireAllAnswer answer = waiter.is_group ? *late.all : AsGroup(late.answer);
      if (answer.status == TokenStatus::kOk) {
        if (waiter.is_group) ++groups_granted_late_;
        TakeTokens(tag, waiter.client, waiter.request_id, answer);
        continue;
      }
      REQUIRE(answer.tokens.empty());
      CheckRefusal(waiter, answer);
    }
  }

  void CheckRefusal(const GroupWaiter& waiter, const AcquireAllAnswer& answer) {
    const int64_t flow = answer.flow.value;
    const bool of_group =
        !waiter.is_group || std::any_of(waiter.wanted.begin(), waiter.wanted.end(),
                                        [&](const auto& item) { return item.first.first == flow; });
    REQUIRE(of_group);
    if (answer.refused_by == RefusedBy::kQueueTimeout) {
      REQUIRE(waiter.deadline_ms <= h_.now().ms);
    } else if (answer.refused_by == RefusedBy::kDraining) {
      if (waiter.is_group) REQUIRE(draining_.contains(flow));
    } else if (answer.status == TokenStatus::kNoRuleExists) {
      if (waiter.is_group) REQUIRE_FALSE(rules_.contains(flow));
    } else {
      REQUIRE(answer.refused_by == RefusedBy::kCancelled);
    }
  }

  // --- At rest. ---
  void FindLines() {
    std::set<uint32_t> seen;
    std::optional<GroupLane> lane_before;
    const GroupWaiter* before = nullptr;
    const Core& core = h_.core();
    for (const WaiterPlace& place : ListWaiters(core.books(), core.wait_queues(), {}, 10'000)) {
      const Waiter& listed = core.wait_queues().at(place.waiter);
      GroupLane lane{core.flows().at(listed.lane.flow_slot).id.value, ""};
      if (listed.lane.key_slot != kNoKey) {
        lane.second = core.flows().keys().at(listed.lane.key_slot).value.bytes;
      }
      REQUIRE(waiters_.contains(listed.ticket.tag));
      REQUIRE(seen.insert(listed.ticket.tag).second);
      GroupWaiter& waiter = waiters_.at(listed.ticket.tag);
      REQUIRE(waiter.wanted.contains(lane));
      REQUIRE(waiter.wanted.at(lane) == listed.count);
      if (!waiter.lane.second.empty() || waiter.lane.first != 0) {
        moves_ += waiter.lane != lane ? 1 : 0;
      }
      waiter.lane = lane;
      // The order in a line is that of arrival within a class.
      if (lane_before == lane) {
        REQUIRE(IsBefore(*before, waiter.prioritized, waiter.arrival));
      }
      lane_before = lane;
      before = &waiter;
    }
    REQUIRE(seen.size() == waiters_.size());
    CheckSumsOfFlows();
  }

  void CheckSumsOfFlows() {
    const WaitQueues& queues = h_.core().wait_queues();
    std::map<int64_t, std::pair<size_t, uint64_t>> expected;  // Waiters, arrival of the oldest.
    for (const auto& [tag, waiter] : waiters_) {
      auto& [size, oldest] = expected.try_emplace(waiter.lane.first, 0, UINT64_MAX).first->second;
      ++size;
      oldest = std::min(oldest, waiter.arrival);
    }
    REQUIRE(queues.flows().size() == expected.size());
    for (const auto& [flow, sums] : expected) {
      const FlowKey key{FlowId{flow}, FlowKindIf(IsKeyed(flow))};
      const WaiterPlaces* const waiters = queues.OfFlow(key, h_.core().flows().Find(key));
      REQUIRE(waiters != nullptr);
      REQUIRE(waiters->size() == sums.first);
      const uint32_t oldest = queues.at(waiters->begin()->second).ticket.tag;
      REQUIRE(waiters_.at(oldest).arrival == sums.second);
    }
  }

  void CheckNobodyWaitsInVain() const {
    for (const auto& entry : waiters_) {
      const uint32_t tag = entry.first;
      const GroupWaiter& waiter = entry.second;
      CAPTURE(tag);
      REQUIRE(rules_.contains(waiter.lane.first));
      // Somebody in its line, up to itself, waits for room there.
      bool explained = IsAside(waiter);
      for (const auto& [other_tag, other] : waiters_) {
        if (other.lane != waiter.lane || IsAside(other)) continue;
        if (other_tag != tag && !IsBefore(other, waiter.prioritized, waiter.arrival)) continue;
        explained |= !Fits(other.lane, other.client, other.wanted.at(other.lane));
      }
      REQUIRE(explained);
    }
  }

  void Compare() {
    REQUIRE(h_.core().books().tokens().size() == tokens_.size());
    for (const auto& [id, token] : tokens_) REQUIRE(h_.IsLive(TokenId{id}));
    for (int64_t flow = 1; flow <= kGroupFlows; ++flow) {
      int64_t sum = 0;
      for (const auto& [id, token] : tokens_) sum += token.lane.first == flow ? token.count : 0;
      REQUIRE(h_.NowCalls(flow) == sum);
    }
    REQUIRE(testing::FindWrongBook(h_.core()).empty());
    REQUIRE(testing::TokensText(testing::ReadLedger(&h_.store())) ==
            testing::TokensText(h_.core()));
  }

  Prng prng_;
  CoreHarness h_;
  std::map<int64_t, RuleOptions> rules_;
  std::set<int64_t> draining_;
  std::map<std::string, int> clients_;  // Their connections.
  std::map<uint64_t, GroupToken> tokens_;
  std::map<uint32_t, GroupWaiter> waiters_;                               // By tag.
  std::map<uint32_t, std::vector<std::pair<GroupLane, int64_t>>> order_;  // Of requests, by tag.
  std::vector<Connection> connections_;
  std::map<std::string, SessionSlot> slots_;
  uint64_t last_request_id_ = 0;
  uint64_t last_arrival_ = 0;
  uint64_t last_fence_ = 0;
  uint64_t groups_granted_late_ = 0;
  uint64_t moves_ = 0;
  uint32_t last_owner_ = 0;
  uint32_t last_tag_ = 0;
};

TEST_CASE("random lives with groups grant all or nothing, and nobody waits in vain") {
  uint64_t granted_late = 0;
  uint64_t moves = 0;
  const std::vector<uint64_t> seeds = testing::SampleOf(2'000, 150);
  for (const uint64_t seed : seeds) {
    CAPTURE(seed);
    GroupLife life(seed);
    for (int step = 0; step < 200; ++step) {
      CAPTURE(step);
      life.Step();
    }
    granted_late += life.groups_granted_late();
    moves += life.moves();
  }
  CHECK(granted_late > seeds.size() / 2);
  CHECK(moves > seeds.size() / 8);
}

}  // namespace
}  // namespace nowcalls::core
