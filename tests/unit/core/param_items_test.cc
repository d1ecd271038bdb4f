// Values of a parameter with a count of their own, found among many.
#include "core/rules/param_items.h"

#include <doctest/doctest.h>

#include <string>

#include "base/limits.h"
#include "base/param_text.h"

namespace nowcalls::core {
namespace {

TEST_CASE("among 1000 items of several types each value has its own count, others the rule's") {
  Rule rule;
  rule.count = 0.5;
  rule.param.emplace();
  for (uint32_t i = 0; i < kParamItemsMax; ++i) {
    const auto type = static_cast<ParamType>(i % 2 == 0 ? ParamType::kString : ParamType::kInt);
    rule.param->items.push_back(
        {*ParamFromText(type, std::to_string(kParamItemsMax - i)), i + 1.0});
  }
  const std::vector<ParamRule::Item> written = rule.param->items;
  CHECK_FALSE(ItemsAreSorted(*rule.param));
  SortItems(&*rule.param);
  CHECK(ItemsAreSorted(*rule.param));
  for (const ParamRule::Item& item : written) {
    REQUIRE(CountOf(rule, item.value.view()) == item.count);
    // The same text, or the same number, of another type.
    const bool is_text = item.value.type == ParamType::kString;
    const ParamValue twin(is_text ? ParamType::kInt : ParamType::kLong, item.value.bytes);
    REQUIRE(CountOf(rule, twin.view()) == 0.5);
  }
  rule.param.reset();
  CHECK(CountOf(rule, written[0].value.view()) == 0.5);
}

}  // namespace
}  // namespace nowcalls::core
