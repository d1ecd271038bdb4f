#include "core/rules/param_fields.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/param_text.h"
#include "base/text.h"
#include "core/rules/json_fields.h"
#include "core/rules/param_items.h"
#include "core/rules/rule_values.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;
using Item = ParamRule::Item;

constexpr int64_t kMsPerSecond = 1000;
constexpr int64_t kSecondsMax = kRuleTimeMsMax / kMsPerSecond;
constexpr char kJavaItems[] = "paramFlowItemList";
constexpr char kGoItems[] = "specificItems";

// A type of Java's as classType names it.
struct JavaClass {
  std::string_view primitive;
  std::string_view boxed;
  ParamType type;
  bool is_char = false;
};
constexpr JavaClass kJavaClasses[] = {
    {"int", "java.lang.Integer", ParamType::kInt},
    {"long", "java.lang.Long", ParamType::kLong},
    {"double", "java.lang.Double", ParamType::kDouble},
    {"float", "java.lang.Float", ParamType::kFloat},
    {"byte", "java.lang.Byte", ParamType::kByte},
    {"short", "java.lang.Short", ParamType::kShort},
    {"boolean", "java.lang.Boolean", ParamType::kBoolean},
    // No request has a char; clients ask with a string of one character.
    {"char", "java.lang.Character", ParamType::kString, /*is_char=*/true},
    {"String", "java.lang.String", ParamType::kString},
    {"", "string", ParamType::kString},
};

const JavaClass* JavaClassOf(std::string_view name) {
  const auto* const found = std::find_if(
      std::begin(kJavaClasses), std::end(kJavaClasses),
      [name](const JavaClass& known) { return name == known.primitive || name == known.boxed; });
  return found == std::end(kJavaClasses) ? nullptr : found;
}

bool IsOneCharacter(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }) == 1;
}

void FailValue(const char* key, std::string_view type, const std::string& text,
               JsonFields* fields) {
  fields->Fail(key, "must be a value of type " + std::string(type) + ", got " + ExcerptOf(text));
}

// {"object": "5", "classType": "int", "count": 10}
void ReadJavaItem(JsonFields* fields, Item* item) {
  constexpr size_t kClassBytesMax = 64;
  std::string text;
  std::string class_name;
  if (fields->Find("object") == nullptr) fields->Fail("object", "is missing");
  fields->String("object", kParamBytesMax, &text);
  fields->String("classType", kClassBytesMax, &class_name);
  fields->Count("count", &item->count);
  const JavaClass* known = JavaClassOf(class_name);
  if (known == nullptr) {
    return fields->Fail("classType",
                        "must be int, long, double, float, byte, short, boolean, char or String, "
                        "got " +
                            ExcerptOf(class_name));
  }
  const std::optional<ParamValue> value = ParamFromText(known->type, text);
  if (!value.has_value() || (known->is_char && !IsOneCharacter(text))) {
    return FailValue("object", known->primitive, text, fields);
  }
  item->value = *value;
}

// {"valKind": 0, "valStr": "5", "threshold": 10}
void ReadGoItem(JsonFields* fields, Item* item) {
  enum ValKind : uint8_t { kInt, kString, kBool, kFloat64 };
  int32_t kind = kInt;
  std::string text;
  fields->Integer("valKind", kInt, kFloat64, &kind);
  if (fields->Find("valStr") == nullptr) fields->Fail("valStr", "is missing");
  fields->String("valStr", kParamBytesMax, &text);
  fields->Count("threshold", &item->count);
  // Go's int has 64 bits, but clients send the narrowest type.
  constexpr ParamType kTypes[] = {ParamType::kLong, ParamType::kString, ParamType::kBoolean,
                                  ParamType::kDouble};
  constexpr std::string_view kNames[] = {"int", "string", "bool", "float64"};
  const std::optional<ParamValue> value = ParamFromText(kTypes[kind], text);
  if (!value.has_value()) return FailValue("valStr", kNames[kind], text, fields);
  item->value = kind == kInt ? IntegerParam(LoadBigEndian<int64_t>(value->bytes.data())) : *value;
}

// Whether there are not too many.
bool CheckSize(const json& items, const char* key, JsonFields* fields) {
  if (items.size() <= kParamItemsMax) return true;
  fields->Fail(key, "holds " + std::to_string(items.size()) + " values; at most " +
                        std::to_string(kParamItemsMax) + " are allowed");
  return false;
}

template <typename ReadItem>
void ReadList(const json& list, const char* key, ReadItem read_item, Rule* rule,
              std::string* error) {
  size_t position = 0;
  for (const json& object : list) {
    if (!error->empty()) return;
    const std::string of_item = " of item " + std::to_string(++position);
    if (!object.is_object()) {
      *error = key + of_item + " must be an object";
      return;
    }
    JsonFields fields(object, std::string(key) + ".", error, of_item);
    read_item(&fields, &rule->param->items.emplace_back());
  }
}

// {"user-a": 10}: sentinel-golang's map[interface{}]int64 as JSON, whose keys are strings.
void ReadMap(const json& map, JsonFields* fields, Rule* rule) {
  for (const auto& [text, threshold] : map.items()) {
    const std::optional<double> count = NumberOf(threshold);
    if (!count.has_value() || !(*count >= 0)) {
      return fields->Fail(kGoItems, "must hold a number >= 0 for each value, got " +
                                        ExcerptOf(threshold) + " for " + ExcerptOf(text));
    }
    const std::optional<ParamValue> value = ParamFromText(ParamType::kString, text);
    if (!value.has_value()) {
      return fields->Fail(
          kGoItems, "must hold values of at most " + std::to_string(kParamBytesMax) + " bytes");
    }
    rule->param->items.push_back({*value, *count});
  }
}

// Sorts the items, and refuses a value that comes twice.
void SortOnce(const char* key, JsonFields* fields, Rule* rule) {
  SortItems(&*rule->param);
  const std::vector<Item>& items = rule->param->items;
  const auto twice = std::adjacent_find(
      items.begin(), items.end(), [](const Item& a, const Item& b) { return a.value == b.value; });
  if (twice == items.end()) return;
  const Param value = twice->value.view();
  fields->Fail(key, "holds the " + std::string(ParamTypeName(value.type)) + " " +
                        Quoted(ParamText(value)) + " twice");
}

void ReadJavaItems(JsonFields* fields, Rule* rule, std::string* error) {
  const json* list = fields->Find(kJavaItems);
  if (list == nullptr) return;
  if (!list->is_array()) {
    return fields->Fail(kJavaItems, "must be a list of objects, got " + ExcerptOf(*list));
  }
  if (!CheckSize(*list, kJavaItems, fields)) return;
  ReadList(*list, kJavaItems, ReadJavaItem, rule, error);
  if (error->empty()) SortOnce(kJavaItems, fields, rule);
}

void ReadGoItems(JsonFields* fields, Rule* rule, std::string* error) {
  const json* items = fields->Find(kGoItems);
  if (items == nullptr) return;
  if (!items->is_array() && !items->is_object()) {
    return fields->Fail(kGoItems, "must be a list of {valKind, valStr, threshold} or a map, got " +
                                      ExcerptOf(*items));
  }
  if (!CheckSize(*items, kGoItems, fields)) return;
  if (items->is_array()) {
    ReadList(*items, kGoItems, ReadGoItem, rule, error);
  } else {
    ReadMap(*items, fields, rule);
  }
  if (error->empty()) SortOnce(kGoItems, fields, rule);
}

// The least is a second.
void ReadDuration(JsonFields* fields, ParamRule* param) {
  int64_t seconds = param->duration_ms / kMsPerSecond;
  fields->Integer("durationInSec", 1, kSecondsMax, &seconds);
  param->duration_ms = seconds * kMsPerSecond;
}

}  // namespace

void ReadParamFlow(const json& object, Rule* rule, std::string* error) {
  JsonFields fields(object, "", error);
  ParamRule& param = rule->param.emplace();
  rule->max_queueing_time_ms = 0;
  fields.String("limitApp", kResourceBytesMax, &rule->limit_app);
  fields.Integer("grade", 0, 1, &rule->grade);
  // Without it, and with keys that belong to it, the author may have meant another kind. Sentinel
  // writes null where nobody has set it.
  if (!object.contains("paramIdx")) fields.Fail("paramIdx", "is missing");
  fields.Integer("paramIdx", INT32_MIN, kInt32Max, &param.index);
  fields.Count("count", &rule->count);
  fields.Integer("controlBehavior", 0, 3, &rule->control_behavior);
  fields.Integer("maxQueueingTimeMs", 0, kInt32Max, &rule->max_queueing_time_ms);
  fields.Integer("burstCount", 0, kCountMax, &param.burst_count);
  ReadDuration(&fields, &param);
  ReadJavaItems(&fields, rule, error);
  param.algorithm = ParamRule::Algorithm::kWindow;
}

void ReadHotspot(const json& object, Rule* rule, std::string* error) {
  JsonFields fields(object, "", error);
  ParamRule& param = rule->param.emplace();
  rule->max_queueing_time_ms = 0;
  rule->grade = 0;  // Go's default for every number.
  int32_t control_behavior = 0;
  fields.Integer("metricType", 0, 1, &rule->grade);
  fields.Integer("controlBehavior", 0, 1, &control_behavior);
  fields.Integer("paramIndex", INT32_MIN, kInt32Max, &param.index);
  fields.String("paramKey", kResourceBytesMax, &param.key);
  fields.Count("threshold", &rule->count);
  fields.Integer("maxQueueingTimeMs", 0, kInt32Max, &rule->max_queueing_time_ms);
  fields.Integer("burstCount", 0, kCountMax, &param.burst_count);
  fields.Integer("paramsMaxCapacity", 0, kInt32Max, &param.values_max);
  ReadGoItems(&fields, rule, error);
  param.algorithm = control_behavior == 0 ? ParamRule::Algorithm::kTokenBucket
                                          : ParamRule::Algorithm::kLeakyBucket;
  // sentinel-golang looks at the duration of calls a second only, and takes none of 0 there.
  const json* duration = fields.FindSet("durationInSec");
  const bool is_zero = duration == nullptr || IntegerOf(*duration) == 0;
  if (!is_zero) return ReadDuration(&fields, &param);
  if (rule->says_rate()) {
    fields.Fail("durationInSec", "is missing; it must be > 0 where metricType is 1 (QPS)");
  }
}

}  // namespace nowcalls::core
