// sentinel::Service: shared by Sentinel's connections.
//
// Thread: loop.
#ifndef NOWCALLS_ENGINE_SENTINEL_SERVICE_H_
#define NOWCALLS_ENGINE_SENTINEL_SERVICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/core.h"
#include "engine/driver.h"
#include "engine/outputs.h"
#include "wire/sentinel/frames.h"

namespace nowcalls::engine {
class Identities;
}

namespace nowcalls::engine::sentinel {

// Of all connections since the server started.
struct Counters {
  // By type; the last: types that do not exist.
  std::array<uint64_t, wire::sentinel::kRequestTypeCount + 1> requests{};
  uint64_t malformed = 0;  // Frames that are too short, too long, or whose data is wrong.
};

// The word in `info`.
std::string_view RequestWord(size_t index);

struct Service {
  // `ending` is true once the server ends.
  Service(core::Core* the_core, Outputs* the_outputs, Driver* the_driver,
          Identities* the_identities, const bool* the_ending)
      : core(the_core),
        outputs(the_outputs),
        driver(the_driver),
        identities(the_identities),
        ending(the_ending) {}

  core::Core* const core;
  Outputs* const outputs;
  Driver* const driver;
  Identities* const identities;
  const bool* const ending;
  Counters counters;
  wire::sentinel::ParamRoom params;  // Of the request that is being decoded.
};

}  // namespace nowcalls::engine::sentinel

#endif  // NOWCALLS_ENGINE_SENTINEL_SERVICE_H_
