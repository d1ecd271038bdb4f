#include "base/clock.h"

#include <doctest/doctest.h>

#include "base/time.h"

namespace nowcalls {
namespace {

TEST_CASE("the boot clock never goes back") {
  int64_t last_us = BoottimeUs();
  for (int i = 0; i < 10'000; ++i) {
    const int64_t now_us = BoottimeUs();
    REQUIRE(now_us >= last_us);
    last_us = now_us;
  }
  CHECK(last_us > 0);
}

TEST_CASE("the boot clock says the same in both units") {
  const int64_t before_ms = BoottimeUs() / 1000;
  const int64_t ms = BoottimeMs();
  const int64_t after_ms = BoottimeUs() / 1000;
  CHECK(before_ms <= ms);
  CHECK(ms <= after_ms);
}

TEST_CASE("the boot id is the same each time and is not empty") {
  const Result<ClockSample> first = SampleClocks();
  const Result<ClockSample> second = SampleClocks();
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->boot_id == second->boot_id);
  CHECK(first->boot_id != BootId{});
  CHECK(first->boottime_ms <= second->boottime_ms);
}

TEST_CASE("the wall clock is Unix time in milliseconds") {
  CHECK(WallMs() > 1'577'836'800'000);  // 2020-01-01
  CHECK(WallMs() < 7'258'118'400'000);  // 2200-01-01
}

TEST_CASE("random bits differ from call to call") { CHECK(RandomBits128() != RandomBits128()); }

TEST_CASE("instants add and subtract milliseconds") {
  const Instant start{1000};
  CHECK((start + 500).ms == 1500);
  CHECK((start + 500) - start == 500);
  CHECK(start < kNever);
}

}  // namespace
}  // namespace nowcalls
