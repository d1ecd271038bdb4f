// LookAhead: begins to load the flows of acquires, and of releases of recent tokens, before these
// requests are handled, and tells how long each is.
//
// Thread: loop. With a hundred thousand flows, the flow of a request is hardly ever in the cache,
// and a read has many requests. While one is handled, memory that the next ones need is on its way:
// first the places that tell where the flows are, then the flows. Nothing depends on what is
// loaded; a request that is overlooked loads its flow itself. Sizes are those that the connection's
// splitter would find.
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

  // A visit to a connection begins.
  void Restart() { next_ = prefetched_ = known_ = 0; }

  // The size of the message that `input` begins with, which is handled next. 0 if the connection's
  // splitter has to tell: flows are few, or the message is cut off, longer than 1 KiB or not
  // allowed. Within a visit, `input` goes on behind the message of the call before, unless that
  // returned 0. REQUIRES: a message begins.
  size_t Next(std::string_view input) {
    if (next_ == known_) {
      if (!books_.flows().many()) return 0;  // Their flows are in the cache.
      Look(input);
      if (known_ == 0) return 0;
    }
    PrefetchUpTo(next_ + kFlowsAhead);
    return messages_[next_++].size;
  }

 private:
  // As many as a client with a pipeline sends at once.
  static constexpr size_t kMessagesMax = 32;
  // A processor has a dozen misses under way at most, and stalls on the next.
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
