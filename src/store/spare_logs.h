// SpareLogs: makes the file that the next log is written into, filled with zeros, ahead of time.
//
// Thread: Ask and Take from any; a thread of its own, "nc-spare", writes the zeros. It is started
// by the first Ask, so a server that writes little has neither the thread nor the file.
//
// It is filled twice as fast as the log of the moment grows, so that it is ready in time.
//
// There is one such file at most: spare_log in the ledger's directory, which RocksDB leaves alone.
// It is an optimisation and nothing else. One that is not ready in time is used for a later log;
// one that cannot be made is not missed, and not tried again for a while.
#ifndef NOWCALLS_STORE_SPARE_LOGS_H_
#define NOWCALLS_STORE_SPARE_LOGS_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "store/ledger_lock.h"

namespace nowcalls::store {

// How long to wait before the next piece of a spare of which so much is filled, while the log of
// the moment has so many bytes.
std::chrono::microseconds SparePause(uint64_t filled_bytes, uint64_t log_bytes);

class SpareLogs {
 public:
  // `lock` is that of the ledger; it outlives Stop. `bytes` is the size of a spare; 0: none is ever
  // made. `log` gets a line for each that cannot be made; may be nullptr.
  SpareLogs(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock, uint64_t bytes,
            std::shared_ptr<rocksdb::Logger> log);
  ~SpareLogs();
  SpareLogs(const SpareLogs&) = delete;
  SpareLogs& operator=(const SpareLogs&) = delete;

  uint64_t bytes() const { return bytes_; }
  // A log of this size shows that it will be followed by another.
  uint64_t ask_from_bytes() const { return bytes_ / 32; }

  // The log of the moment is so long now.
  void LogHas(uint64_t bytes) { log_bytes_.store(bytes, std::memory_order_relaxed); }
  // Has one made, unless there is one.
  void Ask();
  bool ready();

  // Makes the spare the file at `path`, to be written from its beginning on. NotFound: there is
  // none. Another failure: it is unknown whether the name would survive a power cut.
  // REQUIRES: the ledger is still ours.
  rocksdb::IOStatus Take(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSWritableFile>* file);

  // Removes what a process left that was killed. REQUIRES: Ask was never called.
  void RemoveLeftOver();

  // Ends the thread and removes the spare. None is made afterwards.
  void Stop();

 private:
  void Run();
  rocksdb::IOStatus Make();
  rocksdb::IOStatus Fill(rocksdb::FSWritableFile* file);
  rocksdb::IOStatus CheckRoom() const;
  // False: it is time to stop.
  bool PauseBehind(uint64_t filled_bytes);
  void Remove();

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const LedgerLock* const lock_;
  const std::string path_;
  const uint64_t bytes_;
  const std::shared_ptr<rocksdb::Logger> log_;
  std::atomic<uint64_t> log_bytes_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;  // Guarded by mutex_, as are the next three. Until it is made.
  bool ready_ = false;
  bool stop_ = false;
  int64_t not_before_ns_ = 0;  // CLOCK_MONOTONIC.
  std::thread thread_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SPARE_LOGS_H_
