#include "base/duration.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

namespace nowcalls {
namespace {

std::string ErrorOf(std::string_view text) {
  const Result<int64_t> parsed = ParseDuration(text);
  return parsed.ok() ? "parsed" : parsed.status().message();
}

TEST_CASE("a duration is whole numbers with units, larger units first") {
  CHECK(*ParseDuration("0s") == 0);
  CHECK(*ParseDuration("500ms") == 500);
  CHECK(*ParseDuration("10s") == 10'000);
  CHECK(*ParseDuration("5m") == 300'000);
  CHECK(*ParseDuration("2h") == 7'200'000);
  CHECK(*ParseDuration("1d") == 86'400'000);
  CHECK(*ParseDuration("1h30m") == 5'400'000);
  CHECK(*ParseDuration("2m13s") == 133'000);
}

TEST_CASE("a text that is no duration is refused with what is wrong") {
  CHECK(ErrorOf("") == "'' is not a duration such as 500ms, 10s, 5m, 2h or 1h30m");
  CHECK(ErrorOf("ten") == "'ten' is not a duration such as 500ms, 10s, 5m, 2h or 1h30m");
  CHECK(ErrorOf("-5s") == "'-5s' is not a duration such as 500ms, 10s, 5m, 2h or 1h30m");
  CHECK(ErrorOf("1.5s") == "'1.5s' is not a duration such as 500ms, 10s, 5m, 2h or 1h30m");
  CHECK(ErrorOf("5 s") == "'5 s' is not a duration such as 500ms, 10s, 5m, 2h or 1h30m");
  CHECK(ErrorOf("5w") == "'5w' is not a duration such as 500ms, 10s, 5m, 2h or 1h30m");
  CHECK(ErrorOf("10") == "'10' lacks a unit: ms, s, m, h or d");
  CHECK(ErrorOf("1h30") == "'1h30' lacks a unit: ms, s, m, h or d");
  CHECK(ErrorOf("5s5m") == "'5s5m' does not name its units from large to small");
  CHECK(ErrorOf("5s5s") == "'5s5s' does not name its units from large to small");
  CHECK(ErrorOf("99999999999s") == "'99999999999s' is too long a duration");
  CHECK(ErrorOf("4000000000d") == "'4000000000d' is too long a duration");
}

TEST_CASE("a person reads at most two units, cut off rather than rounded") {
  CHECK(HumanDuration(0) == "0ms");
  CHECK(HumanDuration(999) == "999ms");
  CHECK(HumanDuration(9'999) == "9.9s");
  CHECK(HumanDuration(10'000) == "10s");
  CHECK(HumanDuration(59'999) == "59s");
  CHECK(HumanDuration(133'000) == "2m13s");
  CHECK(HumanDuration(3'600'000) == "1h00m");
  CHECK(HumanDuration(86'399'999) == "23h59m");
  CHECK(HumanDuration(3 * 86'400'000 + 4 * 3'600'000) == "3d04h");
  CHECK(HumanDuration(-2'500) == "-2.5s");
  CHECK(HumanDuration(INT64_MIN).substr(0, 1) == "-");
}

TEST_CASE("times that make no sense are as far apart as can be said") {
  CHECK(MsSince(1'000, 4'500) == 3'500);
  CHECK(MsSince(4'500, 1'000) == -3'500);
  CHECK(MsSince(-2, INT64_MAX) == INT64_MAX);
  CHECK(MsSince(INT64_MIN, 0) == INT64_MAX);
  CHECK(MsSince(2, INT64_MIN) == INT64_MIN);
}

TEST_CASE("what is printed for ten seconds and more can be typed back") {
  for (const int64_t ms : {10'000, 59'000, 133'000, 3'660'000, 273'600'000}) {
    CHECK(*ParseDuration(HumanDuration(ms)) == ms);
  }
}

}  // namespace
}  // namespace nowcalls
