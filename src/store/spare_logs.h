// SpareLogs: makes the file that the next log is written into, filled with zeros, ahead of time.
//
// Thread: Ask, Take and Reuse from any; a thread of its own, "nc-spare", writes the zeros. It is
// started by the first Ask, so a server that writes little has neither the thread nor the file.
//
// It is filled four times as fast as the log of the moment grows, so that it is ready in time, and
// the next one, too. It is made of a log that is needed no more, if there is one: to free the
// blocks of a file, and to take new ones, holds up the syncs of all others (some disks by a
// millisecond for each MiB).
//
// The file is spare_log in the ledger's directory, which RocksDB leaves alone. Logs that wait to
// become one are spare_log.1 and so on. One of these is filled, too, when there is one: where two
// families begin a memtable at nearly the same time, two logs are begun. It is an optimisation and
// nothing else. One that is not ready in time is used for a later log; one that cannot be made is
// not missed, and not tried again for a while.
#ifndef NOWCALLS_STORE_SPARE_LOGS_H_
#define NOWCALLS_STORE_SPARE_LOGS_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <array>
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

#include "store/ledger_lock.h"

namespace nowcalls::store {

// How long to wait before the next piece while there are so many zeros for logs to come, and the
// log of the moment has so many bytes.
std::chrono::microseconds SparePause(uint64_t zeros, uint64_t log_bytes);

class SpareLogs {
 public:
  // `lock` is that of the ledger; it outlives Stop. `bytes` is the least size of a spare; 0: none
  // is ever made. `sync_names` makes the names in the ledger's directory durable, and tells of it
  // where that fails. `log` gets a line for each spare that cannot be made; may be nullptr.
  SpareLogs(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock, uint64_t bytes,
            std::function<rocksdb::IOStatus()> sync_names, std::shared_ptr<rocksdb::Logger> log);
  ~SpareLogs();
  SpareLogs(const SpareLogs&) = delete;
  SpareLogs& operator=(const SpareLogs&) = delete;

  // A log of this size shows that it will be followed by another.
  uint64_t ask_from_bytes() const { return bytes_ / 32; }

  // The log of the moment is so long now.
  void LogHas(uint64_t bytes) { log_bytes_.store(bytes, std::memory_order_relaxed); }
  // Has one made, unless there are enough.
  void Ask();
  bool ready();

  // Makes the spare the file at `path`, to be written from its beginning on, over so many `zeros`.
  // NotFound: there is none. Another failure: it is unknown whether the name would survive a power
  // cut. REQUIRES: the ledger is still ours.
  rocksdb::IOStatus Take(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSWritableFile>* file, uint64_t* zeros);

  // Takes the log at `path`, closed and needed no more, of which the first `written` bytes are not
  // zeros: there is no such file when it returns true. False: it is still there, since there are
  // enough, or the disk has little room. REQUIRES: the ledger is still ours.
  bool Reuse(const std::string& path, uint64_t written);

  // The database is being closed: logs need no more zeros, and nothing is reused.
  void BeginStop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

  // The paths of what a process left that was killed. REQUIRES: Ask was never called.
  std::vector<std::string> LeftOver() const;

  // Ends the thread and removes the spare, and what was to be one. None is made afterwards.
  // REQUIRES: the database is closed.
  void Stop();

 private:
  // A log that waits to become a spare.
  struct Used {
    size_t place = 0;      // Which of the names of such.
    uint64_t written = 0;  // Behind it are zeros.
  };
  static constexpr size_t kUsedMax = 6;
  struct Spare {
    std::string path;  // Empty: none.
    uint64_t zeros = 0;
    std::optional<size_t> place = std::nullopt;  // If it is at one of a log that waited.
  };
  static constexpr size_t kSparesMax = 2;

  std::string UsedPath(size_t place) const { return path_ + "." + std::to_string(place + 1); }
  std::optional<size_t> ReservePlace();
  void FreePlace(size_t place);
  // REQUIRES: mutex_ is held, as for the next one.
  bool WantsSpare() const;
  uint64_t zeros_ready() const;
  std::optional<Used> NextUsed();
  void Discard(const Used& used);
  void Run();
  // `name_taken`: there is a spare_log.
  rocksdb::IOStatus Make(bool name_taken, Spare* made);
  rocksdb::IOStatus MakeNew();
  // Makes a spare of it at `path`, of so many `bytes`; 0: it is none that can be used.
  rocksdb::IOStatus Renew(const Used& used, const std::string& path, uint64_t* bytes);
  // Zeros for the first `bytes`, in pieces.
  rocksdb::IOStatus Fill(uint64_t bytes, uint64_t size, rocksdb::FSWritableFile* file);
  rocksdb::IOStatus CheckRoom() const;
  // False: it is time to stop.
  bool PauseBehind(uint64_t zeros);
  void Remove(const std::string& path) const;

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const LedgerLock* const lock_;
  const std::string path_;
  const uint64_t bytes_;
  const std::function<rocksdb::IOStatus()> sync_names_;
  const std::shared_ptr<rocksdb::Logger> log_;
  std::atomic<uint64_t> log_bytes_{0};
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;  // Guarded by mutex_, as are the next five. Until it is made.
  std::vector<Spare> ready_;
  std::vector<Used> used_;
  std::array<bool, kUsedMax> places_taken_{};
  bool stop_ = false;
  int64_t not_before_ns_ = 0;  // CLOCK_MONOTONIC.
  std::thread thread_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SPARE_LOGS_H_
