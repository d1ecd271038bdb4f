#include "server/commit/commit_pace.h"

#include <doctest/doctest.h>

namespace nowcalls::server {
namespace {

int CommitsUntilQuick(CommitPace* pace, int64_t commit_us) {
  constexpr int kMany = 1'000;
  int commits = 0;
  for (; !pace->quick() && commits < kMany; ++commits) pace->Took(commit_us);
  return commits;
}

TEST_CASE("commits are quick after some that were") {
  CommitPace pace;
  CHECK_FALSE(pace.quick());
  const int commits = CommitsUntilQuick(&pace, 150);
  CHECK(commits >= 10);
  CHECK(commits <= 20);
}

TEST_CASE("commits of a slow disk are never quick") {
  CommitPace pace;
  CHECK(CommitsUntilQuick(&pace, CommitPace::kQuickUs + 1) == 1'000);
}

TEST_CASE("one commit that stalls is enough, and the longer it was, the longer it counts") {
  CommitPace pace;
  CommitsUntilQuick(&pace, 100);
  pace.Took(100'000);
  CHECK_FALSE(pace.quick());
  const int after_short = CommitsUntilQuick(&pace, 100);
  pace.Took(1'000'000);
  CHECK_FALSE(pace.quick());
  const int after_long = CommitsUntilQuick(&pace, 100);
  CHECK(after_long > after_short);
  CHECK(after_long >= 60);
  CHECK(after_long <= 80);
}

TEST_CASE("a commit that takes some milliseconds among quick ones changes nothing") {
  CommitPace pace;
  for (int i = 0; i < 100; ++i) pace.Took(150);
  pace.Took(5'000);
  CHECK(pace.quick());
}

}  // namespace
}  // namespace nowcalls::server
