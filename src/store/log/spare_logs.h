// SpareLogs: the file of zeros, made ahead, that the next log overwrites. A missing spare costs
// time only.
//
// Thread: any. The first Ask starts a thread, "nc-spare", which writes the zeros.
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

// Before the next piece. `zeros`: bytes ready; `log_bytes`: length of the current log.
std::chrono::microseconds SparePause(uint64_t zeros, uint64_t log_bytes);

class SpareLogs {
 public:
  // `lock`: of the ledger; outlives Stop. `bytes`: least size of a spare; 0: none is made.
  // `sync_names` syncs the directory and reports its failures. `log`: a line for each spare not
  // made; may be nullptr.
  SpareLogs(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock, uint64_t bytes,
            std::function<rocksdb::IOStatus()> sync_names, std::shared_ptr<rocksdb::Logger> log);
  ~SpareLogs();
  SpareLogs(const SpareLogs&) = delete;
  SpareLogs& operator=(const SpareLogs&) = delete;

  uint64_t ask_from_bytes() const { return bytes_ / 32; }

  // Sets the pace.
  void LogHas(uint64_t bytes) { log_bytes_.store(bytes, std::memory_order_relaxed); }
  void Ask();
  bool ready();

  // Renames the spare to `path`, to be written over its `zeros` bytes. NotFound: none; else: the
  // name's durability is unknown. REQUIRES: the ledger is still ours.
  rocksdb::IOStatus Take(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSWritableFile>* file, uint64_t* zeros);

  // Takes the closed, obsolete log at `path`; zeros follow its first `written` bytes. False: left
  // in place. REQUIRES: the ledger is still ours.
  bool Reuse(const std::string& path, uint64_t written);

  // No more zeros, no reuse.
  void BeginStop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

  // Spares of a killed process. REQUIRES: before Ask and Reuse.
  std::vector<std::string> LeftOver() const;

  // Ends the thread and removes both files. REQUIRES: the database is closed.
  void Stop();

 private:
  void Run();
  rocksdb::IOStatus Make(uint64_t* zeros);
  bool TakeUsed(uint64_t* written);
  rocksdb::IOStatus Renew(uint64_t written, uint64_t* zeros);
  rocksdb::IOStatus MakeNew();
  rocksdb::IOStatus Fill(uint64_t bytes, uint64_t size, rocksdb::FSWritableFile* file);
  rocksdb::IOStatus CheckRoom() const;
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
  // Not mutex_: taking a spare must not wait for a rename.
  std::mutex used_mutex_;
  std::optional<uint64_t> used_bytes_;  // A log waits; behind so many bytes of it are zeros.
  std::thread thread_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_SPARE_LOGS_H_
