// Target: a server under measurement: made ready, asked, left.
//
// Thread: the main one. Calls wait for the server's answers, each a few seconds at most.
#ifndef NOWCALLS_BENCH_TARGET_H_
#define NOWCALLS_BENCH_TARGET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/dialect.h"
#include "bench/options.h"
#include "nowcalls/status.h"

namespace nowcalls::bench {

struct ServerFacts {
  std::string version;
  std::string durability;
};

class Target {
 public:
  virtual ~Target() = default;

  // Reads the facts and makes `flows` ready. CleanUp also undoes a failed Prepare.
  virtual Status Prepare(const std::vector<Flow>& flows) = 0;
  const ServerFacts& facts() const { return facts_; }

  // At most `lanes` requests in flight. REQUIRES: Prepare was ok.
  virtual std::unique_ptr<Dialect> NewDialect(uint32_t lanes) = 0;

  virtual Status CleanUp() = 0;

 protected:
  ServerFacts facts_;
};

std::unique_ptr<Target> MakeTarget(const Options& options);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_TARGET_H_
