// LookAhead: prefetches the flows of acquires, and of releases of recent tokens.
//
// Thread: loop. Nothing depends on what is loaded.
#ifndef NOWCALLS_ENGINE_RPC_LOOK_AHEAD_H_
#define NOWCALLS_ENGINE_RPC_LOOK_AHEAD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/books.h"

namespace nowcalls::engine::rpc {

class LookAhead {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): messages_ is written before it is read.
  explicit LookAhead(const core::Books& books) : books_(books) {}

  void Restart() { next_ = prefetched_ = known_ = 0; }  // A visit to a connection begins.

  // The size of the message at the front of `input`. 0: ask the splitter; flows are few, or the
  // message is cut off, over 1 KiB or refused. Within a visit, `input` goes on behind the last
  // message, unless the call returned 0. REQUIRES: a message begins.
  size_t Next(std::string_view input) {
    if (next_ == known_) {
      if (!AreMany(books_.flows())) return 0;  // Their flows are in the cache.
      Look(input);
      if (known_ == 0) return 0;
    }
    PrefetchUpTo(next_ + kFlowsAhead);
    return messages_[next_++].size;
  }

 private:
  static constexpr size_t kMessagesMax = 32;  // A client's pipeline.
  // A core has at most a dozen misses under way, and stalls on the next.
  static constexpr size_t kFlowsAhead = 3;

  struct Message {
    size_t size = 0;
    int64_t flow = 0;       // To acquire; 0: none.
    core::TokenSlot token;  // To release, if it is recent; kNoToken: none.
  };

  void Look(std::string_view input);
  void PrefetchUpTo(size_t last) {
    for (; prefetched_ <= last && prefetched_ < known_; ++prefetched_)
      Prefetch(messages_[prefetched_]);
  }
  void Prefetch(const Message& message) const;

  const core::Books& books_;
  size_t next_ = 0;        // The first message that is not handled.
  size_t prefetched_ = 0;  // The flows of all messages before it are on their way.
  size_t known_ = 0;
  std::array<Message, kMessagesMax> messages_;  // Those before known_ have values.
};

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_LOOK_AHEAD_H_
