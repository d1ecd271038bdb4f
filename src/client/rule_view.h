// RuleView: the client's half of a rule. RuleViews: the rules seen so far.
//
// Thread: the session's. Fields as in rules_list (wire/PROTOCOL.md, "The client's half of a rule").
#ifndef NOWCALLS_CLIENT_RULE_VIEW_H_
#define NOWCALLS_CLIENT_RULE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "nowcalls/flow_kind.h"
#include "nowcalls/status.h"
#include "nowcalls/token_service.h"

namespace nowcalls::client {

struct RuleView {
  enum class Refused : uint8_t { kFail = 0, kOnceMore = 1, kUntilDeadline = 2, kServerQueues = 3 };

  Refused acquire_refuse = Refused::kFail;
  bool fallback_to_local = false;
  bool global = false;                    // thresholdType: the level is for all sessions together.
  double count = 0;                       // Of each value if the rule has a parameter.
  int64_t window_ms = 1000;               // Of a rate.
  bool count_per_window = false;          // `count` calls in each window, not in each second.
  std::map<std::string, double> items{};  // Counts of values, by their text.

  // Calls in progress for one of `sessions`; under GLOBAL at least 1, unless the level is 0.
  uint64_t Share(const Value& param, uint64_t sessions) const {
    return Part(CountOf(param), sessions);
  }
  // The same for a window of window_ms.
  uint64_t WindowShare(const Value& param, uint64_t sessions) const;

 private:
  double CountOf(const Value& param) const;
  uint64_t Part(double calls, uint64_t sessions) const;
};

// A value as rules write it: "7", "0.5", "true".
std::string ValueText(const Value& value);

// One of each kind at most.
struct FlowRules {
  std::optional<RuleView> of_flow{};
  std::optional<RuleView> by_value{};
};

// From an answer to rules_list. kCorruption: no such answer.
Result<FlowRules> ReadFlowRules(std::string_view result, int64_t flow_id);

class RuleViews {
 public:
  static constexpr size_t kFlowsMax = 10'000;

  // Beyond kFlowsMax it forgets the oldest.
  void Learn(int64_t flow_id, FlowRules rules, int64_t now_ms);
  // Never seen, or over kFreshMs ago.
  bool IsStale(int64_t flow_id, int64_t now_ms) const;
  // Null: unseen or none.
  const RuleView* Find(int64_t flow_id, FlowKind kind) const;
  const RuleView* Find(FlowId flow, const Value& param) const {
    return Find(flow.value, FlowKindIf(param.index() != 0));
  }

 private:
  static constexpr int64_t kFreshMs = 30'000;
  struct Seen {
    FlowRules rules;
    int64_t at_ms = 0;
    std::list<int64_t>::iterator place;
  };

  std::unordered_map<int64_t, Seen> seen_;
  std::list<int64_t> order_;  // The oldest first.
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_RULE_VIEW_H_
