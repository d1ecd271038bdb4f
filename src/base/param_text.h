// Values of parameters as text: what rule files hold and people read.
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

// "int", "boolean", "string": Java's names.
std::string_view ParamTypeName(ParamType type);

// Numbers are decimal, a boolean is true or false in any case. nullopt: the text is no value of the
// type, or not a finite one, or a string longer than kParamBytesMax.
std::optional<ParamValue> ParamFromText(ParamType type, std::string_view text);

// An integer of unknown width, as MessagePack clients send it: an int if 32 bits hold it, else a
// long.
ParamValue IntegerParam(int64_t value);

// The shortest text that ParamFromText reads as the same value. REQUIRES: bytes of the type's
// width.
std::string ParamText(const Param& param);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_PARAM_TEXT_H_
