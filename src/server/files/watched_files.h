// WatchedFiles: reads files of the operator again when one of them changes, and on demand.
//
// Thread: loop; files are looked at and read on libuv's workers, one look at a time. Content decides
// whether a file has changed. Directories without a watch are looked at every poll_ms, all others
// every idle_look_ms.
#ifndef NOWCALLS_SERVER_FILES_WATCHED_FILES_H_
#define NOWCALLS_SERVER_FILES_WATCHED_FILES_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/files/directory_watches.h"
#include "server/files/file_look.h"

namespace nowcalls::server {

struct WatchedFilesOptions {
  uint64_t settle_ms = 500;       // From the last change to the look.
  uint64_t settle_ms_max = 5000;  // From the first, for files that do not come to rest.
  uint64_t poll_ms = 2000;        // While a directory cannot be watched.
  uint64_t idle_look_ms = 30'000;
};

class WatchedFiles {
 public:
  enum class Why { kFirst, kChanged, kAsked };
  // What the loop does with what was read.
  using Deliver = std::function<void()>;
  // On a worker. kFirst: files may have changed since the start read them.
  using Read = std::function<Deliver(Why why)>;

  WatchedFiles(std::vector<std::string> files, Read read, const WatchedFilesOptions& options = {});
  // REQUIRES: never started; or Stop was called, no look is under way and all handles are closed.
  ~WatchedFiles();
  WatchedFiles(const WatchedFiles&) = delete;
  WatchedFiles& operator=(const WatchedFiles&) = delete;

  void Start(uv_loop_t* loop);
  // Reads soon; again if a look is under way.
  void ReadNow();
  // Nothing is delivered any more.
  void Stop();
  // No look is under way.
  bool idle() const { return !looking_; }

 private:
  struct Look;

  void OnChange(const std::string& directory, const std::string& name);
  void LookIn(uint64_t ms);
  void Settle();
  void Begin();
  static void Work(Look* look);
  void OnLooked(const Look& look);
  bool Watch();

  const std::vector<std::string> files_;
  const Read read_;
  const WatchedFilesOptions options_;
  uv_loop_t* loop_ = nullptr;  // None before Start.
  std::unique_ptr<DirectoryWatches> watches_;
  uv_timer_t timer_{};
  bool stopped_ = false;
  bool looking_ = false;
  bool asked_ = false;
  bool changed_ = false;  // Since the last look began.
  std::optional<uint64_t> first_change_ms_;
  std::vector<uint64_t> fingerprints_;  // Of the last look; empty: there was none.
  std::vector<PathEntry> entries_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_FILES_WATCHED_FILES_H_
