// The type bytes of MessagePack (github.com/msgpack/msgpack/blob/master/spec.md).
//
// Thread: any.
#ifndef NOWCALLS_WIRE_FORMAT_H_
#define NOWCALLS_WIRE_FORMAT_H_

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace nowcalls::wire {

inline constexpr uint8_t kPositiveFixintLast = 0x7f;
inline constexpr uint8_t kFixmapFirst = 0x80;
inline constexpr uint8_t kFixmapLast = 0x8f;
inline constexpr uint8_t kFixarrayFirst = 0x90;
inline constexpr uint8_t kNotificationByte = 0x93;  // An array of 3.
inline constexpr uint8_t kRequestByte = 0x94;       // An array of 4; also a response.
inline constexpr uint8_t kFixarrayLast = 0x9f;
inline constexpr uint8_t kFixstrFirst = 0xa0;
inline constexpr uint8_t kFixstrLast = 0xbf;
inline constexpr uint8_t kNilByte = 0xc0;
inline constexpr uint8_t kFalse = 0xc2;
inline constexpr uint8_t kTrue = 0xc3;
inline constexpr uint8_t kBin8 = 0xc4;
inline constexpr uint8_t kBin16 = 0xc5;
inline constexpr uint8_t kBin32 = 0xc6;
inline constexpr uint8_t kExt8 = 0xc7;
inline constexpr uint8_t kExt32 = 0xc9;
inline constexpr uint8_t kFloat32 = 0xca;
inline constexpr uint8_t kFloat64 = 0xcb;
inline constexpr uint8_t kUint8 = 0xcc;
inline constexpr uint8_t kUint16 = 0xcd;
inline constexpr uint8_t kUint32 = 0xce;
inline constexpr uint8_t kUint64 = 0xcf;
inline constexpr uint8_t kInt8 = 0xd0;
inline constexpr uint8_t kInt16 = 0xd1;
inline constexpr uint8_t kInt32 = 0xd2;
inline constexpr uint8_t kInt64 = 0xd3;
inline constexpr uint8_t kFixext1 = 0xd4;
inline constexpr uint8_t kFixext16 = 0xd8;
inline constexpr uint8_t kStr8 = 0xd9;
inline constexpr uint8_t kStr16 = 0xda;
inline constexpr uint8_t kStr32 = 0xdb;
inline constexpr uint8_t kArray16 = 0xdc;
inline constexpr uint8_t kArray32 = 0xdd;
inline constexpr uint8_t kMap16 = 0xde;
inline constexpr uint8_t kMap32 = 0xdf;
inline constexpr uint8_t kNegativeFixintFirst = 0xe0;

inline constexpr int64_t kRequestType = 0;  // First element of a message.
inline constexpr int64_t kResponseType = 1;
inline constexpr int64_t kNotificationType = 2;

constexpr bool IsExtension(uint8_t type) {
  return (type >= kExt8 && type <= kExt32) || (type >= kFixext1 && type <= kFixext16);
}

// Bytes of the length behind the type byte of a long str, bin, array or map; else 0.
constexpr size_t LengthBytes(uint8_t type) {
  switch (type) {
    case kBin8:
    case kStr8: return 1;
    case kBin16:
    case kStr16:
    case kArray16:
    case kMap16: return 2;
    case kBin32:
    case kStr32:
    case kArray32:
    case kMap32: return 4;
    default: return 0;
  }
}

// REQUIRES: `length_bytes` is a LengthBytes above 0, and `in` has as many.
inline uint32_t LoadLength(const char* in, size_t length_bytes) {
  if (length_bytes == 1) return LoadBigEndian<uint8_t>(in);
  if (length_bytes == 2) return LoadBigEndian<uint16_t>(in);
  return LoadBigEndian<uint32_t>(in);
}

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FORMAT_H_
