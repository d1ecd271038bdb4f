// RuleView: what a client must know of a rule, and RuleViews, the rules that it has seen.
//
// Thread: the session's. The fields are those of rules_list (wire/PROTOCOL.md, "The client's half
// of a rule").
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

  // The calls that one of `sessions` may have in progress: at least 1 of a level that is not 0.
  uint64_t Share(const Value& param, uint64_t sessions) const {
    return Part(CountOf(param), sessions);
  }
  // The calls that one of them may begin in a window of window_ms, likewise.
  uint64_t WindowShare(const Value& param, uint64_t sessions) const;

 private:
  double CountOf(const Value& param) const;
  uint64_t Part(double calls, uint64_t sessions) const;
};

// A value as rules write it: "7", "0.5", "true".
std::string ValueText(const Value& value);

// The rules of a flow id, one of each kind at most.
struct FlowRules {
  std::optional<RuleView> of_flow{};
  std::optional<RuleView> by_value{};
};

// The rules of the flow id in an answer to rules_list. kCorruption: it is not such an answer.
Result<FlowRules> ReadFlowRules(std::string_view result, int64_t flow_id);

class RuleViews {
 public:
  static constexpr size_t kFlowsMax = 10'000;

  // Remembers the rules of a flow id, or that there are none; forgets those that were seen first.
  void Learn(int64_t flow_id, FlowRules rules, int64_t now_ms);
  // Whether its rules were never seen, or longer ago than kFreshMs.
  bool IsStale(int64_t flow_id, int64_t now_ms) const;
  // Null: not seen, or there is none.
  const RuleView* Find(int64_t flow_id, FlowKind kind) const;
  // The one that a call with this parameter means; if there is only another, that one.
  const RuleView* Find(FlowId flow, const Value& param) const {
    const FlowKind kind = FlowKindIf(param.index() != 0);
    const RuleView* const meant = Find(flow.value, kind);
    return meant != nullptr ? meant : Find(flow.value, OtherThan(kind));
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
