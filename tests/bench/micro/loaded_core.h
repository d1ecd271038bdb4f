// LoadedCore: a core with rules, sessions and live tokens, as a busy server has them. ExpiringCore:
// one whose tokens nobody releases.
//
// Thread: one at a time. The clock of a LoadedCore runs on with its work, a million operations a
// second, so that deadlines spread as they do in a server. Nothing in it is ever due: what is
// measured is the load alone.
#ifndef NOWCALLS_BENCH_MICRO_LOADED_CORE_H_
#define NOWCALLS_BENCH_MICRO_LOADED_CORE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "core/core.h"
#include "core/rules/rule_set.h"
#include "ledger/commit_batch.h"
#include "ledger/entities.h"
#include "ledger/scan.h"

namespace nowcalls::microbench {

// Options with a fixed key, and rules for flows 1 .. `flows` that refuse nobody.
core::CoreOptions BenchOptions();
core::RuleSet BenchRules(uint32_t flows);

class LoadedCore {
 public:
  static constexpr uint32_t kSessions = 64;
  static constexpr uint32_t kOperationsPerBatch = 1000;
  static constexpr int64_t kFullFlow = 1'000'000'000;  // Has a rule that grants nothing.

  // With `request_ids` each acquire has one that was never used before.
  LoadedCore(uint32_t flows, uint32_t live_tokens, bool request_ids);
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

  core::Step step() { return {now_, &batch_}; }
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
  const bool request_ids_;
  uint64_t last_request_id_ = 0;
};

// As many tokens are granted as expire, a step at a time; each lives for as long as its rule lets
// it.
class ExpiringCore {
 public:
  static constexpr uint32_t kTokensPerStep = 1000;  // What a scan finds and a call looks at.

  // REQUIRES: live_tokens is divisible by kTokensPerStep.
  ExpiringCore(uint32_t flows, uint32_t live_tokens);
  ExpiringCore(const ExpiringCore&) = delete;
  ExpiringCore& operator=(const ExpiringCore&) = delete;

  // A step of tokens more, and the time at which as many are due: what a scan then finds.
  void Prepare();
  // The sweep with what Prepare has found, from its request for a scan to the sealed batch.
  void Step();

 private:
  core::Step step() { return {now_, &batch_}; }
  void AcquireStep();
  void Seal();

  uint32_t flows_;
  Prng prng_{1};
  Instant now_{1'000'000};
  ledger::CommitBatch batch_;
  core::Core core_;
  core::SessionSlot session_ = core::kNoSession;
  std::vector<ledger::TokenKey> live_;  // A ring.
  size_t oldest_ = 0;
  ledger::ScanResult found_;
};

// One with so many flows and live tokens. The last one is kept, since a benchmark's function is
// called many times.
LoadedCore& CoreWith(uint32_t flows, uint32_t live_tokens, bool request_ids);

}  // namespace nowcalls::microbench

#endif  // NOWCALLS_BENCH_MICRO_LOADED_CORE_H_
