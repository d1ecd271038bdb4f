#include "server/early_commit.h"

#include <doctest/doctest.h>

namespace nowcalls::server {
namespace {

TEST_CASE("a batch goes early once the loop has waited for one, when it is half as large") {
  EarlyCommit early(100);
  CHECK_FALSE(early.Due(100'000));
  early.Began(800);
  CHECK_FALSE(early.Due(100'000));

  early.Ended(/*waited=*/true);
  CHECK_FALSE(early.Due(399));
  CHECK(early.Due(400));

  // Of a smaller one less is enough, but not less than what is worth it.
  early.Began(400);
  CHECK(early.Due(200));
  early.Began(150);
  CHECK_FALSE(early.Due(99));
  CHECK(early.Due(100));

  early.Ended(/*waited=*/false);
  CHECK_FALSE(early.Due(100'000));
}

}  // namespace
}  // namespace nowcalls::server
