// MessageSplitter: finds where a MessagePack-RPC message ends in a byte stream, within the limits.
//
// Thread: one at a time. A call costs as much as the bytes that are new, however they arrive: a
// peer that sends one byte a second costs one byte's work a second. It stores nothing of the
// message and allocates nothing, whatever length the bytes claim. Limits are those of
// base/limits.h: bytes, nesting, elements, and no extension types.
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

  // `bytes_max` and `elements_max` bound one message (a client accepts larger answers than the
  // defaults). REQUIRES: elements_max < 2^31.
  explicit MessageSplitter(size_t bytes_max = kMessageBytesMax,
                           uint32_t elements_max = kElementsMax)
      : bytes_max_(bytes_max), elements_max_(elements_max) {}

  // `input` begins with the first byte of a message and holds all bytes of it that have arrived;
  // across calls that return kIncomplete only bytes may be added at its end. On kMessage,
  // *message_bytes is its length and the splitter is ready for the next message. On kInvalid,
  // error() says which limit or byte; the stream cannot be used any more, every later call returns
  // kInvalid too.
  Outcome Next(std::string_view input, size_t* message_bytes);

  // A sentence fragment for the log, e.g. "array of 4294967295 elements exceeds 1024". Empty when
  // nothing is wrong.
  std::string error() const;

  // True when a message has begun and not ended.
  bool in_message() const { return position_ > 0; }

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
  // The head of a value that TakeWholeValues has left: its type byte and length. False when it is
  // not all there yet or, with fault_ set, when it is refused.
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

// With the limits of a server, wherever it splits.
inline MessageSplitter RequestSplitter() { return MessageSplitter(); }

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_SPLITTER_H_
