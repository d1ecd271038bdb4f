#include "unit/core/core_model.h"

#include <algorithm>

namespace nowcalls::testing {

int64_t CoreModel::NowCalls(int64_t flow) const {
  int64_t sum = 0;
  for (const auto& [id, token] : tokens) sum += token.flow == flow ? token.count : 0;
  return sum;
}

int64_t CoreModel::TokensOf(const std::string& client) const {
  return std::count_if(tokens.begin(), tokens.end(),
                       [&](const auto& entry) { return entry.second.client == client; });
}

int64_t CoreModel::Online(const std::string& name_space) const {
  return std::count_if(clients.begin(), clients.end(), [&](const auto& entry) {
    return entry.first.starts_with(name_space + "/") && entry.second.connections > 0;
  });
}

double CoreModel::Level(int64_t flow) const {
  const ModelRule& rule = rules.at(flow);
  return rule.avg_local ? rule.count * static_cast<double>(Online(rule.name_space)) : rule.count;
}

int64_t CoreModel::HoldEndMs(const ModelToken& token) const {
  const int64_t max_hold_ms = rules.at(token.flow).max_hold_ms;
  return max_hold_ms == 0 ? INT64_MAX : token.issued_ms + max_hold_ms;
}

int64_t CoreModel::OfflineDueMs(const ModelToken& token) const {
  const ModelClient& client = clients.at(token.client);
  if (client.connections > 0) return INT64_MAX;
  const int64_t wait_ms = rules.at(token.flow).client_offline_ms;
  return client.offline_since_ms + (client.old ? std::max(wait_ms, kGraceMs) : wait_ms);
}

int64_t CoreModel::ExpiryMs(const ModelToken& token) const {
  if (!token.old) return token.deadline_ms;
  const int64_t spared_ms = ready_ms + std::min(rules.at(token.flow).hold_ms, kGraceMs);
  return std::max(token.deadline_ms, std::min(spared_ms, HoldEndMs(token)));
}

int64_t CoreModel::SweptByMs(const ModelToken& token) const {
  return ExpiryMs(token) + kSweepLateMs;
}

std::set<std::string> CoreModel::ReleaseReasons(const ModelToken& token, int64_t now_ms) const {
  const int64_t hold_ms = rules.at(token.flow).hold_ms;
  if (token.old && token.deadline_ms <= now_ms) return {"released", "released_late"};
  const bool late = now_ms - token.held_since_ms > hold_ms / 2;
  return {late ? "released_late" : "released"};
}

void CoreModel::EraseToken(uint64_t id) {
  const std::string client = tokens.at(id).client;
  tokens.erase(id);
  if (clients.at(client).connections == 0 && TokensOf(client) == 0) clients.erase(client);
}

void CoreModel::Goodbye(const std::string& name, int64_t now_ms) {
  ModelClient& client = clients.at(name);
  if (--client.connections > 0) return;
  client.offline_since_ms = now_ms;
  client.old = false;
  if (TokensOf(name) == 0) clients.erase(name);
}

void CoreModel::Restart(int64_t now_ms) {
  ready_ms = now_ms;
  // The ledger has deadlines, not when a hold began.
  for (auto& [id, token] : tokens) {
    token.old = true;
    token.held_since_ms =
        std::max(token.issued_ms, token.deadline_ms - rules.at(token.flow).hold_ms);
  }
  std::erase_if(clients, [&](const auto& entry) { return TokensOf(entry.first) == 0; });
  for (auto& [name, client] : clients) client = {0, now_ms, true};
}

}  // namespace nowcalls::testing
