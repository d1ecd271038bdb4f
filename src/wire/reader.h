// Reader: takes MessagePack values off the front of a byte view, without allocating.
//
// Thread: any. It never reads past its end, whatever the bytes are. A read that fails consumes
// nothing and leaves the output alone. Views it hands out point into the bytes it reads.
#ifndef NOWCALLS_WIRE_READER_H_
#define NOWCALLS_WIRE_READER_H_

#include <cstdint>
#include <string_view>

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

// "nil", "bool", "int", ... as error messages say it.
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

  // The kind of the next value; kEnd when there is none.
  Kind Peek() const;

  // Every encoding of an integer that fits the result is accepted, as the specification has it.
  Outcome ReadInt(int64_t* value);
  Outcome ReadUint(uint64_t* value);
  Outcome ReadBool(bool* value);
  Outcome ReadString(std::string_view* value);
  // The head of an array or map; its elements, or pairs, are the next values.
  Outcome ReadArray(uint32_t* elements);
  Outcome ReadMap(uint32_t* pairs);
  // Takes a nil if it is next.
  bool TakeNil();
  // Takes the next value whole, whatever it is (kWrongKind: extension types and what is no
  // value). *value gets its bytes.
  Outcome Skip(std::string_view* value);

  std::string_view rest() const { return rest_; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_READER_H_
