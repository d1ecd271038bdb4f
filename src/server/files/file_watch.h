// FileWatch: reads files again when one of them changes (directory_watches.h), and on demand.
//
// Thread: loop; looks and `read` run on libuv's workers, one at a time. Start reads once.
#ifndef NOWCALLS_SERVER_FILES_FILE_WATCH_H_
#define NOWCALLS_SERVER_FILES_FILE_WATCH_H_

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/files/directory_watches.h"
#include "server/files/file_look.h"

namespace nowcalls::server {

struct FileWatchOptions {
  uint64_t settle_ms = 200;        // From the last change to the look.
  uint64_t settle_ms_max = 2000;   // From the first, for files that do not come to rest.
  uint64_t poll_ms = 2000;         // While a directory cannot be watched.
  uint64_t idle_look_ms = 30'000;  // While all are.
  size_t watches_max = 64;
};

class FileWatch {
 public:
  // `asked`: ReadNow was called.
  using Take = std::function<void(bool asked)>;  // On the loop.
  using Read = std::function<Take()>;            // On a worker. Returns none that is empty.
  // A directory that is not watched, once.
  using Unwatched = std::function<void(const std::string& directory, const std::string& why)>;

  FileWatch(std::vector<std::string> paths, Read read, Unwatched unwatched,
            const FileWatchOptions& options = {});
  // REQUIRES: never started; or Stop was called, and the loop ended all work and handles.
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  void Start(uv_loop_t* loop);
  // Reads soon, changed or not; again if a read is under way.
  void ReadNow();
  // Nothing is taken any more. Before Start: does nothing.
  void Stop();
  bool idle() const { return !looking_; }

 private:
  // The later, the more the next look does.
  enum class Due { kNo, kIfChanged, kLook, kRead };

  struct Item;
  struct Look;

  // As the last look found it.
  struct File {
    std::string path;
    FileLook seen{};
    bool rests = false;  // The look before found the same.
  };

  void MarkDue(Due due);
  void OnChange(const std::string& directory, const std::string& name);
  void SettleThenLook();
  void BeginLook();
  static void Work(Look* look);
  void OnLooked(Look* look);
  static void TakeIn(File* file, Item* item);
  void Watch();
  void ArmIdleLook();

  std::vector<File> files_;
  const Read read_;
  const Unwatched unwatched_;
  const FileWatchOptions options_;
  uv_loop_t* loop_ = nullptr;  // None before Start.
  std::optional<DirectoryWatches> watches_;
  std::set<std::string> told_;  // Directories that could not be watched.
  uv_timer_t settle_{};
  uv_timer_t idle_look_{};
  std::optional<uint64_t> first_change_ms_;  // Since the last read, in the loop's time.
  bool stopped_ = false;
  bool looking_ = false;
  bool asked_ = false;  // ReadNow was called, and nothing was read since.
  Due due_ = Due::kRead;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_FILES_FILE_WATCH_H_
