#include "sim/sim_rules.h"

#include <algorithm>
#include <sstream>

#include "sim/lanes.h"

namespace nowcalls::sim {

std::vector<int64_t> SimRule::lanes() const {
  if (keys == 0) return {flow};
  std::vector<int64_t> lanes;
  for (int64_t key = 0; key < keys; ++key) lanes.push_back(LaneOf(flow, key));
  return lanes;
}

FlowFacts SimRule::Facts(double resource_timeout_factor) const {
  const double hold_ms = static_cast<double>(resource_timeout_ms) * resource_timeout_factor;
  return {.hold_ms = static_cast<int64_t>(hold_ms),
          .max_hold_ms = max_hold_ms,
          .client_offline_ms = client_offline_ms,
          .client_cap = client_cap,
          .shadow = shadow};
}

WindowFacts SimRule::Window() const {
  constexpr int64_t kInLedgerMs = 10'000;
  return {.interval_ms = window_ms,
          .samples = samples,
          .in_ledger = window_ms >= kInLedgerMs && keys == 0,
          .shadow = shadow,
          .name_space = name_space};
}

bool HasRule(const std::vector<SimRule>& rules, int64_t flow, FlowKind kind) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const SimRule& rule) { return rule.flow == flow && rule.kind() == kind; });
}

std::string RulesJson(const std::vector<SimRule>& rules, std::string_view name_space) {
  std::ostringstream out;
  out << "[";
  const char* separator = "";
  for (const SimRule& rule : rules) {
    if (!rule.present || rule.name_space != name_space) continue;
    out << separator << R"({"resource":"r)" << rule.flow << R"(",)"
        << (rule.keys > 0 ? R"("grade":0,"paramIdx":0,)" : "") << R"("count":)" << rule.count
        << R"(,"maxQueueingTimeMs":)" << kQueueingMs
        << R"(,"clusterMode":true,"clusterConfig":{"flowId":)" << rule.flow
        << R"(,"thresholdType":)" << (rule.for_each_session ? 0 : 1) << R"(,"resourceTimeout":)"
        << rule.resource_timeout_ms << R"(,"clientOfflineTime":)" << rule.client_offline_ms
        << R"(,"windowIntervalMs":)" << rule.window_ms << R"(,"sampleCount":)" << rule.samples;
    if (rule.max_hold_ms > 0) out << R"(,"maxHoldMs":)" << rule.max_hold_ms;
    if (rule.keys == 0) out << R"(,"maxPerClient":)" << rule.client_cap;
    out << R"(,"acquireRefuseStrategy":)" << (rule.queues ? 3 : rule.refuse_strategy)
        << R"(,"resourceTimeoutStrategy":)" << rule.timeout_strategy
        << R"(,"fallbackToLocalWhenFail":)" << (rule.falls_back ? "true" : "false")
        << R"(,"shadow":)" << (rule.shadow ? "true" : "false") << "}}";
    separator = ",";
  }
  out << "]";
  return out.str();
}

std::map<int64_t, LevelHistory::Change> LoadChanges(const std::vector<SimRule>& rules,
                                                    std::string_view name_space) {
  std::map<int64_t, LevelHistory::Change> changes;
  for (const SimRule& rule : rules) {
    if (rule.name_space != name_space) continue;
    for (const int64_t lane : rule.lanes()) {
      changes[lane] = [rule](const LevelSetting& before) {
        if (!rule.present) return LevelSetting{};
        return LevelSetting{.in_force = true,
                            .draining = before.draining,
                            .count = rule.count,
                            .for_each_session = rule.for_each_session,
                            .name_space = rule.name_space};
      };
    }
  }
  return changes;
}

}  // namespace nowcalls::sim
