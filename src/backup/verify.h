// Verify: reads a whole ledger and reports all problems and their places.
//
// Thread: one. Memory: flow ids, sessions, 16 bytes a history entry, 8 bytes a token and 24 more
// with a request id. A ledger with duplicates is read twice.
//
// Finds all that makes a server refuse a ledger, and more (FORMAT.md). Tokens below the watermark
// are problems.
#ifndef NOWCALLS_BACKUP_VERIFY_H_
#define NOWCALLS_BACKUP_VERIFY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "backup/problem.h"
#include "ledger/entities.h"
#include "nowcalls/status.h"
#include "store/ledger_source.h"

namespace nowcalls::backup {

struct VerifySummary {
  uint64_t problems = 0;
  uint64_t warnings = 0;                    // Those of kFuture.
  std::map<ProblemKind, uint64_t> by_kind;  // Of both.
  uint64_t rules = 0;
  uint64_t sessions = 0;
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
  uint64_t history = 0;  // Entries.
  uint64_t batch_number = 0;
  std::optional<ledger::Seal> seal;  // None: nothing was ever committed.

  bool ok() const { return problems == 0; }
};

class VerifyWatcher {
 public:
  virtual ~VerifyWatcher() = default;
  virtual void ExpectTokens(uint64_t total) = 0;
  // A failure ends the verification.
  virtual Status OnToken() = 0;
};

// Passes the first `problems_max` problems, and as many warnings, to `sink`; counts the rest. An
// unreadable family is a problem; checks that need its records are skipped. Returns failures of the
// store (kIoError) and of `watcher`.
using ProblemSink = std::function<void(const Problem& problem)>;
Result<VerifySummary> Verify(store::LedgerSource* store, uint64_t problems_max,
                             const ProblemSink& sink, VerifyWatcher* watcher);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_VERIFY_H_
