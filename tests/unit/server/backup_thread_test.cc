#include "server/threads/backup_thread.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

TEST_CASE("a backup has begun when its directory was made, and not when it was asked for") {
  TestLoop loop;
  std::vector<std::string> told;
  const auto make = [](const std::string& to, const std::atomic<bool>& /*stop*/,
                       const std::function<void()>& begun) -> Result<backup::Manifest> {
    if (to == "/there") return Status::InvalidArgument("/there exists already");
    begun();
    if (to == "/full") return Status::IoError("no room");
    return backup::Manifest{};
  };
  BackupThread backups(
      make,
      {.begun = [&](const engine::BackupJob& job) { told.push_back(job.by + " " + job.to); },
       .done =
           [&](const engine::BackupJob& job, bool begun, const Result<backup::Manifest>& made) {
             told.push_back(job.to + (begun ? " began: " : " did not begin: ") +
                            made.status().ToString());
           }});
  for (const char* to : {"/new", "/there", "/full"}) {
    REQUIRE(backups.Begin(loop.get(), {.asker = 1, .by = "10.0.0.1:5", .to = to}).ok());
    CHECK(backups.Begin(loop.get(), {.asker = 2, .by = "10.0.0.2:6", .to = "/x"}).code() ==
          StatusCode::kResourceExhausted);
    REQUIRE(loop.RunUntil([&] { return !backups.busy(); }));
  }
  const std::vector<std::string> expected = {
      "10.0.0.1:5 /new", "/new began: ok",
      "/there did not begin: invalid_argument: /there exists already", "10.0.0.1:5 /full",
      "/full began: io_error: no room"};
  CHECK(told == expected);
  backups.Stop();
  uv_run(loop.get(), UV_RUN_DEFAULT);
}

}  // namespace
}  // namespace nowcalls::server
