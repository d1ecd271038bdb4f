// SpareLogs: the file of zeros, made ahead of time, that the next log is written over.
//
// An fdatasync behind bytes that replace zeros takes about half the time of one that makes a file
// longer. A thread fills the file of the next log four times as fast as the log of the moment
// grows. It fills a log that is needed no more, if one waits: freeing the blocks of a file, and
// taking new ones, holds up the syncs of all other files.
//
// The spare is an optimisation and nothing else. A spare that is late serves a later log. A spare
// that cannot be made is not missed, and is not tried again for a minute.
//
// The spare is `spare_log` in the ledger's directory, which RocksDB leaves alone. A former log that
// waits to become it is `spare_log.1`.
//
// Thread: any. A thread of its own, "nc-spare", writes the zeros. The first Ask starts it, so a
// server that writes little has neither the thread nor the files.
#ifndef NOWCALLS_STORE_LOG_SPARE_LOGS_H_
#define NOWCALLS_STORE_LOG_SPARE_LOGS_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/disk/ledger_lock.h"

namespace nowcalls::store {

// How long to wait before the next piece of the spare. `zeros`: the bytes of it that are ready.
// `log_bytes`: the length of the log of the moment.
std::chrono::microseconds SparePause(uint64_t zeros, uint64_t log_bytes);

class SpareLogs {
 public:
  // `lock` is that of the ledger; it outlives Stop. `bytes` is the least size of a spare; 0: none
  // is ever made. `sync_names` makes the names in the ledger's directory durable, and reports a
  // failure itself. `log` gets a line for each spare that cannot be made; may be nullptr.
  SpareLogs(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock, uint64_t bytes,
            std::function<rocksdb::IOStatus()> sync_names, std::shared_ptr<rocksdb::Logger> log);
  ~SpareLogs();
  SpareLogs(const SpareLogs&) = delete;
  SpareLogs& operator=(const SpareLogs&) = delete;

  // A log of this size shows that another will follow it.
  uint64_t ask_from_bytes() const { return bytes_ / 32; }

  // The length of the log of the moment, which sets the pace.
  void LogHas(uint64_t bytes) { log_bytes_.store(bytes, std::memory_order_relaxed); }
  // Has a spare made, unless there is one.
  void Ask();
  bool ready();

  // Makes the spare the file at `path`, to be written from its beginning over `zeros` bytes.
  // NotFound: there is none. Another failure: whether the name survives a power cut is unknown.
  // REQUIRES: the ledger is still ours.
  rocksdb::IOStatus Take(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSWritableFile>* file, uint64_t* zeros);

  // Takes the log at `path`, which is closed and needed no more. Behind its first `written` bytes
  // are zeros. True: there is no such file any more. False: the file is still there, since another
  // waits already or the disk has little room. REQUIRES: the ledger is still ours.
  bool Reuse(const std::string& path, uint64_t written);

  // The database is being closed: logs need no more zeros, and nothing is reused.
  void BeginStop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

  // The paths of spares that a killed process left. REQUIRES: Ask and Reuse were never called.
  std::vector<std::string> LeftOver() const;

  // Ends the thread and removes the spare and the log that waits. REQUIRES: the database is closed.
  void Stop();

 private:
  void Run();
  // Makes the spare, of the log that waits or anew. `zeros` gets its length.
  rocksdb::IOStatus Make(uint64_t* zeros);
  // Gives the log that waits the spare's name. False: there is none. `written`: its bytes that are
  // not zeros.
  bool TakeUsed(uint64_t* written);
  // `zeros` stays 0 if somebody reads the former log.
  rocksdb::IOStatus Renew(uint64_t written, uint64_t* zeros);
  rocksdb::IOStatus MakeNew();
  // Writes zeros over the first `bytes` of a file of `size`, in pieces.
  rocksdb::IOStatus Fill(uint64_t bytes, uint64_t size, rocksdb::FSWritableFile* file);
  rocksdb::IOStatus CheckRoom() const;
  // False: it is time to stop.
  bool PauseBehind(uint64_t zeros);
  void Remove(const std::string& path) const;

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const LedgerLock* const lock_;
  const std::string path_;
  const std::string used_path_;
  const uint64_t bytes_;
  const std::function<rocksdb::IOStatus()> sync_names_;
  const std::shared_ptr<rocksdb::Logger> log_;
  std::atomic<uint64_t> log_bytes_{0};
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;        // Until the spare is made. Guarded by mutex_, as are the next three.
  uint64_t ready_zeros_ = 0;  // The length of the spare; 0: there is none.
  bool stop_ = false;
  int64_t not_before_ns_ = 0;  // CLOCK_MONOTONIC.
  // Apart from mutex_: whoever takes a spare does not wait while a former log gets its new name.
  std::mutex used_mutex_;
  std::optional<uint64_t> used_bytes_;  // A log waits; behind so many bytes of it are zeros.
  std::thread thread_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_SPARE_LOGS_H_
