// RocksStore: the ledger of a server in RocksDB, one column family for each ledger::Family.
//
// The directory is DATA_DIR/ledger. Options and their reasons are in rocks_options.cc and
// src/store/README.md. Tools that only read use LedgerReader.
//
// Thread: Open, Load and Accept on the thread that starts the server; Commit, Sync, CheckPlace and
// FreeBytes on the writer (store.h); Scan on the scan thread; CopyTo on any; Close when no other
// call is under way.
#ifndef NOWCALLS_STORE_ROCKS_ROCKS_STORE_H_
#define NOWCALLS_STORE_ROCKS_ROCKS_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/disk/ledger_lock.h"
#include "store/rocks/copy_source.h"
#include "store/store.h"

namespace rocksdb {
class Env;
}

namespace nowcalls::store {

// The first batch of a process is on disk in every mode: it says from where fences go on, and on
// which boot (ledger/fence_line.h).
enum class Durability {
  kSync,      // Each batch is on disk (fdatasync) before Commit returns. The default.
  kInterval,  // Sync() is called every so often; a power cut loses at most that much. kill -9 loses
              // nothing, since the operating system has the bytes.
  kNone,      // The operating system decides when.
};

struct RocksStoreOptions {
  Durability durability = Durability::kSync;
  size_t write_buffer_bytes = 8 * 1024 * 1024;     // A family's memtable.
  uint64_t wal_bytes_max = 24 * 1024 * 1024;       // Bounds replay at start.
  uint64_t manifest_bytes_max = 16 * 1024 * 1024;  // Behind them a new manifest is begun.
  // Called once, when a write fails: on a RocksDB thread for a background write, inside Commit for
  // the log. The process must end.
  std::function<void(Status)> on_background_error;
  // What CopyTo leaves free on the ledger's own file system, if that is more than kRoomLeftBytes.
  uint64_t copy_leaves_bytes = 0;
  // With less free than this, the room of deleted files is given back at once (FreedFiles).
  uint64_t nearly_full_bytes = 0;
  // Of a ledger that Open makes; without it Open draws a key.
  std::optional<ledger::Format> format = {};
  rocksdb::Env* env = nullptr;  // For tests that inject faults; not owned. nullptr: the real disk.
};

class RocksStore : public Store, public CopySource {
 public:
  // Opens the ledger that `lock` is of, or formats one if there is none. Errors, each with what to
  // do: kFailedPrecondition (another format version), kCorruption (damaged; the file is named),
  // kIoError.
  static Result<std::unique_ptr<RocksStore>> Open(std::unique_ptr<LedgerLock> lock,
                                                  const RocksStoreOptions& options);
  // Takes the lock first; its errors too.
  static Result<std::unique_ptr<RocksStore>> Open(const std::string& data_dir,
                                                  const RocksStoreOptions& options);

  ~RocksStore() override;

  Status Load(LedgerVisitor* visitor) override;

  // To be called when what was loaded has been proved to be complete. Until then the directory has
  // lost nothing; a store that is destroyed before leaves it as it was found. Commit and Close
  // imply it, but for this: it makes the families that a ledger of an earlier format lacks. So it
  // comes before the batch that raises the format. kIoError.
  Status Accept();

  // RocksDB puts a batch into its log and its tables in one write, and replays its log when it is
  // opened. So Append applies, Apply finds its batch there, Read has nothing behind the tables, and
  // RocksDB trims.
  Status Append(const ledger::SealedBatch& batch) override { return CommitTelling(batch, {}); }
  Status Apply(const ledger::SealedBatch& batch) override;
  Status CommitTelling(const ledger::SealedBatch& batch,
                       const std::function<void()>& durable) override;
  Status Read(uint64_t from, const BatchSink& sink) override;
  Status Trim(uint64_t /*number*/) override { return {}; }
  uint64_t applied() const override;
  Status Sync() override;
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override;

  // kAlreadyExists when the ledger's directory was moved, removed or replaced since it was opened.
  // Commit and Close look for themselves.
  Status CheckPlace() override;
  std::optional<uint64_t> FreeBytes() override;
  std::optional<uint64_t> FreeFiles() override;
  bool MayLackBatches() const override;

  // Commits and deletions go on beside it, however slow `to` is. REQUIRES: Accept was called.
  Result<std::vector<CopiedFile>> CopyTo(const std::string& to,
                                         const std::atomic<bool>& stop) const override;

  // Thread: any. What copy_leaves_bytes and nearly_full_bytes are from now on.
  void SetNearlyFull(uint64_t bytes);

  bool formatted_now() const;  // Open found nothing and made a new ledger.
  // What an operator should know of what was opened though it was not refused, as sentences.
  const std::vector<std::string>& notes() const;

  // Flushes the memtables and closes, so that the next start has no log to replay. kIoError. After
  // a failed batch, or when CheckPlace fails, it only closes. A store that is destroyed without it
  // loses nothing either.
  Status Close();

 private:
  struct Impl;
  explicit RocksStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_ROCKS_STORE_H_
