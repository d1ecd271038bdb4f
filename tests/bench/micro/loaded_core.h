// LoadedCore: a core with rules, sessions and live tokens, as a busy server has them.
//
// Thread: one at a time. Its clock runs on with its work, a million operations a second, so that
// deadlines spread as they do in a server. Nothing is ever due: what is measured is the load alone.
#ifndef NOWCALLS_BENCH_MICRO_LOADED_CORE_H_
#define NOWCALLS_BENCH_MICRO_LOADED_CORE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "core/core.h"
#include "ledger/commit_batch.h"

namespace nowcalls::microbench {

// Options with a fixed key, and rules for flows 1 .. `flows` that refuse nobody.
core::CoreOptions BenchOptions();
core::RuleSet BenchRules(uint32_t flows);

class LoadedCore {
 public:
  static constexpr uint32_t kSessions = 64;
  static constexpr uint32_t kOperationsPerBatch = 1000;
  static constexpr int64_t kFullFlow = 1'000'000'000;  // Has a rule that grants nothing.

  LoadedCore(uint32_t flows, uint32_t live_tokens);
  LoadedCore(const LoadedCore&) = delete;
  LoadedCore& operator=(const LoadedCore&) = delete;

  // Two operations: some token is released and another one granted in its place.
  void ReplaceOne();
  // One operation each.
  void KeepOne();
  void RefuseOne();

 private:
  struct Held {
    TokenId token;
    core::SessionSlot session = core::kNoSession;
  };

  core::Turn turn() { return {now_, &batch_}; }
  Held Acquire();  // Of some flow.
  Held AcquireOf(int64_t flow);
  void Release(const Held& held);
  // A token, whichever. What it takes to find the next one is asked of the memory ahead of time,
  // so that this list, which a server does not have, costs the measurement little.
  Held& NextHeld();
  void Count(uint32_t operations);
  void Seal();

  uint32_t flows_;
  Prng prng_{1};
  Instant now_{1'000'000};
  ledger::CommitBatch batch_;
  uint32_t operations_ = 0;  // In the batch.
  core::Core core_;
  std::vector<core::SessionSlot> sessions_;
  std::vector<Held> held_;
  size_t next_held_ = 0;
};

// One with so many flows and live tokens. The last one is kept, since a benchmark's function is
// called many times.
LoadedCore& CoreWith(uint32_t flows, uint32_t live_tokens);

}  // namespace nowcalls::microbench

#endif  // NOWCALLS_BENCH_MICRO_LOADED_CORE_H_
