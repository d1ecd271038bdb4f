#include "recovery/replay.h"

#include <string>

#include "ledger/commit_batch.h"

namespace nowcalls::recovery {

Result<bool> Replay::Apply(size_t batches_max) {
  bool more = false;
  const Status read =
      log_->Read(tables_->applied() + 1, [&](const ledger::SealedBatch& batch) -> Status {
        // A failure is how a sink ends the reading.
        more = batches_max == 0;
        if (more) return Status::ResourceExhausted("no more is asked for");
        --batches_max;
        return ApplyNext(batch);
      });
  if (more) return true;
  if (!read.ok()) return read;
  return false;
}

Status Replay::ApplyNext(const ledger::SealedBatch& batch) {
  const uint64_t next = tables_->applied() + 1;
  if (batch.number() != next) {
    return Status::Corruption("the log lacks batch " + std::to_string(next) + ": it shows batch " +
                              std::to_string(batch.number()) + " in its place");
  }
  if (batch.term() < term_) {
    return Status::Corruption("batch " + std::to_string(next) + " of the log has term " +
                              std::to_string(batch.term()) + ", behind one of term " +
                              std::to_string(term_) +
                              ": a writer that was deposed has written to the log");
  }
  const Result<ledger::Seal> seal = ledger::SealOf(batch);
  if (!seal.ok()) return seal.status();
  NOWCALLS_RETURN_IF_ERROR(tables_->Apply(batch));
  term_ = batch.term();
  ledger_ms_ = seal->ledger_ms;
  return {};
}

}  // namespace nowcalls::recovery
