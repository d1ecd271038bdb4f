// Values of a rule as Sentinel's JSON parser reads them: numbers and booleans may be strings.
//
// Thread: any. The model is TypeUtils of fastjson 1.2.83. Rounds and guesses of that parser are
// refused: 1.5 for an integer, 2 for a boolean, true for a number, "1,5".
#ifndef NOWCALLS_CORE_RULES_RULE_VALUES_H_
#define NOWCALLS_CORE_RULES_RULE_VALUES_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace nowcalls::core {

// null, "", "null" or "NULL": such a number or boolean counts as left out.
bool IsUnset(const nlohmann::json& value);

// 10, 10.0, "10", "10.0" and "1,000". nullopt: no integer of 64 bits with a sign.
std::optional<int64_t> IntegerOf(const nlohmann::json& value);

// 2.5, "2.5", "1e3" and "1,000". nullopt: no finite number.
std::optional<double> NumberOf(const nlohmann::json& value);

// true: true, 1, "true" in any case, "1", "Y", "y", "T".
// false: false, 0, "false" in any case, "0", "F", "f", "N".
// nullopt: anything else.
std::optional<bool> BooleanOf(const nlohmann::json& value);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_VALUES_H_
