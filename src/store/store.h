// Store: a log and its tables on one disk, as a server has them.
//
// Thread: CheckPlace, FreeBytes, FreeFiles and Commit on the writer
// (server/commit/commit_thread.h); the rest as log.h and tables.h say.
#ifndef NOWCALLS_STORE_STORE_H_
#define NOWCALLS_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "ledger/commit_batch.h"
#include "ledger/sealed_batch.h"
#include "nowcalls/status.h"
#include "store/log.h"
#include "store/tables.h"

namespace nowcalls::store {

class LedgerDisk {
 public:
  virtual ~LedgerDisk() = default;

  // Whether an Append would still write to the ledger that was loaded.
  virtual Status CheckPlace() { return {}; }

  // nullopt: unknown. Also before there is a writer.
  virtual std::optional<uint64_t> FreeBytes() { return {}; }
  // Likewise free inodes.
  virtual std::optional<uint64_t> FreeFiles() { return {}; }
};

class Store : public Log, public Tables, public LedgerDisk {
 public:
  Status Sync() override = 0;

  // Append, then Apply.
  Status Commit(const ledger::SealedBatch& batch) { return CommitTelling(batch, {}); }

  // The same. It may call `durable`, if not empty, once on this thread: the batch is in the log,
  // and the store looks at `batch` no more.
  virtual Status CommitTelling(const ledger::SealedBatch& batch,
                               const std::function<void()>& /*durable*/) {
    NOWCALLS_RETURN_IF_ERROR(Append(batch));
    return Apply(batch);
  }
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_STORE_H_
