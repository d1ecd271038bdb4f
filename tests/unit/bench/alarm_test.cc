#include "bench/alarm.h"

#include <doctest/doctest.h>
#include <uv.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace nowcalls::bench {
namespace {

// A loop that runs until its alarm is told to ring no more.
class Ringing {
 public:
  // `rung(times)`, called whenever it has, tells when it is to ring next; it has rung `times`
  // times.
  explicit Ringing(std::function<int64_t(size_t times)> rung) : rung_(std::move(rung)) {
    REQUIRE(uv_loop_init(&loop_) == 0);
    REQUIRE(alarm.Start(&loop_, [this] { Ring(); }).ok());
  }

  // When it rang. `alarm` was set.
  std::vector<int64_t> Run() {
    uv_run(&loop_, UV_RUN_DEFAULT);
    REQUIRE(uv_loop_close(&loop_) == 0);
    return times_ns_;
  }

  Alarm alarm;

 private:
  void Ring() {
    times_ns_.push_back(MonotonicNs());
    const int64_t next_ns = rung_(times_ns_.size());
    alarm.Set(next_ns);
    if (next_ns != Alarm::kNever) return;
    uv_walk(
        &loop_, [](uv_handle_t* handle, void*) { uv_close(handle, nullptr); }, nullptr);
  }

  const std::function<int64_t(size_t times)> rung_;
  uv_loop_t loop_{};
  std::vector<int64_t> times_ns_;
};

TEST_CASE("an alarm rings when it is due, and not before") {
  constexpr int64_t kDelayNs = 3'000'000;
  const int64_t begin_ns = MonotonicNs();
  Ringing ringing([=](size_t times) {
    return times == 3 ? Alarm::kNever : begin_ns + (static_cast<int64_t>(times) + 1) * kDelayNs;
  });
  ringing.alarm.Set(begin_ns + kDelayNs);
  const std::vector<int64_t> rung_ns = ringing.Run();
  REQUIRE(rung_ns.size() == 3);
  for (size_t i = 0; i < rung_ns.size(); ++i) {
    CHECK(rung_ns[i] - begin_ns >= (static_cast<int64_t>(i) + 1) * kDelayNs);
  }
}

TEST_CASE("an alarm that is set anew forgets when it was due") {
  Ringing ringing([](size_t) { return Alarm::kNever; });
  const int64_t begin_ns = MonotonicNs();
  ringing.alarm.Set(begin_ns + 1'000'000);
  ringing.alarm.Set(Alarm::kNever);
  ringing.alarm.Set(begin_ns + 20'000'000);
  const std::vector<int64_t> rung_ns = ringing.Run();
  REQUIRE(rung_ns.size() == 1);
  CHECK(rung_ns[0] - begin_ns >= 20'000'000);
}

TEST_CASE("an alarm does not ring for each of many requests that become due") {
  const int64_t begin_ns = MonotonicNs();
  Ringing ringing([](size_t times) { return times == 4 ? Alarm::kNever : MonotonicNs() + 1000; });
  ringing.alarm.Set(begin_ns);
  const std::vector<int64_t> rung_ns = ringing.Run();
  REQUIRE(rung_ns.size() == 4);
  CHECK(rung_ns[3] - begin_ns >= 3 * Alarm::kApartNs);
}

TEST_CASE("an alarm that is long overdue rings") {
  Ringing ringing([](size_t) { return Alarm::kNever; });
  ringing.alarm.Set(1);
  CHECK(ringing.Run().size() == 1);
}

}  // namespace
}  // namespace nowcalls::bench
