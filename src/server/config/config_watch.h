// ConfigWatch: reads the configuration again when its file changes, and on demand.
//
// Thread: loop; `read` and looks at the file run on libuv's workers, one at a time. `apply` also
// gets the error of a missing file. Start reads once.
#ifndef NOWCALLS_SERVER_CONFIG_CONFIG_WATCH_H_
#define NOWCALLS_SERVER_CONFIG_CONFIG_WATCH_H_

#include <uv.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "nowcalls/status.h"
#include "server/config/config.h"

namespace nowcalls::server {

struct ConfigWatchOptions {
  uint64_t poll_ms = 500;           // Between two looks at the file's stamps.
  uint64_t settle_ms = 1000;        // From the last change that was seen to reading.
  uint64_t settle_ms_max = 10'000;  // From the first, for a file that does not come to rest.
};

class ConfigWatch {
 public:
  using Read = std::function<Result<Invocation>()>;  // On a worker thread.
  // `asked`: ReadNow was called.
  using Apply = std::function<void(const Result<Invocation>& read, bool asked)>;

  // An empty `file` is not watched.
  ConfigWatch(std::string file, Read read, Apply apply, const ConfigWatchOptions& options = {});
  // REQUIRES: never started; or Stop was called, and the loop ended all work and handles.
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

  void Start(uv_loop_t* loop);
  // Reads soon; again if a read is under way.
  void ReadNow();
  // `apply` is called no more.
  void Stop();
  bool idle() const { return !working_; }

 private:
  // Device, inode, size, times of content and inode; all 0: no regular file.
  using Stamps = std::array<int64_t, 5>;
  struct Work;

  static Status CheckReadable(const std::string& file);
  static Stamps StampsOf(const std::string& file);
  void Look();
  void Begin(bool reads);
  void OnDone(const Work& work);
  void TakeStamps(const Stamps& stamps);

  const std::string file_;
  const Read read_;
  const Apply apply_;
  const ConfigWatchOptions options_;
  uv_loop_t* loop_ = nullptr;  // None before Start.
  uv_timer_t timer_{};
  bool stopped_ = false;
  bool working_ = false;
  bool wants_read_ = false;
  bool asked_ = false;
  std::optional<Stamps> stamps_;  // Of the last look.
  struct Changed {
    uint64_t first_ms;  // In the loop's time.
    uint64_t last_ms;
  };
  std::optional<Changed> changed_;  // Not read yet.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_CONFIG_WATCH_H_
