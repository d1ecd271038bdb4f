// A rule's count in words.
//
// Thread: any.
#ifndef NOWCALLS_CORE_RULES_RULE_AMOUNT_H_
#define NOWCALLS_CORE_RULES_RULE_AMOUNT_H_

#include <cstdint>
#include <string>

#include "core/rules/rule.h"

namespace nowcalls::core {

// Of the largest unit that leaves no rest: "500ms", "60s", "2h", "1d".
std::string IntervalText(int64_t interval_ms);

// At most ten digits unless whole: "1000000", "99.996".
std::string CallsText(double calls);

// `count`, the rule's or an item's, rounded down, but for a rule that is multiplied with the
// sessions online. "20", "0.5", "100 in 60s".
std::string AmountText(const Rule& rule, double count);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_AMOUNT_H_
