// LookAhead: begins to load the flows of requests that have arrived and are not handled yet.
//
// Thread: loop. Of a hundred thousand flows the one that is wanted is hardly ever near the
// processor, and a read has many requests; so while one is handled, the memory that the next ones
// will need is on its way. Nothing depends on it: what it overlooks comes later, as it is needed.
#ifndef NOWCALLS_ENGINE_LOOK_AHEAD_H_
#define NOWCALLS_ENGINE_LOOK_AHEAD_H_

#include <cstddef>
#include <string_view>

#include "core/flow_table.h"

namespace nowcalls::engine {

// `input` begins with a message. Returns the bytes of the whole messages that it has looked at: of
// at most 16 messages and 512 bytes; 0 if the first is longer or not all there.
size_t LookAhead(std::string_view input, const core::FlowTable& flows);

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_LOOK_AHEAD_H_
