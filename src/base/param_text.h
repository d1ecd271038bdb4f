// Values of parameters as text, for rule files and people.
//
// Thread: any; pure.
#ifndef NOWCALLS_BASE_PARAM_TEXT_H_
#define NOWCALLS_BASE_PARAM_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nowcalls/param.h"

namespace nowcalls {

// Java's names: "int", "boolean", "string".
std::string_view ParamTypeName(ParamType type);

// Decimal numbers; true or false in any case. nullopt: not of the type, not finite, or a string
// above kParamBytesMax.
std::optional<ParamValue> ParamFromText(ParamType type, std::string_view text);

// From MessagePack: an int if 32 bits hold it, else a long.
ParamValue IntegerParam(int64_t value);

// The shortest that ParamFromText reads back. REQUIRES: bytes of the type's width.
std::string ParamText(const Param& param);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_PARAM_TEXT_H_
