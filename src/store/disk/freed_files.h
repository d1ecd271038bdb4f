// FreedFiles: deletes files, and frees their blocks a little at a time.
//
// The blocks of a file are freed when its last name and its last user are gone. Freeing many at
// once holds up the syncs of other files, on some disks by a millisecond for each MiB. So a file is
// opened, loses its name, and is cut from its end, piece by piece with pauses. A file that others
// have open, or that has a second name, is left to the last of them.
//
// Thread: Delete from any. A thread of its own, "nc-free", cuts the files; the first large file
// starts it.
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

// How long to wait before the next piece while `bytes` are to be freed: some 32 MB a second, and
// all within some two seconds.
std::chrono::microseconds FreePause(uint64_t bytes);

class FreedFiles {
 public:
  // Deletes through `files`. `sync_names` makes the names in the directory durable, and reports a
  // failure itself.
  FreedFiles(std::shared_ptr<rocksdb::FileSystem> files,
             std::function<rocksdb::IOStatus()> sync_names);
  ~FreedFiles();
  FreedFiles(const FreedFiles&) = delete;
  FreedFiles& operator=(const FreedFiles&) = delete;

  // The file has no name any more when this returns OK, as with files->DeleteFile.
  rocksdb::IOStatus Delete(const std::string& path, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context);

  // Bytes of deleted files that are not free yet.
  uint64_t bytes_left();

  // Frees the rest without pauses, and deletes later files at once. For a disk where room is
  // scarcer than the time of a sync.
  void FreeAtOnce(bool on);

  // Ends the thread. Frees the rest at once, and later files too.
  void Stop();

 private:
  struct Freed {
    int fd;
    uint64_t bytes;
  };

  // -1: the file is small, or in use: delete it at once.
  int OpenIfLarge(const std::string& path, uint64_t* bytes);
  void Take(Freed freed);
  void Run();
  void CutAndClose(const Freed& freed, uint64_t bytes_to_cut);
  // False: it is time to stop.
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
