#include "bench/recorder.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

namespace nowcalls::bench {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST_CASE("answers count in the interval, latencies if they should have begun in it") {
  auto recorder = std::make_unique<Recorder>();
  recorder->Granted(1, 2);  // Before anything counts.
  recorder->Count(10 * kSecond, 12 * kSecond);
  recorder->Granted(10 * kSecond, 10 * kSecond + 500);  // Within.
  recorder->Granted(9 * kSecond, 11 * kSecond);         // Began before.
  recorder->Refused(RefusedBy::kLevel, 11 * kSecond, 11 * kSecond + 7);
  recorder->Failed("OVERLOADED", "sessions_max", 11 * kSecond);
  recorder->Failed("OVERLOADED", "tokens_max", 11 * kSecond);
  recorder->Failed("INTERNAL", "", 12 * kSecond);          // After.
  recorder->Released(12 * kSecond, 13 * kSecond);          // After.
  recorder->Released(12 * kSecond - 1, 14 * kSecond - 1);  // Ends after.
  CHECK(recorder->acquire().count() == 1);
  CHECK(recorder->acquire().max() == 500);
  CHECK(recorder->release().count() == 1);
  CHECK(recorder->release().max() == 2 * kSecond);
  CHECK(recorder->refused().max() == 7);
  CHECK(recorder->errors().size() == 1);
  CHECK(recorder->errors().at("OVERLOADED").count == 2);
  CHECK(recorder->errors().at("OVERLOADED").first_text == "sessions_max");
  CHECK(recorder->errors_ever() == 3);
  const std::vector<SecondRow> seconds = recorder->TakeSeconds(20 * kSecond);
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0].granted == 1);
  CHECK(seconds[1].granted == 1);
  CHECK(seconds[1].released == 0);
  CHECK(seconds[1].refused == 1);
  CHECK(seconds[1].errors == 2);
}

TEST_CASE("every second has a row, also one without answers") {
  auto recorder = std::make_unique<Recorder>();
  recorder->Count(0, 5 * kSecond);
  recorder->Granted(0, 100);
  recorder->Released(0, kSecond - 1);
  CHECK(recorder->LastSecond(kSecond - 1).granted == 0);
  CHECK(recorder->LastSecond(kSecond).granted == 1);
  CHECK(recorder->LastSecond(2 * kSecond).granted == 0);  // No answer came.
  recorder->Granted(3 * kSecond, 3 * kSecond + 40);
  CHECK(recorder->LastSecond(3 * kSecond + 50).granted == 0);  // The third was empty.
  CHECK(recorder->LastSecond(4 * kSecond).granted == 1);
  CHECK(recorder->LastSecond(5 * kSecond).granted == 1);  // Nothing is counted any more.
  const std::vector<SecondRow> seconds = recorder->TakeSeconds(9 * kSecond);
  REQUIRE(seconds.size() == 5);
  CHECK(seconds[0].granted == 1);
  CHECK(seconds[0].released == 1);
  CHECK(seconds[0].max_ns == kSecond - 1);
  CHECK(seconds[1].max_ns == 0);
  CHECK(seconds[3].granted == 1);
  CHECK(seconds[3].max_ns == 40);
  CHECK(seconds[3].p99_ns == 40);
}

TEST_CASE("an interval that is shortened ends there") {
  auto recorder = std::make_unique<Recorder>();
  recorder->Count(0, INT64_MAX);
  recorder->Granted(0, 100);
  recorder->EndAt(kSecond + kSecond / 2);
  recorder->Granted(0, 2 * kSecond);
  const std::vector<SecondRow> seconds = recorder->TakeSeconds(3 * kSecond);
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0].granted == 1);
  CHECK(seconds[1].granted == 0);
}

TEST_CASE("a limit that a later server names is counted as one that is not known") {
  auto recorder = std::make_unique<Recorder>();
  recorder->Count(0, kSecond);
  recorder->Refused(RefusedBy::kOther, 0, 1);
  recorder->Refused(RefusedBy::kTokenLimit, 0, 1);
  CHECK(recorder->refusals()[kRefusedByCount] == 1);
  CHECK(recorder->refusals()[static_cast<size_t>(RefusedBy::kTokenLimit)] == 1);
}

}  // namespace
}  // namespace nowcalls::bench
