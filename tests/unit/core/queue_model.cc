#include "unit/core/queue_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nowcalls::testing {
namespace {

// Whether what is in `lane` counts in `in`.
bool Counts(const QueueModel::Lane& lane, const QueueModel::Lane& in) {
  return lane.first == in.first && (in.second.empty() || lane.second == in.second);
}

}  // namespace

bool QueueModel::IsKeyed(int64_t flow) const { return rules.at(flow).param.has_value(); }

int64_t QueueModel::NowCalls(const Lane& lane) const {
  int64_t sum = Pending(lane, "");
  for (const auto& [id, token] : tokens) sum += Counts(token.lane, lane) ? token.count : 0;
  return sum;
}

int64_t QueueModel::Held(int64_t flow, const std::string& client) const {
  int64_t sum = Pending({flow, ""}, client);
  for (const auto& [id, token] : tokens) {
    sum += token.lane.first == flow && token.client == client ? token.count : 0;
  }
  return sum;
}

bool QueueModel::HoldsAny(const std::string& client) const {
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const auto& token) { return token.second.client == client; });
}

int64_t QueueModel::Online() const {
  return std::count_if(clients.begin(), clients.end(),
                       [](const auto& client) { return !client.second.empty(); });
}

int64_t QueueModel::Level(const Lane& lane) const {
  const RuleOptions& rule = rules.at(lane.first);
  double count = rule.count;
  if (rule.param.has_value()) {
    for (const core::ParamRule::Item& item : rule.param->items) {
      if (item.value.bytes == lane.second) count = item.count;
    }
  }
  // In tenths, which are exact, as counts are.
  const int64_t tenths = std::llround(count * 10);
  return tenths * (rule.avg_local ? Online() : 1) / 10;
}

int64_t QueueModel::Cap(const Lane& lane) const {
  const RuleOptions& rule = rules.at(lane.first);
  if (rule.max_per_client > 0) return rule.max_per_client;
  if (rule.max_per_client_percent == 0) return INT64_MAX;
  return std::max<int64_t>(1, Level(lane) * std::llround(rule.max_per_client_percent) / 100);
}

RefusedBy QueueModel::Limit(const Lane& lane, const std::string& client, int64_t count) const {
  if (count > std::min(Level(lane), Cap(lane))) return RefusedBy::kOverLevel;
  if (NowCalls(lane) + count > Level(lane)) {
    return IsKeyed(lane.first) ? RefusedBy::kParam : RefusedBy::kLevel;
  }
  return Held(lane.first, client) + count > Cap(lane) ? RefusedBy::kClientCap : RefusedBy::kNone;
}

bool QueueModel::Hopeless(const Waiter& waiter) const {
  if (waiter.count > Level(waiter.lane)) return true;
  const int64_t cap = Cap(waiter.lane);
  return cap < INT64_MAX && Held(waiter.lane.first, waiter.client) + waiter.count > cap;
}

bool QueueModel::SomebodyAhead(const Lane& lane, bool prioritized) const {
  return std::any_of(waiters.begin(), waiters.end(), [&](const Waiter& waiter) {
    return waiter.lane == lane && (waiter.prioritized || !prioritized) && !Hopeless(waiter);
  });
}

void QueueModel::AnswerLate(const Waiter& waiter, Foretold answer) {
  late[waiter.lane].emplace_back(waiter.tag, answer);
}

void QueueModel::Forget(uint32_t tag) {
  std::erase_if(waiters, [&](const Waiter& waiter) { return waiter.tag == tag; });
}

void QueueModel::DropWaiters(uint32_t owner) {
  std::erase_if(waiters, [&](const Waiter& waiter) { return waiter.owner == owner; });
}

void QueueModel::RefuseAll(int64_t flow, Foretold answer) {
  std::vector<Waiter> refused;
  for (const Lane& lane : LanesOf(flow)) {
    for (const Waiter* waiter : InOrder(lane)) refused.push_back(*waiter);
  }
  for (const Waiter& waiter : refused) {
    AnswerLate(waiter, answer);
    Forget(waiter.tag);
  }
}

std::set<QueueModel::Lane> QueueModel::LanesOf(int64_t flow) const {
  std::set<Lane> lanes;
  for (const Waiter& waiter : waiters) {
    if (waiter.lane.first == flow) lanes.insert(waiter.lane);
  }
  return lanes;
}

const QueueModel::Waiter* QueueModel::Next(const Lane& lane) const {
  if (!rules.contains(lane.first)) return nullptr;
  for (const Waiter* waiter : InOrder(lane)) {
    const RefusedBy limit = Limit(lane, waiter->client, waiter->count);
    if (limit == RefusedBy::kNone || rules.at(lane.first).shadow) return waiter;
    if (!Hopeless(*waiter)) return nullptr;
  }
  return nullptr;
}

void QueueModel::Grant(Waiter waiter) {
  AnswerLate(waiter, {});
  Forget(waiter.tag);
  granted.push_back(std::move(waiter));
}

void QueueModel::Serve(int64_t flow) {
  if (serves_later) return;
  for (const Lane& lane : LanesOf(flow)) {
    while (const Waiter* next = Next(lane)) Grant(*next);
  }
}

void QueueModel::ServeAll() {
  for (const auto& [flow, rule] : rules) Serve(flow);
}

void QueueModel::EraseToken(uint64_t id) {
  const Token token = tokens.at(id);
  tokens.erase(id);
  RetireIfUnused(token.client);
}

void QueueModel::Disconnect(const std::string& client, uint32_t owner) {
  clients.at(client).erase(owner);
  RetireIfUnused(client);
}

void QueueModel::RemoveRule(int64_t flow) {
  rules.erase(flow);
  draining.erase(flow);
  RefuseAll(flow, {TokenStatus::kNoRuleExists, RefusedBy::kNone});
}

void QueueModel::Restart() {
  waiters.clear();
  cancelled.clear();
  clients.clear();
  for (const auto& [id, token] : tokens) clients[token.client];
}

std::vector<const QueueModel::Waiter*> QueueModel::InOrder(const Lane& lane) const {
  std::vector<const Waiter*> order;
  for (const bool prioritized : {true, false}) {
    for (const Waiter& waiter : waiters) {
      if (waiter.lane == lane && waiter.prioritized == prioritized) order.push_back(&waiter);
    }
  }
  return order;
}

int64_t QueueModel::Pending(const Lane& lane, const std::string& client) const {
  int64_t sum = 0;
  for (const Waiter& waiter : granted) {
    if (!Counts(waiter.lane, lane)) continue;
    if (client.empty() || waiter.client == client) sum += waiter.count;
  }
  return sum;
}

void QueueModel::RetireIfUnused(const std::string& client) {
  if (HoldsAny(client) || !clients.at(client).empty()) return;
  clients.erase(client);
  std::erase_if(cancelled, [&](const auto& entry) { return entry.first.first == client; });
}

}  // namespace nowcalls::testing
