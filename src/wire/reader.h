// Reader: takes MessagePack values off the front of a byte view, without allocating.
//
// Thread: any. A read that fails consumes nothing and leaves the output alone. Views point into the
// bytes read.
#ifndef NOWCALLS_WIRE_READER_H_
#define NOWCALLS_WIRE_READER_H_

#include <cstdint>
#include <string_view>

#include "wire/format.h"

namespace nowcalls::wire {

enum class Kind : uint8_t {
  kEnd,
  kNil,
  kBool,
  kInt,
  kFloat,
  kStr,
  kBin,
  kArray,
  kMap,
  kExt,
  kReserved
};

// For error messages: "nil", "bool", "int", ...
std::string_view KindName(Kind kind);

class Reader {
 public:
  enum class Outcome : uint8_t {
    kOk,
    kWrongKind,   // The next value is of another kind.
    kOutOfRange,  // An integer that the result type cannot hold.
    kCutOff,      // The bytes end within the value.
  };

  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  Kind Peek() const;  // kEnd when there is no next value.

  // Any encoding of an integer that fits is accepted.
  Outcome ReadInt(int64_t* value) {
    uint8_t small = 0;
    if (!TakeFix(0, kPositiveFixintLast, &small)) return ReadAnyInt(value);
    *value = small;
    return Outcome::kOk;
  }
  Outcome ReadUint(uint64_t* value) {
    uint8_t small = 0;
    if (!TakeFix(0, kPositiveFixintLast, &small)) return ReadAnyUint(value);
    *value = small;
    return Outcome::kOk;
  }
  Outcome ReadBool(bool* value);
  Outcome ReadString(std::string_view* value) {
    const uint8_t length = FixAhead(kFixstrFirst, kFixstrLast);
    if (length == kNoFix || length >= rest_.size()) return ReadAnyString(value);
    *value = rest_.substr(1, length);
    rest_.remove_prefix(size_t{1} + length);
    return Outcome::kOk;
  }
  // The head of an array or map; its elements or pairs are the next values.
  Outcome ReadArray(uint32_t* elements) {
    uint8_t few = 0;
    if (!TakeFix(kFixarrayFirst, kFixarrayLast, &few)) return ReadAnyArray(elements);
    *elements = few;
    return Outcome::kOk;
  }
  Outcome ReadMap(uint32_t* pairs);
  bool TakeNil() {
    uint8_t ignored = 0;
    return TakeFix(kNilByte, kNilByte, &ignored);
  }
  // Takes any value whole, as its bytes. kWrongKind: an extension type or no value.
  Outcome Skip(std::string_view* value);

  std::string_view rest() const { return rest_; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  Outcome ReadAnyInt(int64_t* value);
  Outcome ReadAnyUint(uint64_t* value);
  Outcome ReadAnyString(std::string_view* value);
  Outcome ReadAnyArray(uint32_t* elements);

  static constexpr uint8_t kNoFix = 0xff;

  // The next byte's distance from `first`; kNoFix if not in first..last.
  uint8_t FixAhead(uint8_t first, uint8_t last) const {
    if (rest_.empty()) return kNoFix;
    const auto type = static_cast<uint8_t>(rest_[0]);
    return type >= first && type <= last ? static_cast<uint8_t>(type - first) : kNoFix;
  }
  bool TakeFix(uint8_t first, uint8_t last, uint8_t* behind_first) {
    const uint8_t behind = FixAhead(first, last);
    if (behind == kNoFix) return false;
    *behind_first = behind;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
};

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_READER_H_
