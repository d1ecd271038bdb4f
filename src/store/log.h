// Log: the batches of a ledger in their order.
//
// Thread: the writer, one thread at a time; Read and MayLackBatches before there is one.
#ifndef NOWCALLS_STORE_LOG_H_
#define NOWCALLS_STORE_LOG_H_

#include <cstdint>
#include <functional>

#include "ledger/sealed_batch.h"
#include "nowcalls/status.h"

namespace nowcalls::store {

class Log {
 public:
  using BatchSink = std::function<Status(const ledger::SealedBatch&)>;

  virtual ~Log() = default;

  // Puts `batch` behind the last one and, as the durability asks, makes it durable. After a failure
  // no batch is taken any more: only recovery may decide whether this one survives.
  // kInvalidArgument: its number is not the next one. kFailedPrecondition: another writer has
  // claimed the log.
  virtual Status Append(const ledger::SealedBatch& batch) = 0;

  // Makes durable what was appended without syncing.
  virtual Status Sync() = 0;

  // Shows each batch from number `from` on, in order; a failure of `sink` ends it.
  // kFailedPrecondition: batches from there on were trimmed.
  virtual Status Read(uint64_t from, const BatchSink& sink) = 0;

  // The batches up to `number` are durable in tables, so the log may forget them.
  virtual Status Trim(uint64_t number) = 0;

  // Whether answered batches may be missing, although the machine was not booted since.
  virtual bool MayLackBatches() const { return false; }

  // Whether no boot of this machine takes answered batches from it.
  virtual bool OutlivesMachine() const { return false; }
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_H_
