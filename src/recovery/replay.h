// Replay: applies to tables what a log has behind them, for starts and standbys.
//
// Thread: the writer of the tables.
#ifndef NOWCALLS_RECOVERY_REPLAY_H_
#define NOWCALLS_RECOVERY_REPLAY_H_

#include <cstddef>
#include <cstdint>

#include "ledger/sealed_batch.h"
#include "nowcalls/status.h"
#include "store/log.h"
#include "store/tables.h"

namespace nowcalls::recovery {

class Replay {
 public:
  // Both outlive it.
  Replay(store::Log* log, store::Tables* tables) : log_(log), tables_(tables) {}

  // Applies at most `batches_max` batches. True: the log has more. kCorruption: a batch is missing,
  // damaged, or of a term before that of one which this object applied; it is not applied.
  // kFailedPrecondition: the log has forgotten the next one. Other codes: of log and tables.
  Result<bool> Apply(size_t batches_max);

  // Of the last batch that it applied; 0: none.
  uint64_t term() const { return term_; }
  int64_t ledger_ms() const { return ledger_ms_; }

 private:
  Status ApplyNext(const ledger::SealedBatch& batch);

  store::Log* const log_;
  store::Tables* const tables_;
  uint64_t term_ = 0;
  int64_t ledger_ms_ = 0;
};

}  // namespace nowcalls::recovery

#endif  // NOWCALLS_RECOVERY_REPLAY_H_
