#include "bench/alarm.h"

#include <doctest/doctest.h>
#include <uv.h>

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace nowcalls::bench {
namespace {

// When an alarm rings that is set again whenever it has rung, `delay_ns` later; `times` times.
std::vector<int64_t> RungTimes(int64_t delay_ns, size_t times) {
  std::vector<int64_t> rung;
  Alarm alarm;
  uv_loop_t loop;
  REQUIRE(uv_loop_init(&loop) == 0);
  const Status started = alarm.Start(&loop, [&] {
    rung.push_back(MonotonicNs());
    if (rung.size() < times) return alarm.Set(rung.back() + delay_ns);
    alarm.Set(Alarm::kNever);
    uv_walk(
        &loop, [](uv_handle_t* handle, void*) { uv_close(handle, nullptr); }, nullptr);
  });
  REQUIRE(started.ok());
  alarm.Set(MonotonicNs() + delay_ns);
  uv_run(&loop, UV_RUN_DEFAULT);
  REQUIRE(uv_loop_close(&loop) == 0);
  return rung;
}

TEST_CASE("an alarm rings when it is due, and not before") {
  constexpr int64_t kDelayNs = 3'000'000;
  const int64_t begin_ns = MonotonicNs();
  const std::vector<int64_t> rung = RungTimes(kDelayNs, 3);
  REQUIRE(rung.size() == 3);
  CHECK(rung[0] - begin_ns >= kDelayNs);
  for (size_t i = 1; i < rung.size(); ++i) CHECK(rung[i] - rung[i - 1] >= kDelayNs);
}

TEST_CASE("an alarm that is set anew forgets when it was due") {
  std::vector<int64_t> rung;
  Alarm alarm;
  uv_loop_t loop;
  REQUIRE(uv_loop_init(&loop) == 0);
  const Status started = alarm.Start(&loop, [&] {
    rung.push_back(MonotonicNs());
    alarm.Set(Alarm::kNever);
    uv_walk(
        &loop, [](uv_handle_t* handle, void*) { uv_close(handle, nullptr); }, nullptr);
  });
  REQUIRE(started.ok());
  const int64_t begin_ns = MonotonicNs();
  alarm.Set(begin_ns + 1'000'000);
  alarm.Set(Alarm::kNever);
  alarm.Set(begin_ns + 20'000'000);
  uv_run(&loop, UV_RUN_DEFAULT);
  REQUIRE(uv_loop_close(&loop) == 0);
  REQUIRE(rung.size() == 1);
  CHECK(rung[0] - begin_ns >= 20'000'000);
}

}  // namespace
}  // namespace nowcalls::bench
