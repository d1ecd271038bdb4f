#include "engine/look_ahead.h"

#include <array>

#include "wire/messages.h"
#include "wire/splitter.h"

namespace nowcalls::engine {
namespace {

// As many as a client with a pipeline sends at once; a processor has some dozens of misses on
// their way.
constexpr size_t kMessagesMax = 16;
// Whoever sends longer ones waits for other things.
constexpr size_t kBytesMax = 512;

}  // namespace

size_t LookAhead(std::string_view input, const core::FlowTable& flows) {
  const std::string_view near = input.substr(0, kBytesMax);
  std::array<FlowId, kMessagesMax> wanted;
  size_t wanted_size = 0;
  size_t seen = 0;
  wire::MessageSplitter splitter;
  for (size_t i = 0; i < kMessagesMax; ++i) {
    size_t size = 0;
    const std::string_view rest = near.substr(seen);
    if (splitter.Next(rest, &size) != wire::MessageSplitter::Outcome::kMessage) break;
    if (const auto flow = wire::FlowAhead(rest); flow.has_value()) {
      wanted[wanted_size++] = FlowId{*flow};
      flows.PrefetchPlace(FlowId{*flow});
    }
    seen += size;
  }
  for (size_t i = 0; i < wanted_size; ++i) flows.Prefetch(wanted[i]);
  return seen;
}

}  // namespace nowcalls::engine
