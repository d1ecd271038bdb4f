// Which slots a log may forget, by what members have and by bytes.
#include "cluster/trim_plan.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace nowcalls::cluster {
namespace {

constexpr uint64_t kMany = uint64_t{1} << 40;

TEST_CASE("slots stay until all members have them, and the last ones stay") {
  TrimPlan plan(kMany, 0, 0);
  CHECK(plan.To(0) == 0);
  for (uint64_t number = 1; number <= 300; ++number) plan.Appended(number, 10);
  CHECK(plan.To(0) == 0);
  CHECK(plan.To(50) == 50);
  CHECK(plan.To(20) == 50);
  CHECK(plan.To(1'000) == 300 - TrimPlan::kSlotsKept);
  CHECK(plan.bytes() == TrimPlan::kSlotsKept * 10);
}

TEST_CASE("beyond the bytes a member that is behind holds nobody up") {
  TrimPlan plan(1'000, 0, 0);
  for (uint64_t number = 1; number <= 20; ++number) plan.Appended(number, 100);
  CHECK(plan.To(0) == 10);
  plan.Appended(21, 5'000);
  CHECK(plan.To(0) == 20);
}

TEST_CASE("a plan begins with the slots of other writers") {
  TrimPlan plan(kMany, 101, 400);
  CHECK(plan.bytes() > 0);
  CHECK(plan.To(0) == 100);
  plan.Appended(401, 1);
  CHECK(plan.To(150) == 150);
  TrimPlan empty(kMany, 0, 77);
  empty.Appended(78, 1);
  CHECK(empty.To(78) == 77);
}

}  // namespace
}  // namespace nowcalls::cluster
