#include "bench/recorder.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

namespace nowcalls::bench {
namespace {

constexpr int64_t kRecordedSecond = 1'000'000'000;

TEST_CASE("answers count in the interval, latencies if they should have begun in it") {
  auto recorder = std::make_unique<Recorder>();
  recorder->Granted(1, 2);  // Before anything counts.
  recorder->Count(10 * kRecordedSecond, 12 * kRecordedSecond);
  recorder->Granted(10 * kRecordedSecond, 10 * kRecordedSecond + 500);  // Within.
  recorder->Granted(9 * kRecordedSecond, 11 * kRecordedSecond);         // Began before.
  recorder->Refused(RefusedBy::kLevel, 11 * kRecordedSecond, 11 * kRecordedSecond + 7);
  recorder->Failed("OVERLOADED", "sessions_max", 11 * kRecordedSecond);
  recorder->Failed("OVERLOADED", "tokens_max", 11 * kRecordedSecond);
  recorder->Failed("INTERNAL", "", 12 * kRecordedSecond);                  // After.
  recorder->Released(12 * kRecordedSecond, 13 * kRecordedSecond);          // After.
  recorder->Released(12 * kRecordedSecond - 1, 14 * kRecordedSecond - 1);  // Ends after.
  CHECK(recorder->acquire().count() == 1);
  CHECK(recorder->acquire().max() == 500);
  CHECK(recorder->release().count() == 1);
  CHECK(recorder->release().max() == 2 * kRecordedSecond);
  CHECK(recorder->refused().max() == 7);
  CHECK(recorder->errors().size() == 1);
  CHECK(recorder->errors().at("OVERLOADED").count == 2);
  CHECK(recorder->errors().at("OVERLOADED").first_text == "sessions_max");
  CHECK(recorder->errors_ever() == 3);
  const std::vector<SecondRow> seconds = recorder->TakeSeconds(20 * kRecordedSecond);
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0].granted == 1);
  CHECK(seconds[1].granted == 1);
  CHECK(seconds[1].released == 0);
  CHECK(seconds[1].refused == 1);
  CHECK(seconds[1].errors == 2);
}

TEST_CASE("every second has a row, also one without answers") {
  auto recorder = std::make_unique<Recorder>();
  recorder->Count(0, 5 * kRecordedSecond);
  recorder->Granted(0, 100);
  recorder->Released(0, kRecordedSecond - 1);
  CHECK(recorder->LastSecond(kRecordedSecond - 1).granted == 0);
  CHECK(recorder->LastSecond(kRecordedSecond).granted == 1);
  CHECK(recorder->LastSecond(2 * kRecordedSecond).granted == 0);  // No answer came.
  recorder->Granted(3 * kRecordedSecond, 3 * kRecordedSecond + 40);
  CHECK(recorder->LastSecond(3 * kRecordedSecond + 50).granted == 0);  // The third was empty.
  CHECK(recorder->LastSecond(4 * kRecordedSecond).granted == 1);
  CHECK(recorder->LastSecond(5 * kRecordedSecond).granted == 1);  // Nothing is counted any more.
  const std::vector<SecondRow> seconds = recorder->TakeSeconds(9 * kRecordedSecond);
  REQUIRE(seconds.size() == 5);
  CHECK(seconds[0].granted == 1);
  CHECK(seconds[0].released == 1);
  CHECK(seconds[0].max_ns == kRecordedSecond - 1);
  CHECK(seconds[1].max_ns == 0);
  CHECK(seconds[3].granted == 1);
  CHECK(seconds[3].max_ns == 40);
  CHECK(seconds[3].p99_ns == 40);
}

TEST_CASE("an interval that is shortened ends there") {
  auto recorder = std::make_unique<Recorder>();
  recorder->Count(0, INT64_MAX);
  recorder->Granted(0, 100);
  recorder->EndAt(kRecordedSecond + kRecordedSecond / 2);
  recorder->Granted(0, 2 * kRecordedSecond);
  const std::vector<SecondRow> seconds = recorder->TakeSeconds(3 * kRecordedSecond);
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0].granted == 1);
  CHECK(seconds[1].granted == 0);
}

TEST_CASE("a limit that a later server names is counted as one that is not known") {
  auto recorder = std::make_unique<Recorder>();
  recorder->Count(0, kRecordedSecond);
  recorder->Refused(RefusedBy::kOther, 0, 1);
  recorder->Refused(RefusedBy::kTokenLimit, 0, 1);
  CHECK(recorder->refusals()[kRefusedByCount] == 1);
  CHECK(recorder->refusals()[static_cast<size_t>(RefusedBy::kTokenLimit)] == 1);
}

}  // namespace
}  // namespace nowcalls::bench
