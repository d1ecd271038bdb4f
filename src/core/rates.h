// Rates: calls a second, of a rule as a whole or of each value of its parameter. Nothing is held,
// and nothing is given back.
//
// Thread: loop. The semantics are those of Sentinel's ClusterFlowChecker and
// ClusterParamFlowChecker and of sentinel-golang's hotspot rules, with these exceptions:
//   - A window takes count x interval calls. Sentinel adds what is asked to its average a second,
//     and passes while that is at most count.
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

  // --- For groups (core/groups.h): all of their rates are asked first, then all are taken. ---
  // Counts a request against the namespace's guard; false: the guard refuses it, uncounted.
  bool PassesGuard(const Step& step, NamespaceSlot slot);
  // Calls of a flow, or of one value of its parameter. REQUIRES: an active rule, with a parameter
  // exactly if there is a value; the rule does not change up to Conclude.
  struct Wish {
    FlowSlot flow;
    int64_t count = 0;
    std::optional<Param> param{};
    bool prioritized = false;
  };
  // False: no wait would help, whatever has passed.
  bool MayEverPass(const Wish& wish) const;
  // What the rule says; nothing is taken or counted. A value is remembered from now on.
  RateAnswer Ask(const Step& step, const Wish& wish);
  // Takes the calls if `answer` is not kBlocked, and counts it. It is what Ask has said in this
  // step, of a wish with which nothing was taken since. Shadow mode makes it kOk.
  RateAnswer Conclude(const Step& step, const Wish& wish, const RateAnswer& answer);

 private:
  struct Asked {
    ValueSlot slot;
    uint32_t position = 0;  // In the request; of the first mention.
  };

  // Checks that do not depend on what has passed. The slot of the flow, or the refusal.
  std::optional<RateAnswer> Enter(const Step& step, const FlowKey& key, int64_t count,
                                  FlowSlot* slot);
  // What the rule says of its window; nothing is taken.
  RateAnswer AskWindow(const Wish& wish, FlowRate* rate) const;
  RateAnswer AskValues(const Step& step, const Flow& flow);
  void TakeValues(const Step& step, const Flow& flow, const RateAnswer& answer);
  // Whether a value may have what `asked` says.
  PaceAnswer AskValue(const Step& step, const Flow& flow, ValueSlot slot);
  void TakeValue(const Step& step, const Flow& flow, ValueSlot slot);
  bool MayValueEverPass(const Flow& flow, double count, int64_t asked) const;
  // Of a value to which the rule gives `of_session`, or that much a session online.
  Pace PaceOf(const Flow& flow, double of_session) const;
  // Counts the answer; shadow mode makes it kOk.
  RateAnswer Count(FlowSlot slot, FlowRate* rate, int64_t count, RateAnswer answer);

  Books* const books_;
  OtherKind* const other_kind_;
  std::vector<Asked> asked_;  // The values of the request at hand.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_H_
