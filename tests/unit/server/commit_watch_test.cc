#include "server/commit/commit_watch.h"

#include <doctest/doctest.h>

namespace nowcalls::server {
namespace {

TEST_CASE("a commit is told of when it took a second, and once while it hangs") {
  CommitWatch watch;
  CHECK(watch.NextReport() == kNever);
  CHECK_FALSE(watch.UnderWay(Instant{1'000'000}));

  watch.Began(Instant{10'000});
  CHECK_FALSE(watch.Ended(Instant{10'999}));
  watch.Began(Instant{20'000});
  CHECK_FALSE(watch.UnderWay(Instant{21'000}));
  CHECK(watch.Ended(Instant{21'000}) == "a commit took 1000 ms");
  CHECK(watch.NextReport() == kNever);

  watch.Began(Instant{30'000});
  CHECK(watch.NextReport() == Instant{35'000});
  CHECK_FALSE(watch.UnderWay(Instant{34'999}));
  CHECK(watch.UnderWay(Instant{35'001}) == "a commit has not ended for 5001 ms");
  CHECK(watch.NextReport() == kNever);
  CHECK_FALSE(watch.UnderWay(Instant{40'000}));
  CHECK(watch.Ended(Instant{41'000}) == "a commit took 11000 ms");

  watch.Began(Instant{50'000});
  CHECK(watch.UnderWay(Instant{56'000}) == "a commit has not ended for 6000 ms");
}

}  // namespace
}  // namespace nowcalls::server
