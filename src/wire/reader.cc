#include "wire/reader.h"

#include <array>

#include "base/bytes.h"
#include "wire/format.h"

namespace nowcalls::wire {
namespace {

// Ranges first; the rest are single bytes.
constexpr Kind KindOf(uint8_t type) {
  if (type <= kPositiveFixintLast || type >= kNegativeFixintFirst) return Kind::kInt;
  if (type <= kFixmapLast) return Kind::kMap;
  if (type <= kFixarrayLast) return Kind::kArray;
  if (type <= kFixstrLast) return Kind::kStr;
  if (type >= kUint8 && type <= kInt64) return Kind::kInt;
  if (IsExtension(type)) return Kind::kExt;
  switch (type) {
    case kNilByte: return Kind::kNil;
    case kFalse:
    case kTrue: return Kind::kBool;
    case kBin8:
    case kBin16:
    case kBin32: return Kind::kBin;
    case kFloat32:
    case kFloat64: return Kind::kFloat;
    case kStr8:
    case kStr16:
    case kStr32: return Kind::kStr;
    case kArray16:
    case kArray32: return Kind::kArray;
    case kMap16:
    case kMap32: return Kind::kMap;
    default: return Kind::kReserved;
  }
}

// One load a value instead of the comparisons of KindOf.
constexpr std::array<Kind, 256> kKinds = [] {
  std::array<Kind, 256> kinds{};
  for (size_t type = 0; type < kinds.size(); ++type)
    kinds[type] = KindOf(static_cast<uint8_t>(type));
  return kinds;
}();

uint8_t TypeByte(std::string_view bytes) { return static_cast<uint8_t>(bytes[0]); }

Kind KindAt(std::string_view bytes) { return bytes.empty() ? Kind::kEnd : kKinds[TypeByte(bytes)]; }

// The hot path: results fit two registers and bytes come by value, because memory that is written
// in parts and read as a whole stalls the processor.

struct Integer {
  uint64_t bits;  // Two's complement when negative.
  Reader::Outcome outcome;
  bool negative;
  uint8_t size;  // With the type byte.
};

// The integer of sizeof(T) bytes behind the type byte.
template <typename T>
Integer FixedInteger(std::string_view bytes) {
  constexpr uint8_t kSize = 1 + sizeof(T);
  if (bytes.size() < kSize) return {0, Reader::Outcome::kCutOff, false, 0};
  const T value = LoadBigEndian<T>(bytes.data() + 1);
  return {static_cast<uint64_t>(value), Reader::Outcome::kOk, value < T{0}, kSize};
}

Integer IntegerAt(std::string_view bytes) {
  if (bytes.empty()) return {0, Reader::Outcome::kCutOff, false, 0};
  const uint8_t type = TypeByte(bytes);
  switch (type) {
    case kUint8: return FixedInteger<uint8_t>(bytes);
    case kUint16: return FixedInteger<uint16_t>(bytes);
    case kUint32: return FixedInteger<uint32_t>(bytes);
    case kUint64: return FixedInteger<uint64_t>(bytes);
    case kInt8: return FixedInteger<int8_t>(bytes);
    case kInt16: return FixedInteger<int16_t>(bytes);
    case kInt32: return FixedInteger<int32_t>(bytes);
    case kInt64: return FixedInteger<int64_t>(bytes);
    default: break;
  }
  if (kKinds[type] != Kind::kInt) return {0, Reader::Outcome::kWrongKind, false, 0};
  // A fixint: the type byte is the value. A negative one is sign-extended.
  const bool negative = type >= kNegativeFixintFirst;
  const uint64_t sign_bits = negative ? ~uint64_t{0xff} : 0;
  return {sign_bits | type, Reader::Outcome::kOk, negative, 1};
}

struct Head {
  Reader::Outcome outcome;
  uint8_t size;  // Of the head itself.
  uint32_t length;
};

// The head of a str, bin, array or map.
Head HeadAt(Kind kind, std::string_view bytes) {
  if (bytes.empty()) return {Reader::Outcome::kCutOff, 0, 0};
  const uint8_t type = TypeByte(bytes);
  if (kKinds[type] != kind) return {Reader::Outcome::kWrongKind, 0, 0};
  const size_t length_bytes = LengthBytes(type);
  // A short one: the length is in the type byte, five bits of a str, four of an array or map.
  if (length_bytes == 0) {
    const uint32_t length = kind == Kind::kStr ? type - kFixstrFirst : type & 0x0fU;
    return {Reader::Outcome::kOk, 1, length};
  }
  if (bytes.size() < 1 + length_bytes) return {Reader::Outcome::kCutOff, 0, 0};
  const auto size = static_cast<uint8_t>(1 + length_bytes);
  return {Reader::Outcome::kOk, size, LoadLength(bytes.data() + 1, length_bytes)};
}

struct Step {
  Reader::Outcome outcome;
  size_t size;    // Of a scalar, or of the head of an array or map.
  uint64_t more;  // Values that follow because of it.
};

// One step of Skip: a scalar whole, but only the head of an array or map.
Step StepAt(std::string_view bytes) {
  const Kind kind = KindAt(bytes);
  size_t size = 1;
  uint64_t more = 0;
  if (kind == Kind::kEnd) return {Reader::Outcome::kCutOff, 0, 0};
  if (kind == Kind::kExt || kind == Kind::kReserved) return {Reader::Outcome::kWrongKind, 0, 0};
  if (kind == Kind::kFloat) size = TypeByte(bytes) == kFloat32 ? 5 : 9;
  if (kind == Kind::kInt) {
    const Integer integer = IntegerAt(bytes);
    return {integer.outcome, integer.size, 0};
  }
  // kStr, kBin, kArray, kMap; extensions and reserved bytes are refused above.
  if (kind >= Kind::kStr) {
    const Head head = HeadAt(kind, bytes);
    if (head.outcome != Reader::Outcome::kOk) return {head.outcome, 0, 0};
    size = head.size;
    if (kind == Kind::kStr || kind == Kind::kBin) size += head.length;
    if (kind == Kind::kArray) more = head.length;
    if (kind == Kind::kMap) more = uint64_t{2} * head.length;
  }
  return {bytes.size() < size ? Reader::Outcome::kCutOff : Reader::Outcome::kOk, size, more};
}

}  // namespace

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kEnd: return "nothing";
    case Kind::kNil: return "nil";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kStr: return "str";
    case Kind::kBin: return "bin";
    case Kind::kArray: return "array";
    case Kind::kMap: return "map";
    case Kind::kExt: return "ext";
    case Kind::kReserved: return "byte 0xc1";
  }
  return "unknown";
}

Kind Reader::Peek() const { return KindAt(rest_); }

// Most values of requests are one byte, or begin with a byte that tells their size. The header
// reads those inline, since a call takes longer than such a read; the functions below read all
// others.

Reader::Outcome Reader::ReadAnyInt(int64_t* value) {
  const Integer integer = IntegerAt(rest_);
  if (integer.outcome != Outcome::kOk) return integer.outcome;
  // Out of range only upwards: the least integer of MessagePack is INT64_MIN.
  if (!integer.negative && integer.bits > static_cast<uint64_t>(INT64_MAX)) {
    return Outcome::kOutOfRange;
  }
  *value = static_cast<int64_t>(integer.bits);
  rest_.remove_prefix(integer.size);
  return Outcome::kOk;
}

Reader::Outcome Reader::ReadAnyUint(uint64_t* value) {
  const Integer integer = IntegerAt(rest_);
  if (integer.outcome != Outcome::kOk) return integer.outcome;
  if (integer.negative) return Outcome::kOutOfRange;
  *value = integer.bits;
  rest_.remove_prefix(integer.size);
  return Outcome::kOk;
}

Reader::Outcome Reader::ReadBool(bool* value) {
  if (rest_.empty()) return Outcome::kCutOff;
  if (Peek() != Kind::kBool) return Outcome::kWrongKind;
  *value = TypeByte(rest_) == kTrue;
  rest_.remove_prefix(1);
  return Outcome::kOk;
}

Reader::Outcome Reader::ReadAnyString(std::string_view* value) {
  const Head head = HeadAt(Kind::kStr, rest_);
  if (head.outcome != Outcome::kOk) return head.outcome;
  // The claimed length is compared with the bytes that have arrived; neither side can overflow.
  if (rest_.size() - head.size < head.length) return Outcome::kCutOff;
  *value = rest_.substr(head.size, head.length);
  rest_.remove_prefix(size_t{head.size} + head.length);
  return Outcome::kOk;
}

Reader::Outcome Reader::ReadAnyArray(uint32_t* elements) {
  const Head head = HeadAt(Kind::kArray, rest_);
  if (head.outcome != Outcome::kOk) return head.outcome;
  *elements = head.length;
  rest_.remove_prefix(head.size);
  return Outcome::kOk;
}

Reader::Outcome Reader::ReadMap(uint32_t* pairs) {
  const Head head = HeadAt(Kind::kMap, rest_);
  if (head.outcome != Outcome::kOk) return head.outcome;
  *pairs = head.length;
  rest_.remove_prefix(head.size);
  return Outcome::kOk;
}

Reader::Outcome Reader::Skip(std::string_view* value) {
  // Works on a copy: a failed read consumes nothing.
  std::string_view rest = rest_;
  // A count of values instead of a stack: nesting does not matter here. Each round takes at least a
  // byte and adds less than 2^33, so the count cannot overflow.
  for (uint64_t values_due = 1; values_due > 0; --values_due) {
    const Step step = StepAt(rest);
    if (step.outcome != Outcome::kOk) return step.outcome;
    rest.remove_prefix(step.size);
    values_due += step.more;
  }
  *value = rest_.substr(0, rest_.size() - rest.size());
  rest_ = rest;
  return Outcome::kOk;
}

}  // namespace nowcalls::wire
