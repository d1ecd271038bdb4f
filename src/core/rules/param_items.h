// The values of a parameter that have a count of their own.
//
// Thread: any. Items are sorted by type, then by bytes, so their written order makes no other rule.
#ifndef NOWCALLS_CORE_RULES_PARAM_ITEMS_H_
#define NOWCALLS_CORE_RULES_PARAM_ITEMS_H_

#include "core/rules/rule.h"
#include "nowcalls/param.h"

namespace nowcalls::core {

void SortItems(ParamRule* param);
bool ItemsAreSorted(const ParamRule& param);

// The count of the value's item, else of the rule. REQUIRES: sorted items.
double CountOf(const Rule& rule, const Param& value);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_PARAM_ITEMS_H_
