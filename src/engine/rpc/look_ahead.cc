#include "engine/rpc/look_ahead.h"

#include "wire/messages.h"
#include "wire/splitter.h"

namespace nowcalls::engine::rpc {
namespace {

// Requests behind this are not looked at; a client that sends longer ones waits for other things.
constexpr size_t kBytesMax = 1024;

}  // namespace

// With a hundred thousand flows a request's flow is hardly ever in the cache, and a read has many
// requests. The places that tell where flows are begin to load here; Prefetch follows them to the
// flows when their requests are a few away. A request that is overlooked loads its flow itself.
void LookAhead::Look(std::string_view input) {
  const std::string_view near = input.substr(0, kBytesMax);
  next_ = prefetched_ = known_ = 0;
  size_t seen = 0;
  wire::MessageSplitter splitter = wire::RequestSplitter();
  while (known_ < kMessagesMax) {
    Message& message = messages_[known_];
    const std::string_view rest = near.substr(seen);
    // Cut off or refused: the connection's own splitter will say so when its turn comes.
    if (splitter.Next(rest, &message.size) != wire::MessageSplitter::Outcome::kMessage) break;
    const wire::Subject subject = wire::SubjectAhead(rest.substr(0, message.size));
    message.flow = subject.flow;
    message.token = core::kNoToken;
    if (subject.flow != 0) books_.flows().PrefetchPlace(FlowId{subject.flow});
    if (subject.token != 0) {
      const Fence fence = books_.ids().ToFenceAhead(TokenId{subject.token});
      message.token = books_.tokens().GuessRecent(fence.value);
    }
    seen += message.size;
    ++known_;
  }
}

void LookAhead::Prefetch(const Message& message) const {
  const core::FlowTable& flows = books_.flows();
  if (message.flow != 0) flows.Prefetch(FlowId{message.flow});
  if (message.token == core::kNoToken) return;
  // The token may have ended since, or its slot may hold another. Its slot and the slot of its flow
  // exist in any case.
  const core::FlowSlot flow = books_.tokens().at(message.token).flow_slot;
  if (flow != core::kNoFlow) flows.PrefetchAt(flow);
}

}  // namespace nowcalls::engine::rpc
