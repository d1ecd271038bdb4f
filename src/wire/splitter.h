// MessageSplitter: finds where a MessagePack-RPC message ends in a byte stream.
//
// Thread: one at a time. Limits (base/limits.h): bytes, nesting, elements; no extension types.
#ifndef NOWCALLS_WIRE_SPLITTER_H_
#define NOWCALLS_WIRE_SPLITTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace nowcalls::wire {

class MessageSplitter {
 public:
  enum class Outcome { kMessage, kIncomplete, kInvalid };

  // Bounds of one message; clients accept larger answers. REQUIRES: elements_max < 2^31.
  explicit MessageSplitter(size_t bytes_max = kMessageBytesMax,
                           uint32_t elements_max = kElementsMax)
      : bytes_max_(bytes_max), elements_max_(elements_max) {}

  // `input` begins with a message and holds all bytes of it that have arrived; after kIncomplete
  // only its end may grow. kInvalid: error() names the limit or byte; later calls are kInvalid.
  Outcome Next(std::string_view input, size_t* message_bytes);

  // For the log. Empty: nothing is wrong.
  std::string error() const;

  bool in_message() const { return position_ > 0; }  // A message has begun and not ended.

 private:
  enum class Fault : uint8_t {
    kNone,
    kFirstByte,
    kByte,
    kExtension,
    kArray,
    kMap,
    kNesting,
    kSize
  };

  void TakeWholeValues(std::string_view input);
  bool TakeHead(std::string_view input);
  bool TakeLongHead(std::string_view input, uint8_t type);
  bool Enter(Fault too_many, uint32_t elements, uint32_t values_each, size_t head_bytes);
  bool Refuse(Fault fault, uint64_t detail);

  size_t bytes_max_;
  uint32_t elements_max_;
  size_t position_ = 0;  // Where the next value begins; bytes of a str or bin are skipped unseen.
  int depth_ = 0;        // Arrays and maps that are open.
  std::array<uint32_t, kNestingMax + 1> due_{};  // Values still due, by depth; [0] is unused.
  Fault fault_ = Fault::kNone;
  uint64_t fault_detail_ = 0;
};

inline MessageSplitter RequestSplitter() { return MessageSplitter(); }

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_SPLITTER_H_
