#include "server/threads/worker_thread.h"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

TEST_CASE("a worker works off the loop's thread and reports on it") {
  TestLoop loop;
  std::thread::id worked_on;
  std::thread::id done_on;
  bool busy_in_done = true;
  std::optional<WorkerThread> worker;
  worker.emplace(
      loop.get(), "test",
      [&](bool job) {
        CHECK(job);
        worked_on = std::this_thread::get_id();
        return WorkerThread::kUntilSubmit;
      },
      [&] {
        done_on = std::this_thread::get_id();
        busy_in_done = worker->busy();
      });
  CHECK_FALSE(worker->busy());
  worker->Submit();
  CHECK(worker->busy());
  REQUIRE(loop.RunUntil([&] { return !worker->busy(); }));
  CHECK(done_on == std::this_thread::get_id());
  CHECK(worked_on != std::this_thread::get_id());
  CHECK_FALSE(busy_in_done);
  worker->Stop();
  uv_run(loop.get(), UV_RUN_DEFAULT);
}

TEST_CASE("each job of a worker is done once, in order") {
  TestLoop loop;
  constexpr int kJobs = 1000;
  int job = 0;
  int worked = 0;
  int done = 0;
  std::optional<WorkerThread> worker;
  const auto submit = [&] {
    ++job;
    worker->Submit();
  };
  worker.emplace(
      loop.get(), "test",
      [&](bool) {
        worked = job;
        return WorkerThread::kUntilSubmit;
      },
      [&] {
        CHECK(worked == job);
        ++done;
        if (job < kJobs) submit();
      });
  submit();
  REQUIRE(loop.RunUntil([&] { return done == kJobs; }));
  CHECK(worked == kJobs);
  worker->Stop();
  uv_run(loop.get(), UV_RUN_DEFAULT);
  CHECK(done == kJobs);
}

TEST_CASE(
    "a worker that asks for a wake-up is called without a job, and only as often as it asks") {
  TestLoop loop;
  std::atomic<int> wake_ups = 0;
  bool done = false;
  WorkerThread worker(
      loop.get(), "test",
      [&](bool job) -> int64_t {
        if (job) return 1;
        return ++wake_ups < 3 ? 0 : WorkerThread::kUntilSubmit;
      },
      [&] { done = true; });
  worker.Submit();
  REQUIRE(loop.RunUntil([&] { return done; }));
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return wake_ups == 3; }));
  done = false;
  worker.Submit();
  REQUIRE(loop.RunUntil([&] { return done && wake_ups == 4; }));
  worker.Stop();
  uv_run(loop.get(), UV_RUN_DEFAULT);
  CHECK(wake_ups == 4);
}

TEST_CASE("a job that has come to what counts is done, and the next one waits for its rest") {
  TestLoop loop;
  std::atomic<int> begun = 0;
  std::atomic<bool> may_end = false;
  int done = 0;
  std::optional<WorkerThread> worker;
  worker.emplace(
      loop.get(), "test",
      [&](bool) {
        if (++begun == 1) {
          worker->FinishEarly();
          may_end.wait(false);
        }
        return WorkerThread::kUntilSubmit;
      },
      [&] { ++done; });
  worker->Submit();
  REQUIRE(loop.RunUntil([&] { return done == 1; }));
  CHECK_FALSE(worker->busy());
  worker->Submit();
  CHECK(worker->busy());
  CHECK(begun == 1);
  may_end = true;
  may_end.notify_all();
  REQUIRE(loop.RunUntil([&] { return done == 2; }));
  CHECK(begun == 2);
  CHECK_FALSE(worker->busy());
  worker->Stop();
  uv_run(loop.get(), UV_RUN_DEFAULT);
  CHECK(done == 2);
}

TEST_CASE("stopping a worker ends the job it is in and forgets to report it") {
  TestLoop loop;
  std::atomic<bool> began = false;
  std::atomic<bool> may_end = false;
  bool done = false;
  WorkerThread worker(
      loop.get(), "test",
      [&](bool) {
        began = true;
        may_end.wait(false);
        return WorkerThread::kUntilSubmit;
      },
      [&] { done = true; });
  worker.Submit();
  REQUIRE(testing::PollUntil(testing::kPatienceMs, [&] { return began.load(); }));
  may_end = true;
  may_end.notify_all();
  worker.Stop();
  uv_run(loop.get(), UV_RUN_DEFAULT);
  CHECK_FALSE(done);
}

}  // namespace
}  // namespace nowcalls::server
