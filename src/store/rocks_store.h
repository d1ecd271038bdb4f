// RocksStore: the ledger in RocksDB, one column family for each ledger::Family.
//
// Threads: Open, Load and Keep on the thread that starts the server; Commit, Sync, CheckPlace and
// FreeBytes on the writer (store.h); Scan on the scan thread; CopyTo on any. Options and their
// reasons are in rocks_options.cc and src/README.md. The directory is DATA_DIR/ledger.
#ifndef NOWCALLS_STORE_ROCKS_STORE_H_
#define NOWCALLS_STORE_ROCKS_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/file_copy.h"
#include "store/ledger_lock.h"
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
  uint64_t manifest_bytes_max = 16 * 1024 * 1024;  // Behind them a new one is begun.
  // Called once, when a write fails: on a RocksDB thread for a background one, inside Commit for
  // the log. The process must end.
  std::function<void(Status)> on_background_error;
  // What CopyTo leaves free on the ledger's own file system, if that is more than kRoomLeftBytes.
  uint64_t copy_leaves_bytes = 0;
  // With less free than this the room of deleted files is given back at once (FreedFiles).
  uint64_t nearly_full_bytes = 0;
  // Of a ledger that Open makes; else one with a key of its own.
  std::optional<ledger::Format> format = {};
  rocksdb::Env* env = nullptr;  // For tests that inject faults; not owned. nullptr: the real one.
};

// How a tool reads a ledger without being its server.
enum class ReadMode {
  kAtRest,        // Nobody has it open.
  kBesideServer,  // A server has it open, perhaps hung: what it had logged at one moment.
};

class RocksStore : public Store {
 public:
  // Opens the ledger that the lock is of, or formats one there if there is none. Errors, each with
  // what to do: kFailedPrecondition (another format version), kCorruption (damaged; the file is
  // named), kIoError.
  static Result<std::unique_ptr<RocksStore>> Open(std::unique_ptr<LedgerLock> lock,
                                                  const RocksStoreOptions& options);
  // Takes the lock first; its errors too.
  static Result<std::unique_ptr<RocksStore>> Open(const std::string& data_dir,
                                                  const RocksStoreOptions& options);

  // Opens for Load and Scan only; Commit and Sync fail with kFailedPrecondition. Changes nothing in
  // the ledger's directory. kBesideServer when FindLedgerHolder names somebody, kAtRest otherwise.
  // Load then shows all tokens, where a server's Load starts at the watermark. kNotFound when there
  // is no ledger, kInvalidArgument when `data_dir` cannot be a data directory, kUnavailable when a
  // busy server changes it faster than it can be read, else as Open.
  static Result<std::unique_ptr<RocksStore>> OpenForRead(const std::string& data_dir);
  // The same of the ledger whose lock this process has, so that nobody writes it: kAtRest.
  static Result<std::unique_ptr<RocksStore>> OpenForRead(const LedgerLock& lock);

  // For salvage: opens the copy of a ledger in `dir` as OpenForRead would, but without its checks,
  // and so that Load goes on behind what cannot be read.
  static Result<std::unique_ptr<RocksStore>> OpenCopy(const std::string& dir);

  ~RocksStore() override;

  Status Load(LedgerVisitor* visitor) override;
  Status Commit(const ledger::CommitBatch& batch) override { return CommitTelling(batch, {}); }
  Status CommitTelling(const ledger::CommitBatch& batch,
                       const std::function<void()>& durable) override;
  Status Sync() override;
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override;

  // Whether the ledger is where it was opened: kAlreadyExists when its directory was moved, removed
  // or replaced. Commit and Close look for themselves. The writer.
  Status CheckPlace() override;

  std::optional<uint64_t> FreeBytes() override;

  // To be called when what was loaded has been proved to be complete. Until then the directory has
  // lost nothing; a store that is destroyed before leaves it as it was found. Commit and Close
  // imply it. kIoError.
  Status Keep();

  // Makes a copy of the ledger in `to`, a directory without files of one: what a crash at some
  // moment of the call would have left, with all that was committed before it. Commits go on beside
  // it, and so do deletions, however slow `to` is. The files and their names are on disk when it
  // returns them. kIoError; kUnavailable: `stop` was set.
  // REQUIRES: Keep was called, or the store is for reading; then kFailedPrecondition if a server
  // has the ledger open.
  Result<std::vector<CopiedFile>> CopyTo(const std::string& to,
                                         const std::atomic<bool>& stop) const;

  ReadMode read_mode() const;  // Of a store from OpenForRead.
  bool MayLackBatches() const override;
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

#endif  // NOWCALLS_STORE_ROCKS_STORE_H_
