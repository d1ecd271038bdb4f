#include "server/loop/loop_hooks.h"

#include <csignal>
#include <cstddef>
#include <iterator>

#include "base/check.h"

namespace nowcalls::server {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};

template <typename Handle>
void CloseHandle(Handle* handle) {
  uv_close(reinterpret_cast<uv_handle_t*>(handle), nullptr);
}

}  // namespace

void LoopHooks::Start(uv_loop_t* loop) {
  check_.data = prepare_.data = this;
  // Check, behind a poll, begins a turn of the server; prepare, ahead of the next poll, ends it.
  NOWCALLS_CHECK(uv_check_init(loop, &check_) == 0);
  NOWCALLS_CHECK(uv_check_start(&check_, [](uv_check_t* handle) {
                   static_cast<LoopHooks*>(handle->data)->calls_.polled();
                 }) == 0);
  NOWCALLS_CHECK(uv_prepare_init(loop, &prepare_) == 0);
  NOWCALLS_CHECK(uv_prepare_start(&prepare_, [](uv_prepare_t* handle) {
                   static_cast<LoopHooks*>(handle->data)->calls_.before_poll();
                 }) == 0);
  NOWCALLS_CHECK(uv_timer_init(loop, &timer_) == 0);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    signals_[i].data = this;
    NOWCALLS_CHECK(uv_signal_init(loop, &signals_[i]) == 0);
    NOWCALLS_CHECK(uv_signal_start(
                       &signals_[i],
                       [](uv_signal_t* handle, int number) {
                         static_cast<LoopHooks*>(handle->data)->calls_.on_signal(number);
                       },
                       kSignals[i]) == 0);
  }
}

// An empty callback: the loop wakes, and before_poll follows.
void LoopHooks::WakeIn(int64_t ms) {
  NOWCALLS_CHECK(uv_timer_start(
                     &timer_, [](uv_timer_t*) {}, static_cast<uint64_t>(ms), /*repeat=*/0) == 0);
}

void LoopHooks::Close() {
  CloseHandle(&check_);
  CloseHandle(&prepare_);
  CloseHandle(&timer_);
  for (uv_signal_t& handle : signals_) CloseHandle(&handle);
}

}  // namespace nowcalls::server
