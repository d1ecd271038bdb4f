// FreedFiles: deletes files, and frees what they took of the disk a little at a time.
//
// Thread: Delete from any; a thread of its own, "nc-free", cuts the files. It is started by the
// first file that is worth it.
//
// The blocks of a file are freed when its last name and its last user are gone. To free many at
// once holds up the syncs of other files, some disks and file systems by a millisecond for each
// MiB. So a file is opened, loses its name, and is cut from its end, piece by piece with pauses.
// Nobody sees that: what others have open, or what has a second name, is left alone, and freed when
// they are done.
#ifndef NOWCALLS_STORE_FREED_FILES_H_
#define NOWCALLS_STORE_FREED_FILES_H_

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

// How long to wait before the next piece while so many bytes are to be freed: some 32 MB a second,
// and all within some two seconds.
std::chrono::microseconds FreePause(uint64_t bytes);

class FreedFiles {
 public:
  // Deletes by way of `files`. `sync_names` makes it durable that files have no names any more, and
  // tells of it where that fails.
  FreedFiles(std::shared_ptr<rocksdb::FileSystem> files,
             std::function<rocksdb::IOStatus()> sync_names);
  ~FreedFiles();
  FreedFiles(const FreedFiles&) = delete;
  FreedFiles& operator=(const FreedFiles&) = delete;

  // The file has no name any more when this returns OK, as with files->DeleteFile.
  rocksdb::IOStatus Delete(const std::string& path, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context);

  // What is left to free.
  uint64_t bytes_left();

  // Where room is scarce it is worth more than the time of a sync: what is left is freed without
  // pauses, and files that are deleted are freed as any are.
  void FreeAtOnce(bool on);

  // Ends the thread; what is left is freed at once, as are later files.
  void Stop();

 private:
  struct Freed {
    int fd;
    uint64_t bytes;
  };

  // -1: the file is freed as any is.
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

#endif  // NOWCALLS_STORE_FREED_FILES_H_
