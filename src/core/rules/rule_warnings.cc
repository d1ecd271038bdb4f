#include "core/rules/rule_warnings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/param_text.h"
#include "base/text.h"
#include "core/rules/rule_kind.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

bool LimitsConcurrency(const Rule& rule) {
  if (rule.count_per_interval) return false;
  return !rule.param.has_value() || !rule.says_rate();
}

// Of a level that is 0 although the count is not.
std::optional<std::string> RoundsToZero(const Rule& rule) {
  if (!LimitsConcurrency(rule)) return std::nullopt;
  if (rule.count == 0 || WholeCalls(rule.count) > 0) return std::nullopt;
  const bool is_go = KindOf(rule) == RuleKind::kGoHotParameter;
  const std::string count = (is_go ? "threshold " : "count ") + NumberText(rule.count);
  if (rule.threshold_type == ThresholdType::kGlobal) {
    return count + " is rounded down: the level is 0, and every acquire is refused";
  }
  constexpr double kClientsMax = 1e9;
  const auto clients = static_cast<int64_t>(std::min(std::ceil(1 / rule.count), kClientsMax));
  return count + " for each client is rounded down: the level is 0 while fewer than " +
         std::to_string(clients) + " clients are online";
}

// Fields that say more than the least, as "burstCount 5".
class FieldList {
 public:
  void Add(std::string_view key, int64_t value, int64_t least = 0) {
    if (value == least) return;
    ++count_;
    text_ += (text_.empty() ? "" : ", ") + std::string(key) + " " + std::to_string(value);
  }
  // `why` ends the sentence. nullopt: there are none.
  std::optional<std::string> Sentence(std::string_view why) const {
    if (count_ == 0) return std::nullopt;
    return text_ + (count_ == 1 ? " has" : " have") + " no effect here: " + std::string(why);
  }

 private:
  size_t count_ = 0;
  std::string text_;
};

std::optional<std::string> WithoutEffect(const Rule& rule) {
  FieldList fields;
  switch (KindOf(rule)) {
    case RuleKind::kHotParameter:
      if (!rule.says_rate()) return std::nullopt;
      fields.Add("controlBehavior", rule.control_behavior);
      fields.Add("burstCount", rule.param->burst_count);
      fields.Add("durationInSec", rule.param->duration_ms / 1000, 1);
      return fields.Sentence("as in Sentinel's token server, count is calls a second");
    case RuleKind::kGoFlow:
      fields.Add("tokenCalculateStrategy", rule.token_calculate_strategy);
      fields.Add("controlBehavior", rule.control_behavior);
      fields.Add("relationStrategy", rule.strategy);
      return fields.Sentence("calls beyond the threshold are refused at once");
    default: return std::nullopt;
  }
}

bool LooksTyped(std::string_view text) {
  return ParamFromText(ParamType::kDouble, text).has_value() ||
         ParamFromText(ParamType::kBoolean, text).has_value();
}

// The keys of a map are strings, whatever they look like.
std::optional<std::string> StringItem(const json& object) {
  const auto items = object.find("specificItems");
  if (items == object.end() || !items->is_object()) return std::nullopt;
  for (const auto& [text, threshold] : items->items()) {
    if (!LooksTyped(text)) continue;
    return "specificItems as a map holds strings, and " + Quoted(text) +
           " is one; for a number or a boolean write [{\"valKind\": 0, \"valStr\": \"5\", "
           "\"threshold\": 10}]";
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> RuleWarnings(const json& object, const Rule& rule) {
  std::vector<std::string> warnings;
  for (auto&& warning : {RoundsToZero(rule), WithoutEffect(rule),
                         rule.param.has_value() ? StringItem(object) : std::nullopt}) {
    if (warning.has_value()) warnings.push_back(*warning);
  }
  return warnings;
}

}  // namespace nowcalls::core
