// FreedFiles: deletes files and frees their blocks in pieces. A file with another name or user is
// left to its last user.
//
// Thread: Delete from any. The first large file starts a thread, "nc-free", which cuts.
#ifndef NOWCALLS_STORE_DISK_FREED_FILES_H_
#define NOWCALLS_STORE_DISK_FREED_FILES_H_

#include <rocksdb/file_system.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace nowcalls::store {

// Pause before the next piece with `bytes` to free: 32 MB/s, and all within two seconds.
std::chrono::microseconds FreePause(uint64_t bytes);

class FreedFiles {
 public:
  // Deletes through `files`. `sync_names` syncs the directory and reports its failures.
  FreedFiles(std::shared_ptr<rocksdb::FileSystem> files,
             std::function<rocksdb::IOStatus()> sync_names);
  ~FreedFiles();
  FreedFiles(const FreedFiles&) = delete;
  FreedFiles& operator=(const FreedFiles&) = delete;

  // OK: the name is gone, as with files->DeleteFile.
  rocksdb::IOStatus Delete(const std::string& path, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context);

  uint64_t bytes_left();

  // Frees without pauses, now and later.
  void FreeAtOnce(bool on);

  // Ends the thread; the rest and later files are freed at once.
  void Stop();

 private:
  struct Freed {
    int fd;
    uint64_t bytes;
  };

  int OpenIfLarge(const std::string& path, uint64_t* bytes);
  void Take(Freed freed);
  void Run();
  void CutAndClose(const Freed& freed, uint64_t bytes_to_cut);
  bool Pause();

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::function<rocksdb::IOStatus()> sync_names_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Freed> waiting_;  // Guarded by mutex_, as are the next four.
  uint64_t bytes_left_ = 0;
  size_t files_left_ = 0;
  bool at_once_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_FREED_FILES_H_
