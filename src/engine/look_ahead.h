// LookAhead: begins to load the flows of acquires, and of releases of recent tokens, that have
// arrived and are not handled yet, and tells how long these requests are.
//
// Thread: loop. Of a hundred thousand flows the one that is wanted is hardly ever near the
// processor, and a read has many requests; so while one is handled, the memory that the next ones
// will need is on its way, first the places that tell where the flows are, then the flows. Nothing
// depends on what is loaded: what is overlooked comes later, as it is needed. Sizes are those that
// the connection's splitter would find.
#ifndef NOWCALLS_ENGINE_LOOK_AHEAD_H_
#define NOWCALLS_ENGINE_LOOK_AHEAD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/books.h"
#include "core/core.h"

namespace nowcalls::engine {

class LookAhead {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): messages_ costs, and nobody reads it.
  explicit LookAhead(const core::Core& core) : books_(core.books()) {}

  // The size of the message that `input` begins with, which is handled next; 0 if the connection's
  // splitter has to tell: it is not all there, longer than 1 KiB or not allowed, or flows are few.
  // `input` goes on behind the message of the call before, unless that returned 0. REQUIRES: a
  // message begins.
  size_t Next(std::string_view input) {
    if (next_ == known_) {
      if (!books_.flows().many()) return 0;  // The one that is wanted is near.
      Look(input);
      if (known_ == 0) return 0;
    }
    LoadUpTo(next_ + kFlowsAhead);
    return messages_[next_++].size;
  }

 private:
  // As many as a client with a pipeline sends at once.
  static constexpr size_t kMessagesMax = 32;
  // A processor has a dozen of misses on their way, and waits for one that is one too many.
  static constexpr size_t kFlowsAhead = 3;

  struct Message {
    size_t size;
    int64_t flow;           // That is acquired; 0: none.
    core::TokenSlot token;  // That may be released, if it is recent; kNoToken: none.
  };

  void Look(std::string_view input);
  void LoadUpTo(size_t last) {
    for (; loaded_ <= last && loaded_ < known_; ++loaded_) Load(messages_[loaded_]);
  }
  void Load(const Message& message) const;

  const core::Books& books_;
  size_t next_ = 0;    // The first that is not handled.
  size_t loaded_ = 0;  // The flows of all before it are on their way.
  size_t known_ = 0;
  std::array<Message, kMessagesMax> messages_;  // Those before known_ have values.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_LOOK_AHEAD_H_
