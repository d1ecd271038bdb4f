// The rules of a simulated ledger: JSON for the server, settings for the oracle.
//
// Thread: any.
#ifndef NOWCALLS_SIM_SIM_RULES_H_
#define NOWCALLS_SIM_SIM_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/flow_kind.h"
#include "sim/oracle.h"

namespace nowcalls::sim {

// The maxQueueingTimeMs of every rule.
inline constexpr int64_t kQueueingMs = 700;

struct SimRule {
  int64_t flow = 0;
  std::string name_space = "default";
  double count = 1;
  bool for_each_session = false;
  int64_t resource_timeout_ms = 2'000;
  int64_t max_hold_ms = 0;
  int64_t client_offline_ms = 2'000;
  int64_t client_cap = 0;
  bool shadow = false;
  bool queues = false;  // Prioritized acquires wait by rule.
  bool present = true;  // In the namespace's set.
  int64_t keys = 0;     // Values that acquires name; 0: the rule has no parameter.
  // The client's half of the rule, in the numbers of the JSON.
  int64_t refuse_strategy = 0;  // Unless it queues.
  int64_t timeout_strategy = 0;
  bool falls_back = false;
  int64_t window_ms = 1'000;
  int64_t samples = 10;

  FlowKind kind() const { return FlowKindIf(keys > 0); }
  // What its acquires count against (lanes.h).
  std::vector<int64_t> lanes() const;

  FlowFacts Facts(double resource_timeout_factor) const;
  WindowFacts Window() const;
};

// Whether the flow id has such a rule, present or not.
bool HasRule(const std::vector<SimRule>& rules, int64_t flow, FlowKind kind);

// Those of the namespace that are present.
std::string RulesJson(const std::vector<SimRule>& rules, std::string_view name_space);

// What loading them makes of the levels of the namespace's flows.
std::map<int64_t, LevelHistory::Change> LoadChanges(const std::vector<SimRule>& rules,
                                                    std::string_view name_space);

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_RULES_H_
