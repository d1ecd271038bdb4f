#include "core/param_items.h"

#include <algorithm>
#include <tuple>

namespace nowcalls::core {
namespace {

auto OrderOf(const Param& value) { return std::tuple(value.type, value.bytes); }

}  // namespace

ParamItems::ParamItems(const Rule& rule) : count_(rule.count) {
  if (!rule.param.has_value()) return;
  sorted_ = rule.param->items;
  std::sort(sorted_.begin(), sorted_.end(), [](const auto& a, const auto& b) {
    return OrderOf(a.value.view()) < OrderOf(b.value.view());
  });
}

double ParamItems::CountOf(const Param& value) const {
  const auto found = std::lower_bound(
      sorted_.begin(), sorted_.end(), value,
      [](const auto& item, const Param& v) { return OrderOf(item.value.view()) < OrderOf(v); });
  return found == sorted_.end() || found->value.view() != value ? count_ : found->count;
}

}  // namespace nowcalls::core
