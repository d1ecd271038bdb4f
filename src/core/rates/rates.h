// Rates: calls a second, of a rule or of each value of its parameter.
//
// Thread: loop. It may touch: RateTable, and the counters of flows. Records only windows of 10 s
// and longer (RateTable).
//
// Semantics: Sentinel's ClusterFlowChecker and ClusterParamFlowChecker, sentinel-golang's hotspot
// rules; exceedCount and maxOccupyRatio are 1, the defaults. Exceptions:
//   - A window takes count x interval calls; Sentinel bounds its average a second, request added.
//   - A value named several times needs room for all; Sentinel checks each mention alone.
//   - A leaky bucket spaces calls by fractions of a ms; sentinel-golang rounds them off.
#ifndef NOWCALLS_CORE_RATES_RATES_H_
#define NOWCALLS_CORE_RATES_RATES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/answers.h"
#include "core/other_kind.h"
#include "core/rates/rate_table.h"
#include "core/step.h"
#include "core/tables/flow_table.h"
#include "nowcalls/param.h"

namespace nowcalls::core {

class Rates {
 public:
  Rates(FlowTable* flows, RateTable* rates, OtherKind* other_kind)
      : flows_(flows), rates_(rates), other_kind_(other_kind) {}

  // kOk, kShouldWait, kBlocked; kTooManyRequest: the namespace's guard; kNoRuleExists; kBadRequest,
  // as kParam for a rule with a parameter.
  RateAnswer Request(const Step& step, const RateRequest& request);
  // `count` calls for each value, or for none. kBadRequest: no values, a value over kParamBytesMax,
  // or, as kParam, a rule without a parameter.
  RateAnswer RequestParams(const Step& step, FlowId flow, int64_t count,
                           std::span<const Param> values);

  // REQUIRES: an active rule.
  static int64_t WindowLimitOf(const FlowTable& flows, const Flow& flow);

  // --- For core/grants/groups.h: asks all, then takes all. ---
  // False: the namespace's guard refuses, uncounted.
  bool PassesGuard(const Step& step, NamespaceSlot slot);
  // Calls of a flow, or of a value. REQUIRES: an active rule, with a parameter exactly if there is
  // a value, unchanged up to Conclude.
  struct Wish {
    FlowSlot flow;
    int64_t count = 0;
    std::optional<Param> param{};
    bool prioritized = false;
  };
  bool MayEverPass(const Wish& wish) const;  // False: no wait would help.
  // Takes and counts nothing; remembers the value.
  RateAnswer Ask(const Step& step, const Wish& wish);
  // Counts `answer`, and takes the calls unless kBlocked; shadow mode makes it kOk. REQUIRES: Ask
  // gave it in this step, and nothing was taken with the wish since.
  RateAnswer Conclude(const Step& step, const Wish& wish, const RateAnswer& answer);

 private:
  struct Asked {
    ValueSlot slot;
    uint32_t position = 0;  // In the request; of the first mention.
  };

  std::optional<RateAnswer> Enter(const Step& step, const FlowKey& key, int64_t count,
                                  FlowSlot* slot);
  RateAnswer AskWindow(const Wish& wish, RateState* rate) const;
  RateAnswer AskValues(const Step& step, const Flow& flow);
  void TakeValues(const Step& step, const Flow& flow, const RateAnswer& answer);
  PaceAnswer AskValue(const Step& step, const Flow& flow, ValueSlot slot);
  void TakeValue(const Step& step, const Flow& flow, ValueSlot slot);
  bool MayValueEverPass(const Flow& flow, double count, int64_t asked) const;
  Pace PaceOf(const Flow& flow, double of_session) const;
  RateAnswer Count(FlowSlot slot, RateState* rate, int64_t count, RateAnswer answer);

  FlowTable* const flows_;
  RateTable* const rates_;
  OtherKind* const other_kind_;
  std::vector<Asked> asked_;  // The values of the request at hand.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_RATES_H_
