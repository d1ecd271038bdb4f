// The time that a writer may believe in its claim.
#include "cluster/lease.h"

#include <doctest/doctest.h>

namespace nowcalls::cluster {
namespace {

TEST_CASE("a lease is sure for less than its time, from before its renewal was sent") {
  Lease lease;
  CHECK(lease.over(0));
  lease.Renewed(1'000, 2'000);
  CHECK_FALSE(lease.over(2'599));
  CHECK(lease.over(2'600));
  CHECK(lease.renew_at_ms() == 1'500);
}

TEST_CASE("an answer that comes late takes nothing back") {
  Lease lease;
  lease.Renewed(1'000, 2'000);
  lease.Renewed(500, 2'000);
  CHECK(lease.sure_until_ms() == 2'600);
}

TEST_CASE("a renewal without an answer is repeated soon, and adds nothing") {
  Lease lease;
  lease.Renewed(1'000, 2'000);
  lease.Unanswered(1'500, 1'510);
  CHECK(lease.renew_at_ms() == 1'600);
  lease.Unanswered(1'600, 2'100);
  CHECK(lease.renew_at_ms() == 2'100);
  CHECK(lease.over(2'600));
}

}  // namespace
}  // namespace nowcalls::cluster
