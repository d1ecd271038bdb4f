#include "wire/splitter.h"

#include <algorithm>

#include "base/bytes.h"
#include "wire/format.h"

namespace nowcalls::wire {
namespace {

// Bytes of a value whose type byte alone tells its size, by type byte; 0 for all others.
constexpr std::array<uint8_t, 256> kWholeBytes = [] {
  std::array<uint8_t, 256> bytes{};
  for (int type = 0; type < 256; ++type) {
    uint8_t& size = bytes[static_cast<size_t>(type)];
    if (type <= kPositiveFixintLast || type >= kNegativeFixintFirst) size = 1;
    if (type >= kFixstrFirst && type <= kFixstrLast)
      size = static_cast<uint8_t>(type - kFixstrFirst + 1);
  }
  bytes[kNilByte] = bytes[kFalse] = bytes[kTrue] = 1;
  bytes[kUint8] = bytes[kInt8] = 2;
  bytes[kUint16] = bytes[kInt16] = 3;
  bytes[kUint32] = bytes[kInt32] = bytes[kFloat32] = 5;
  bytes[kUint64] = bytes[kInt64] = bytes[kFloat64] = 9;
  return bytes;
}();

std::string ByteName(uint64_t byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4 & 0xf], kDigits[byte & 0xf]};
}

}  // namespace

MessageSplitter::Outcome MessageSplitter::Next(std::string_view input, size_t* message_bytes) {
  if (fault_ != Fault::kNone) return Outcome::kInvalid;
  // 1. A message begins: its outer array of 3 or 4 is the first level.
  if (position_ == 0) {
    if (input.empty()) return Outcome::kIncomplete;
    const auto first = static_cast<uint8_t>(input[0]);
    if (first != kNotificationByte && first != kRequestByte) {
      Refuse(Fault::kFirstByte, first);
      return Outcome::kInvalid;
    }
    depth_ = 1;
    due_[1] = first & 0x0fU;
    position_ = 1;
  }
  // 2. Values until every level has all it claims. Progress is kept in members, so a later call
  // goes on where the bytes ended.
  while (depth_ > 0) {
    TakeWholeValues(input);
    if (due_[static_cast<size_t>(depth_)] == 0) {
      --depth_;
      continue;
    }
    if (!TakeHead(input)) {
      return fault_ == Fault::kNone ? Outcome::kIncomplete : Outcome::kInvalid;
    }
  }
  // 3. All values are counted, but the bytes of the last str or bin are still coming: they were
  // skipped unseen. One empty level makes the next call return here.
  if (position_ > input.size()) {
    depth_ = 1;
    return Outcome::kIncomplete;
  }
  *message_bytes = position_;
  position_ = 0;
  return Outcome::kMessage;
}

// Values of the open level whose type byte tells their size. Position and count live in registers:
// members would be written and read again for each value. TakeHead finds what else there is.
void MessageSplitter::TakeWholeValues(std::string_view input) {
  const size_t end = std::min(input.size(), bytes_max_);
  size_t position = position_;
  uint32_t due = due_[static_cast<size_t>(depth_)];
  while (due > 0 && position < end) {
    const size_t bytes = kWholeBytes[static_cast<uint8_t>(input[position])];
    if (bytes == 0 || bytes > bytes_max_ - position) break;
    position += bytes;
    --due;
  }
  position_ = position;
  due_[static_cast<size_t>(depth_)] = due;
}

// False: the head is not all there or, with fault_ set, refused.
bool MessageSplitter::TakeHead(std::string_view input) {
  if (position_ >= bytes_max_) return Refuse(Fault::kSize, 0);
  if (position_ >= input.size()) return false;
  const auto type = static_cast<uint8_t>(input[position_]);
  // TakeWholeValues has left a value of known size: it would exceed bytes_max_.
  if (kWholeBytes[type] > 0) return Refuse(Fault::kSize, 0);
  return TakeLongHead(input, type);
}

// No length is trusted: each is compared with its limit before anything is added to the position.
bool MessageSplitter::TakeLongHead(std::string_view input, uint8_t type) {
  if (type >= kFixmapFirst && type <= kFixmapLast) return Enter(Fault::kMap, type & 0x0fU, 2, 1);
  if (type >= kFixarrayFirst && type <= kFixarrayLast) {
    return Enter(Fault::kArray, type & 0x0fU, 1, 1);
  }
  const size_t length_bytes = LengthBytes(type);
  if (length_bytes == 0) return Refuse(IsExtension(type) ? Fault::kExtension : Fault::kByte, type);
  const size_t head_bytes = 1 + length_bytes;
  if (head_bytes > bytes_max_ - position_) return Refuse(Fault::kSize, 0);
  if (head_bytes > input.size() - position_) return false;
  const uint32_t length = LoadLength(input.data() + position_ + 1, length_bytes);
  if (type == kArray16 || type == kArray32) return Enter(Fault::kArray, length, 1, head_bytes);
  if (type == kMap16 || type == kMap32) return Enter(Fault::kMap, length, 2, head_bytes);
  // A str or bin: its bytes are skipped, whether they have arrived or not.
  if (length > bytes_max_ - position_ - head_bytes) return Refuse(Fault::kSize, 0);
  position_ += head_bytes + length;
  --due_[static_cast<size_t>(depth_)];
  return true;
}

bool MessageSplitter::Enter(Fault too_many, uint32_t elements, uint32_t values_each,
                            size_t head_bytes) {
  if (elements > elements_max_) return Refuse(too_many, elements);
  if (depth_ == kNestingMax) return Refuse(Fault::kNesting, 0);
  position_ += head_bytes;
  --due_[static_cast<size_t>(depth_)];
  ++depth_;
  // At most 2 * elements_max, which the constructor requires to fit 32 bits.
  due_[static_cast<size_t>(depth_)] = elements * values_each;
  return true;
}

// Keeps what error() needs; the text is built only when it is asked for.
bool MessageSplitter::Refuse(Fault fault, uint64_t detail) {
  fault_ = fault;
  fault_detail_ = detail;
  return false;
}

std::string MessageSplitter::error() const {
  const std::string detail = std::to_string(fault_detail_);
  switch (fault_) {
    case Fault::kNone: return "";
    case Fault::kFirstByte:
      return "byte " + ByteName(fault_detail_) +
             " begins no MessagePack-RPC message, which is an array of 3 or 4 (0x93 or 0x94)";
    case Fault::kByte: return "byte " + ByteName(fault_detail_) + " begins no MessagePack value";
    case Fault::kExtension:
      return "extension type (byte " + ByteName(fault_detail_) + ") is not allowed";
    case Fault::kArray:
      return "array of " + detail + " elements exceeds " + std::to_string(elements_max_);
    case Fault::kMap: return "map of " + detail + " pairs exceeds " + std::to_string(elements_max_);
    case Fault::kNesting:
      return "arrays and maps are nested more than " + std::to_string(kNestingMax) + " deep";
    case Fault::kSize: return "message exceeds " + std::to_string(bytes_max_) + " bytes";
  }
  return "";
}

}  // namespace nowcalls::wire
