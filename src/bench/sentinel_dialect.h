// SentinelDialect: frames of Sentinel's clients (wire/SENTINEL.md).
//
// Thread: one at a time. xid = 2 x lane, + 1 of a release. Calls a second are never released.
#ifndef NOWCALLS_BENCH_SENTINEL_DIALECT_H_
#define NOWCALLS_BENCH_SENTINEL_DIALECT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bench/dialect.h"
#include "bench/load_setup.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::bench {

class SentinelDialect : public Dialect {
 public:
  explicit SentinelDialect(std::shared_ptr<LoadSetup> setup) : setup_(std::move(setup)) {}

  void Greet(wire::OutputBuffer* out) override;
  void Acquire(uint32_t lane, uint32_t flow, int64_t wall_ms, wire::OutputBuffer* out) override;
  void Release(uint32_t lane, uint32_t flow, uint64_t token, wire::OutputBuffer* out) override;
  Outcome Take(std::string_view* input, Answer* answer) override;
  std::string error() const override { return "a frame that is no answer"; }

 private:
  static void Read(const wire::sentinel::Response& response, Answer* answer);

  std::shared_ptr<LoadSetup> setup_;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_SENTINEL_DIALECT_H_
