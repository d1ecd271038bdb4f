#include "base/prng.h"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

namespace nowcalls {
namespace {

TEST_CASE("a seed gives the same numbers for ever") {
  // Of the reference implementations: splitmix64(1) seeds xoshiro256**.
  Prng prng(1);
  CHECK(prng.Next() == 0xb3f2af6d0fc710c5);
  CHECK(prng.Next() == 0x853b559647364cea);
  CHECK(prng.Next() == 0x92f89756082a4514);
}

TEST_CASE("different seeds give different numbers") {
  Prng a(1);
  Prng b(2);
  CHECK(a.Next() != b.Next());
}

TEST_CASE("bounded numbers stay within their bounds and reach both ends") {
  Prng prng(3);
  std::array<int, 5> seen{};
  for (int i = 0; i < 1000; ++i) ++seen[static_cast<size_t>(prng.Between(-2, 2) + 2)];
  for (const int times : seen) CHECK(times > 100);
  for (int i = 0; i < 100; ++i) CHECK(prng.Below(1) == 0);
  CHECK(prng.Between(7, 7) == 7);
  bool negative = false;
  for (int i = 0; i < 64; ++i) negative = negative || prng.Between(INT64_MIN, INT64_MAX) < 0;
  CHECK(negative);
}

TEST_CASE("chances come about as often as asked") {
  Prng prng(4);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) hits += prng.ChancePerMillion(250'000) ? 1 : 0;
  CHECK(hits > 2300);
  CHECK(hits < 2700);
  CHECK_FALSE(prng.ChancePerMillion(0));
  CHECK(prng.ChancePerMillion(1'000'000));
}

}  // namespace
}  // namespace nowcalls
