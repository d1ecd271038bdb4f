// FieldReader: reads fields of one JSON object into plain values, each checked.
//
// Thread: one at a time. Remembers the first field that is wrong and reads on with defaults, so
// that a parser is a plain list of fields. A field that is absent or null leaves its value alone,
// as does a number or boolean that is unset (core/rules/rule_values.h).
#ifndef NOWCALLS_CORE_RULES_FIELD_READER_H_
#define NOWCALLS_CORE_RULES_FIELD_READER_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace nowcalls::core {

class FieldReader {
 public:
  // Messages begin with `prefix`, the key and `suffix`: "clusterConfig." and nothing, or "items."
  // and " of item 3". `error` is set once.
  FieldReader(const nlohmann::json& object, std::string prefix, std::string* error,
              std::string suffix = {})
      : object_(object), prefix_(std::move(prefix)), suffix_(std::move(suffix)), error_(error) {}

  // nullptr for a key that is absent or null: Sentinel's dashboard writes null for what is unset.
  const nlohmann::json* Find(const char* key) const;
  // The same of a number or a boolean.
  const nlohmann::json* FindSet(const char* key) const;

  void Fail(const char* key, std::string_view why);

  void String(const char* key, size_t bytes_max, std::string* out);
  void Bool(const char* key, bool* out);
  void Number(const char* key, double* out);
  // A number that must be there and not negative.
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

// `value` as a message shows it, not longer than a line.
std::string ExcerptOf(const nlohmann::json& value);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_FIELD_READER_H_
