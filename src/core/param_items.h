// ParamItems: the values of a rule's parameter that have a limit of their own, by value.
//
// Thread: loop. A copy of ParamRule::items, sorted, so that a value is found in the time of a few
// comparisons among 1000.
#ifndef NOWCALLS_CORE_PARAM_ITEMS_H_
#define NOWCALLS_CORE_PARAM_ITEMS_H_

#include <vector>

#include "core/rules/rule.h"
#include "nowcalls/param.h"

namespace nowcalls::core {

class ParamItems {
 public:
  ParamItems() = default;
  explicit ParamItems(const Rule& rule);

  // What the rule's count is for this value.
  double CountOf(const Param& value) const;

 private:
  double count_ = 0;
  std::vector<ParamRule::Item> sorted_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_PARAM_ITEMS_H_
