// JsonFields: reads fields of one JSON object into plain values, each checked.
//
// Thread: one at a time. After the first error it reads on with defaults. Absent, null and unset
// (core/rules/rule_values.h) fields leave their value alone.
#ifndef NOWCALLS_CORE_RULES_JSON_FIELDS_H_
#define NOWCALLS_CORE_RULES_JSON_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace nowcalls::core {

class JsonFields {
 public:
  // Messages begin with prefix, key, suffix: "items.", "object", " of item 3".
  JsonFields(const nlohmann::json& object, std::string prefix, std::string* error,
             std::string suffix = {})
      : object_(object), prefix_(std::move(prefix)), suffix_(std::move(suffix)), error_(error) {}

  // nullptr: absent or null.
  const nlohmann::json* Find(const char* key) const;
  // Of a number or a boolean.
  const nlohmann::json* FindSet(const char* key) const;

  void Fail(const char* key, std::string_view why);

  void String(const char* key, size_t bytes_max, std::string* out);
  void Bool(const char* key, bool* out);
  void Number(const char* key, double* out);
  // Required, and not negative.
  void Count(const char* key, double* out);
  template <typename T>
  void Integer(const char* key, int64_t min, int64_t max, T* out) {
    if (const auto value = IntegerIn(key, min, max)) *out = static_cast<T>(*value);
  }

 private:
  std::optional<int64_t> IntegerIn(const char* key, int64_t min, int64_t max);

  const nlohmann::json& object_;
  const std::string prefix_;
  const std::string suffix_;
  std::string* const error_;
};

inline constexpr int64_t kInt32Max = INT32_MAX;

// For messages: up to 60 bytes and "...".
std::string ExcerptOf(const nlohmann::json& value);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_JSON_FIELDS_H_
