// Verify: reads a whole ledger and says everything that is wrong with it, and where.
//
// Thread: one. Holds the rules' flow ids, the sessions, fence and number of each entry of the
// history, and 8 bytes a token: the fences, sorted at the end to find those that occur twice. The
// seal tells how many there are, so they are allocated once. A token with a request id takes 24
// bytes more, for the same purpose. Token ids need no memory: an id is a permutation of the fence,
// so that equal ids with different fences are found one by one. Only a ledger with duplicates is
// read a second time, to name the records.
//
// All that makes a server refuse a ledger (FORMAT.md, "How recovery reads it") is a problem here.
//
// Beyond that every record decodes, the relations between records are checked (FORMAT.md). Tokens
// below the watermark, which the store hides from a server, are shown to who only reads, and are a
// problem of their own (kWatermark).
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

// Is told how far a verification has come, and may end it.
class VerifyWatcher {
 public:
  virtual ~VerifyWatcher() = default;
  virtual void ExpectTokens(uint64_t total) = 0;
  // One more token. A failure ends the verification with it.
  virtual Status OnToken() = 0;
};

// Shows the first `problems_max` problems, and as many warnings, to `sink` as they are found, and
// counts the rest. Damage that keeps the store from reading a family on is a problem too; the
// families behind it are read, and what needs the missing records (the seal's sums, the sessions of
// tokens) is left unchecked. Failures of the store, kIoError for one, and of `watcher` are
// returned.
using ProblemSink = std::function<void(const Problem& problem)>;
Result<VerifySummary> Verify(store::LedgerSource* store, uint64_t problems_max,
                             const ProblemSink& sink, VerifyWatcher* watcher);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_VERIFY_H_
