// LoopHooks: libuv handles that call the server: before and after a poll, at a signal.
//
// Thread: loop.
#ifndef NOWCALLS_SERVER_LOOP_LOOP_HOOKS_H_
#define NOWCALLS_SERVER_LOOP_LOOP_HOOKS_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace nowcalls::server {

class LoopHooks {
 public:
  struct Calls {
    std::function<void()> polled;               // The loop has looked at all sockets.
    std::function<void()> before_poll;          // The loop is about to look, or to sleep.
    std::function<void(int signal)> on_signal;  // SIGTERM, SIGINT or SIGHUP.
  };

  explicit LoopHooks(Calls calls) : calls_(std::move(calls)) {}
  LoopHooks(const LoopHooks&) = delete;
  LoopHooks& operator=(const LoopHooks&) = delete;

  void Start(uv_loop_t* loop);
  // Bounds the next sleep, counted from the loop's own time (uv_update_time).
  void WakeIn(int64_t ms);
  void Close();

 private:
  const Calls calls_;
  uv_check_t check_{};
  uv_prepare_t prepare_{};
  uv_timer_t timer_{};
  uv_signal_t signals_[3]{};
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOOP_LOOP_HOOKS_H_
