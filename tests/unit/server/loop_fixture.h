// TestLoop: a libuv loop for tests of what lives beside it. At its end every handle must have been
// closed.
//
// Thread: the test's.
#ifndef NOWCALLS_UNIT_SERVER_LOOP_FIXTURE_H_
#define NOWCALLS_UNIT_SERVER_LOOP_FIXTURE_H_

#include <doctest/doctest.h>
#include <uv.h>

#include <functional>

#include "support/poll_until.h"

namespace nowcalls::server {

class TestLoop {
 public:
  TestLoop() { REQUIRE(uv_loop_init(&loop_) == 0); }
  ~TestLoop() {
    uv_run(&loop_, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop_) == 0);
  }
  TestLoop(const TestLoop&) = delete;
  TestLoop& operator=(const TestLoop&) = delete;

  uv_loop_t* get() { return &loop_; }

  // Runs callbacks until `holds` does; false when it never did.
  bool RunUntil(const std::function<bool()>& holds) {
    return testing::PollUntil(testing::kPatienceMs, [&] {
      uv_run(&loop_, UV_RUN_NOWAIT);
      return holds();
    });
  }

 private:
  uv_loop_t loop_{};
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_UNIT_SERVER_LOOP_FIXTURE_H_
