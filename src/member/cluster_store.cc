#include "member/cluster_store.h"

#include <string>

namespace nowcalls::member {

// After `durable` the batch may be another one, so the tables get a copy.
Status ClusterStore::CommitTelling(const ledger::SealedBatch& batch,
                                   const std::function<void()>& durable) {
  const std::string copy(durable ? batch.bytes() : std::string_view());
  NOWCALLS_RETURN_IF_ERROR(log_->Append(batch));
  if (!durable) return Apply(batch);
  durable();
  const Result<ledger::SealedBatch> copied = ledger::SealedBatch::Parse(copy);
  if (!copied.ok()) return copied.status();
  return Apply(*copied);
}

Status ClusterStore::Apply(const ledger::SealedBatch& batch) {
  if (batch.number() <= local_->applied()) return {};
  NOWCALLS_RETURN_IF_ERROR(local_->Commit(batch));
  last_ = batch.number();
  return {};
}

Status ClusterStore::Sync() {
  const uint64_t applied = local_->applied();
  NOWCALLS_RETURN_IF_ERROR(local_->Sync());
  synced_ = applied;
  return {};
}

}  // namespace nowcalls::member
