#include "bench/statistics.h"

#include <doctest/doctest.h>

namespace nowcalls::compare {
namespace {

TEST_CASE("the spread of a figure is its median with the least and the greatest") {
  CHECK_FALSE(SpreadOf({}).has_value());
  const Spread odd = SpreadOf({5, 1, 3}).value();
  CHECK(odd.median == 3);
  CHECK(odd.min == 1);
  CHECK(odd.max == 5);
  CHECK(SpreadOf({4, 1, 2, 10}).value().median == 3);
  CHECK(SpreadOf({7}).value().median == 7);
}

TEST_CASE("a ratio is that of the medians, and none where one of them is missing or zero") {
  CHECK(Ratio(SpreadOf({1, 10, 100}), SpreadOf({4})).value() == 2.5);
  CHECK_FALSE(Ratio(SpreadOf({}), SpreadOf({4})).has_value());
  CHECK_FALSE(Ratio(SpreadOf({4}), SpreadOf({})).has_value());
  CHECK_FALSE(Ratio(SpreadOf({4}), SpreadOf({0})).has_value());
}

TEST_CASE("figures are shown with commas between thousands") {
  CHECK(Decimal(0, 0) == "0");
  CHECK(Decimal(999, 0) == "999");
  CHECK(Decimal(1000, 0) == "1,000");
  CHECK(Decimal(1234567.891, 1) == "1,234,567.9");
  CHECK(Decimal(-123456, 0) == "-123,456");
  CHECK(Decimal(-123, 0) == "-123");
  CHECK(Decimal(0.125, 3) == "0.125");
}

}  // namespace
}  // namespace nowcalls::compare
