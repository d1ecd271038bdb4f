// Which slots a log may forget, by what members have and by bytes.
#include "cluster/trim_plan.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace nowcalls::cluster {
namespace {

TEST_CASE("a quarter of the bytes stays, and more while members lack it") {
  TrimPlan plan(4'000, 0, 0);
  CHECK(plan.To(0) == 0);
  for (uint64_t number = 1; number <= 300; ++number) plan.Appended(number, 10);
  CHECK(plan.bytes() == 3'000);
  CHECK(plan.To(0) == 0);
  CHECK(plan.To(50) == 50);
  CHECK(plan.To(20) == 50);
  // The last slots stay, though they are more than a quarter.
  CHECK(plan.To(1'000) == 300 - TrimPlan::kSlotsKept);
  CHECK(plan.bytes() == TrimPlan::kSlotsKept * 10);
  TrimPlan large(40'000, 0, 0);
  for (uint64_t number = 1; number <= 1'500; ++number) large.Appended(number, 10);
  CHECK(large.To(1'500) == 500);
}

TEST_CASE("beyond the bytes a member that is behind holds nobody up") {
  TrimPlan plan(1'000, 0, 0);
  for (uint64_t number = 1; number <= 20; ++number) plan.Appended(number, 100);
  CHECK(plan.To(0) == 10);
  plan.Appended(21, 5'000);
  CHECK(plan.To(0) == 20);
}

TEST_CASE("a plan begins with the slots of other writers") {
  TrimPlan plan(uint64_t{100} << 20, 101, 400);
  CHECK(plan.bytes() > 0);
  CHECK(plan.To(0) == 100);
  plan.Appended(401, 1);
  CHECK(plan.To(150) == 150);
  TrimPlan empty(1'000, 0, 77);
  empty.Appended(78, 1);
  CHECK(empty.To(78) == 77);
}

}  // namespace
}  // namespace nowcalls::cluster
