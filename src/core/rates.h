// Rates: calls a second, of a rule as a whole. Nothing is held, and nothing is given back.
//
// Thread: loop. The semantics are those of Sentinel's ClusterFlowChecker, but for windows of more
// than a second: Sentinel compares the average a second with the count, so a burst of several
// seconds' calls may pass at once or none; here the sum of the window is compared with count x
// interval. Rates may touch: RateTable and counters of flows.
#ifndef NOWCALLS_CORE_RATES_H_
#define NOWCALLS_CORE_RATES_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "core/answers.h"
#include "core/books.h"
#include "core/step.h"
#include "nowcalls/param.h"

namespace nowcalls::core {

class Rates {
 public:
  explicit Rates(Books* books) : books_(books) {}

  // kOk, kShouldWait, kBlocked, kTooManyRequest (the namespace's guard), kNoRuleExists,
  // kBadRequest.
  RateAnswer Request(const Step& step, const RateRequest& request);
  // The same of each of the values by itself: all pass, or none does.
  RateAnswer RequestParams(const Step& step, FlowId flow, int64_t count,
                           std::span<const Param> values);

 private:
  bool PassesGuard(const Step& step, NamespaceSlot slot);
  // How many calls the flow's window may have.
  double LimitOf(const Flow& flow) const;

  SlidingWindow& WindowOf(const Flow& flow, const Param& value);

  Books* const books_;
  absl::flat_hash_map<std::string, SlidingWindow> values_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_H_
