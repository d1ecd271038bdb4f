#include "unit/core/queue_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nowcalls::testing {

int64_t QueueModel::NowCalls(int64_t flow) const {
  int64_t sum = Pending(flow, "");
  for (const auto& [id, token] : tokens) sum += token.flow == flow ? token.count : 0;
  return sum;
}

int64_t QueueModel::Held(int64_t flow, const std::string& client) const {
  int64_t sum = Pending(flow, client);
  for (const auto& [id, token] : tokens) {
    sum += token.flow == flow && token.client == client ? token.count : 0;
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

int64_t QueueModel::Level(int64_t flow) const {
  const RuleOptions& rule = rules.at(flow);
  // In tenths, which are exact, as counts are.
  const int64_t tenths = std::llround(rule.count * 10);
  return tenths * (rule.avg_local ? Online() : 1) / 10;
}

int64_t QueueModel::Cap(int64_t flow) const {
  const RuleOptions& rule = rules.at(flow);
  if (rule.max_per_client > 0) return rule.max_per_client;
  if (rule.max_per_client_percent == 0) return INT64_MAX;
  return std::max<int64_t>(1, Level(flow) * std::llround(rule.max_per_client_percent) / 100);
}

RefusedBy QueueModel::Limit(int64_t flow, const std::string& client, int64_t count) const {
  if (count > std::min(Level(flow), Cap(flow))) return RefusedBy::kOverLevel;
  if (NowCalls(flow) + count > Level(flow)) return RefusedBy::kLevel;
  return Held(flow, client) + count > Cap(flow) ? RefusedBy::kClientCap : RefusedBy::kNone;
}

bool QueueModel::Hopeless(const Waiter& waiter) const {
  return waiter.count > Level(waiter.flow) ||
         Held(waiter.flow, waiter.client) + waiter.count > Cap(waiter.flow);
}

bool QueueModel::SomebodyAhead(int64_t flow, bool prioritized) const {
  return std::any_of(waiters.begin(), waiters.end(), [&](const Waiter& waiter) {
    return waiter.flow == flow && (waiter.prioritized || !prioritized) && !Hopeless(waiter);
  });
}

void QueueModel::AnswerLate(const Waiter& waiter, Foretold answer) {
  late[waiter.flow].emplace_back(waiter.tag, answer);
}

void QueueModel::Forget(uint32_t tag) {
  std::erase_if(waiters, [&](const Waiter& waiter) { return waiter.tag == tag; });
}

void QueueModel::DropWaiters(uint32_t owner) {
  std::erase_if(waiters, [&](const Waiter& waiter) { return waiter.owner == owner; });
}

void QueueModel::RefuseAll(int64_t flow, Foretold answer) {
  std::vector<Waiter> refused;
  for (const Waiter* waiter : InOrder(flow)) refused.push_back(*waiter);
  for (const Waiter& waiter : refused) {
    AnswerLate(waiter, answer);
    Forget(waiter.tag);
  }
}

const QueueModel::Waiter* QueueModel::Next(int64_t flow) const {
  if (!rules.contains(flow)) return nullptr;
  for (const Waiter* waiter : InOrder(flow)) {
    const RefusedBy limit = Limit(flow, waiter->client, waiter->count);
    if (limit == RefusedBy::kNone || rules.at(flow).shadow) return waiter;
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
  while (const Waiter* next = Next(flow)) Grant(*next);
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

std::vector<const QueueModel::Waiter*> QueueModel::InOrder(int64_t flow) const {
  std::vector<const Waiter*> order;
  for (const bool prioritized : {true, false}) {
    for (const Waiter& waiter : waiters) {
      if (waiter.flow == flow && waiter.prioritized == prioritized) order.push_back(&waiter);
    }
  }
  return order;
}

int64_t QueueModel::Pending(int64_t flow, const std::string& client) const {
  int64_t sum = 0;
  for (const Waiter& waiter : granted) {
    if (waiter.flow == flow && (client.empty() || waiter.client == client)) sum += waiter.count;
  }
  return sum;
}

void QueueModel::RetireIfUnused(const std::string& client) {
  if (HoldsAny(client) || !clients.at(client).empty()) return;
  clients.erase(client);
  std::erase_if(cancelled, [&](const auto& entry) { return entry.first.first == client; });
}

}  // namespace nowcalls::testing
