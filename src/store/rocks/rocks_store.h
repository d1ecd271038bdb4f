// RocksStore: a server's ledger in RocksDB, at DATA_DIR/ledger. Tools use LedgerReader.
//
// Thread: Open and Accept on the starting thread; CopyTo on any; Close alone; the rest as store.h
// says.
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

// In every mode a process's first batch is synced (FORMAT.md, How recovery reads it).
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
  // Called once, on RocksDB's thread or within Commit. The process must end.
  std::function<void(Status)> on_background_error;
  // Left free by CopyTo on the ledger's file system, if above kRoomLeftBytes.
  uint64_t copy_leaves_bytes = 0;
  // Below this much free, deleted files are freed at once.
  uint64_t nearly_full_bytes = 0;
  // For a new ledger; else Open draws a key.
  std::optional<ledger::Format> format = {};
  rocksdb::Env* env = nullptr;  // For tests that inject faults; not owned. nullptr: the real disk.
};

class RocksStore : public Store, public CopySource {
 public:
  // Opens or formats the ledger. Errors with advice: kFailedPrecondition (format version),
  // kCorruption (names the file), kIoError.
  static Result<std::unique_ptr<RocksStore>> Open(std::unique_ptr<LedgerLock> lock,
                                                  const RocksStoreOptions& options);
  // Takes the lock first, with its errors.
  static Result<std::unique_ptr<RocksStore>> Open(const std::string& data_dir,
                                                  const RocksStoreOptions& options);

  ~RocksStore() override;

  Status Load(ledger::EntityVisitor* visitor) override;

  // Call once the load is proved; a store destroyed before leaves the directory as found. Commit
  // and Close imply it, but only Accept makes families that an older format lacks: call it before
  // raising the format. kIoError.
  Status Accept();

  // Append applies, too: RocksDB writes log and tables at once. Read shows nothing.
  Status Append(const ledger::SealedBatch& batch) override { return CommitTelling(batch, {}); }
  Status Apply(const ledger::SealedBatch& batch) override;
  Status CommitTelling(const ledger::SealedBatch& batch,
                       const std::function<void()>& durable) override;
  Status Read(uint64_t from, const BatchSink& sink) override;
  Status Trim(uint64_t /*number*/) override { return {}; }
  uint64_t applied() const override;
  Status Sync() override;
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override;

  // kAlreadyExists: the directory was moved, removed or replaced. Commit and Close check, too.
  Status CheckPlace() override;
  std::optional<uint64_t> FreeBytes() override;
  std::optional<uint64_t> FreeFiles() override;
  bool MayLackBatches() const override;

  // Blocks no commits, however slow `to`. REQUIRES: Accept.
  Result<std::vector<CopiedFile>> CopyTo(const std::string& to,
                                         const std::atomic<bool>& stop) const override;

  // Thread: any. Replaces copy_leaves_bytes and nearly_full_bytes.
  void SetNearlyFull(uint64_t bytes);

  bool formatted_now() const;  // Open found nothing and made a new ledger.
  // Sentences for the operator about what was accepted.
  const std::vector<std::string>& notes() const;

  // Flushes and closes: the next start replays nothing. kIoError. After a failed batch or
  // CheckPlace only closes. Without Close nothing is lost either.
  Status Close();

 private:
  struct Impl;
  explicit RocksStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_ROCKS_STORE_H_
