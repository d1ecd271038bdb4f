#include "core/rules/json_fields.h"

#include <nlohmann/json.hpp>

#include "core/rules/rule_values.h"

namespace nowcalls::core {

using nlohmann::json;

const json* JsonFields::Find(const char* key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const json* JsonFields::FindSet(const char* key) const {
  const json* value = Find(key);
  return value == nullptr || IsUnset(*value) ? nullptr : value;
}

// The first error wins: later ones may follow from the default that it left. Reading goes on, so a
// parser is a plain list of fields.
void JsonFields::Fail(const char* key, std::string_view why) {
  if (error_->empty()) *error_ = prefix_ + key + suffix_ + " " + std::string(why);
}

void JsonFields::String(const char* key, size_t bytes_max, std::string* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  if (!value->is_string()) return Fail(key, "must be a string, got " + ExcerptOf(*value));
  if (value->get_ref<const std::string&>().size() > bytes_max) {
    return Fail(key, "must be at most " + std::to_string(bytes_max) + " bytes long");
  }
  *out = value->get<std::string>();
}

void JsonFields::Bool(const char* key, bool* out) {
  const json* value = FindSet(key);
  if (value == nullptr) return;
  const auto v = BooleanOf(*value);
  if (!v.has_value()) return Fail(key, "must be true or false, got " + ExcerptOf(*value));
  *out = *v;
}

void JsonFields::Number(const char* key, double* out) {
  const json* value = FindSet(key);
  if (value == nullptr) return;
  const auto v = NumberOf(*value);
  if (!v.has_value()) return Fail(key, "must be a number, got " + ExcerptOf(*value));
  *out = *v;
}

void JsonFields::Count(const char* key, double* out) {
  if (FindSet(key) == nullptr) return Fail(key, "is missing; it must be >= 0");
  Number(key, out);
  // Also after a failed Number, whose error stands.
  if (!(*out >= 0)) Fail(key, "must be >= 0");
}

std::optional<int64_t> JsonFields::IntegerIn(const char* key, int64_t min, int64_t max) {
  const json* value = FindSet(key);
  if (value == nullptr) return std::nullopt;
  const auto v = IntegerOf(*value);
  if (v.has_value() && *v >= min && *v <= max) return v;
  Fail(key, "must be an integer from " + std::to_string(min) + " to " + std::to_string(max) +
                ", got " + ExcerptOf(*value));
  return std::nullopt;
}

std::string ExcerptOf(const json& value) {
  constexpr size_t kExcerptBytes = 60;
  // ASCII: the cut below may not divide a character.
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kExcerptBytes) text = text.substr(0, kExcerptBytes) + "...";
  return text;
}

}  // namespace nowcalls::core
