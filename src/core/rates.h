// Rates: calls a second, of a rule as a whole or of each value of its parameter. Nothing is held,
// and nothing is given back.
//
// Thread: loop. The semantics are those of Sentinel's ClusterFlowChecker and
// ClusterParamFlowChecker and of sentinel-golang's hotspot rules, with these exceptions:
//   - A window is compared as a sum with count x interval. Sentinel compares its average a second
//     with the count, so that several seconds' calls pass in a burst.
//   - A request for one value several times asks for that value as often. Sentinel looks at each
//     mention alone.
//   - A leaky bucket spaces calls by fractions of a millisecond. sentinel-golang rounds them off.
// exceedCount and maxOccupyRatio are 1, as Sentinel has them by default.
//
// Rates may touch: RateTable, and the counters of flows. Windows of ten seconds and longer are
// recorded (RateTable::SaveDue), nothing else is.
#ifndef NOWCALLS_CORE_RATES_H_
#define NOWCALLS_CORE_RATES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/answers.h"
#include "core/books.h"
#include "core/other_kind.h"
#include "core/step.h"
#include "nowcalls/param.h"

namespace nowcalls::core {

class Rates {
 public:
  Rates(Books* books, OtherKind* other_kind) : books_(books), other_kind_(other_kind) {}

  // kOk, kShouldWait, kBlocked; kTooManyRequest: the namespace's guard; kNoRuleExists; kBadRequest,
  // for a rule with a parameter as kParam.
  RateAnswer Request(const Step& step, const RateRequest& request);
  // `count` calls for each of the values, or none of them. kBadRequest if there are no values, a
  // value is longer than kParamBytesMax, or, as kParam, for a rule without a parameter.
  RateAnswer RequestParams(const Step& step, FlowId flow, int64_t count,
                           std::span<const Param> values);

  // How many calls the window of the flow may have. REQUIRES: an active rule.
  static int64_t WindowLimitOf(const Books& books, const Flow& flow);

 private:
  // Checks that do not depend on what has passed. The slot of the flow, or the refusal.
  std::optional<RateAnswer> Enter(const Step& step, const FlowKey& key, int64_t count,
                                  FlowSlot* slot);
  bool PassesGuard(const Step& step, NamespaceSlot slot);
  // What the rule says to the request; a borrowed call is counted.
  RateAnswer Judge(FlowRate* rate, const RateRequest& request, int64_t limit);
  RateAnswer JudgeValues(const Step& step, const Flow& flow);
  // Whether a value may have what `asked` says.
  PaceAnswer Ask(const Step& step, const Flow& flow, ValueSlot slot);
  void Take(const Step& step, const Flow& flow, ValueSlot slot);
  Pace PaceOf(const Flow& flow, const ValueRate& value) const;
  // Counts the answer; shadow mode makes it kOk.
  RateAnswer Conclude(FlowSlot slot, FlowRate* rate, int64_t count, RateAnswer answer);

  Books* const books_;
  OtherKind* const other_kind_;
  std::vector<ValueSlot> asked_;  // The values of the request at hand.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_H_
