#include "bench/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace nowcalls::bench {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace

Alarm::~Alarm() {
  if (fd_ >= 0) close(fd_);
}

Status Alarm::Start(uv_loop_t* loop, std::function<void()> ring) {
  ring_ = std::move(ring);
  // A schedule kept by milliseconds would be bursts of 100 requests at 100,000 a second, and the
  // load would measure its own bursts. So no timer of libuv.
  fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd_ < 0) {
    return Status::IoError("cannot make a timer: " + std::generic_category().message(errno));
  }
  poll_.data = this;
  NOWCALLS_CHECK(uv_poll_init(loop, &poll_, fd_) == 0);
  NOWCALLS_CHECK(uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* poll, int, int) {
                   static_cast<Alarm*>(poll->data)->OnExpired();
                 }) == 0);
  return {};
}

void Alarm::Set(int64_t at_ns) {
  // To set the timer and to wake cost some microseconds of a CPU that the server may need. So two
  // rings are kApartNs apart, and setting the same time again is free.
  at_ns = std::max(at_ns, again_at_ns_);
  if (at_ns == at_ns_) return;
  at_ns_ = at_ns;
  itimerspec when{};  // All zero: disarmed.
  if (at_ns != kNever) {
    when.it_value = {at_ns / kSecondNs, at_ns % kSecondNs};
  }
  NOWCALLS_CHECK(timerfd_settime(fd_, TFD_TIMER_ABSTIME, &when, nullptr) == 0);
}

void Alarm::OnExpired() {
  // The expiry is not read: the Set that must follow takes it back, which saves that call.
  at_ns_ = kRung;
  again_at_ns_ = MonotonicNs() + kApartNs;
  ring_();
}

}  // namespace nowcalls::bench
