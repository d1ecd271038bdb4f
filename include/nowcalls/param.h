// Param: a value of a rule's parameter, such as a user or an API key.
//
// Thread: any; plain values. Types and their numbers: Sentinel's PARAM_FLOW requests. Int 5, long 5
// and "5" are three values.
#ifndef NOWCALLS_PARAM_H_
#define NOWCALLS_PARAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "nowcalls/export.h"

namespace nowcalls {

// The numbers are part of the protocols and of the ledger, and never reused.
enum class ParamType : uint8_t {
  kInt = 0,      // i32
  kLong = 1,     // i64
  kByte = 2,     // i8
  kDouble = 3,   // f64
  kFloat = 4,    // f32
  kShort = 5,    // i16
  kBoolean = 6,  // u8: 0, 1
  kString = 7,   // UTF-8; 0 .. kParamBytesMax bytes
};
inline constexpr int kParamTypeCount = 8;

// Bytes of a number of the type. 0: a string, or no type.
constexpr size_t ParamWidth(ParamType type) {
  switch (type) {
    case ParamType::kByte:
    case ParamType::kBoolean: return 1;
    case ParamType::kShort: return 2;
    case ParamType::kInt:
    case ParamType::kFloat: return 4;
    case ParamType::kLong:
    case ParamType::kDouble: return 8;
    case ParamType::kString: break;
  }
  return 0;
}

// Of one value. A Sentinel frame has no room for more.
inline constexpr size_t kParamBytesMax = 1024;

// A view. `bytes`: numbers big-endian in the width of their type.
struct Param {
  ParamType type = ParamType::kString;
  std::string_view bytes;

  bool operator==(const Param&) const = default;
};

// An owned value.
struct ParamValue {
  ParamType type = ParamType::kString;
  std::string bytes;

  ParamValue() = default;
  ParamValue(ParamType t, std::string b) : type(t), bytes(std::move(b)) {}
  explicit ParamValue(const Param& param) : type(param.type), bytes(param.bytes) {}
  Param view() const { return {type, bytes}; }
  bool operator==(const ParamValue&) const = default;
};

}  // namespace nowcalls

#endif  // NOWCALLS_PARAM_H_
