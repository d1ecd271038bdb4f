#include "core/rules/param_items.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace nowcalls::core {
namespace {

using Item = ParamRule::Item;

bool ComesBefore(const Item& item, const Param& value) {
  const Param own = item.value.view();
  return std::tie(own.type, own.bytes) < std::tie(value.type, value.bytes);
}

bool AreInOrder(const Item& a, const Item& b) { return ComesBefore(a, b.value.view()); }

}  // namespace

void SortItems(ParamRule* param) {
  std::sort(param->items.begin(), param->items.end(), AreInOrder);
}

bool ItemsAreSorted(const ParamRule& param) {
  return std::is_sorted(param.items.begin(), param.items.end(), AreInOrder);
}

double CountOf(const Rule& rule, const Param& value) {
  if (!rule.param.has_value()) return rule.count;
  const std::vector<Item>& items = rule.param->items;
  const auto found = std::lower_bound(items.begin(), items.end(), value, ComesBefore);
  return found == items.end() || found->value.view() != value ? rule.count : found->count;
}

}  // namespace nowcalls::core
