// Target: a server that can be measured: how it is made ready, asked, and left.
//
// Thread: the main one. The calls that talk to the server wait for its answers, each for a few
// seconds at most; what is measured talks through the protocols, with the driver's own I/O.
#ifndef NOWCALLS_BENCH_TARGET_H_
#define NOWCALLS_BENCH_TARGET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/protocol.h"
#include "nowcalls/status.h"

namespace nowcalls::bench {

// What a figure is worth nothing without.
struct ServerFacts {
  std::string version;
  std::string durability;
};

class Target {
 public:
  virtual ~Target() = default;

  // Finds out the facts, and makes it possible to acquire `flows`. What was prepared before an
  // error is left to CleanUp.
  virtual Status Prepare(const std::vector<Flow>& flows) = 0;
  const ServerFacts& facts() const { return facts_; }

  // For a connection with at most `lanes` requests in flight. REQUIRES: Prepare was ok.
  virtual std::unique_ptr<Protocol> NewProtocol(uint32_t lanes) = 0;

  // Takes back what Prepare did.
  virtual Status CleanUp() = 0;

 protected:
  ServerFacts facts_;
};

std::unique_ptr<Target> MakeTarget(const Options& options);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_TARGET_H_
