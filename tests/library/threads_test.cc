// The threads of the client library.
#include <dirent.h>
#include <doctest/doctest.h>
#include <pthread.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "library/clients.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

std::set<std::string> Threads() {
  std::set<std::string> threads;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] != '.') threads.insert(task->d_name);
  }
  closedir(tasks);
  return threads;
}

bool BlocksSigterm(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  std::string word;
  while (status >> word) {
    if (word != "SigBlk:") continue;
    status >> word;
    return (std::stoull(word, nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
  }
  return true;  // It has ended.
}

// While it lives, no thread can be started: their stacks would be larger than the address space.
class NoThreads {
 public:
  NoThreads() {
    REQUIRE(pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t huge = before_;
    REQUIRE(pthread_attr_setstacksize(&huge, size_t{1} << 47) == 0);
    REQUIRE(pthread_setattr_default_np(&huge) == 0);
  }
  ~NoThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_{};
};

}  // namespace

TEST_CASE("the threads of a client take no signals of the program") {
  const std::set<std::string> before = Threads();
  TestServer server(RuleJson(7, 2));
  const auto client = StartClient(server.address(), "worker");
  REQUIRE(client->Acquire(kFlow).ok());
  int seen = 0;
  for (const std::string& thread : Threads()) {
    if (before.contains(thread)) continue;
    ++seen;
    CHECK(BlocksSigterm(thread));
  }
  CHECK(seen > 0);
}

TEST_CASE("a client that gets no thread says so, and dials when it gets one") {
  TestServer server(RuleJson(7, 2));
  const auto client = StartClient({.addresses = {"127.0.0.1:1", server.address()}});
  REQUIRE(client->WaitConnected(Milliseconds(kPatienceMs)).ok());
  {
    const NoThreads none;
    const Status started = Client::Start({}).status();
    CHECK(started.code() == StatusCode::kUnavailable);
    CHECK(started.message().starts_with("start a thread: "));
    server.server().StayOnPort();
    server.server().Kill9();
    CHECK(PollUntil(kPatienceMs,
                    [&] { return Contains(client->stats().why_offline, "start a thread: "); }));
  }
  server.server().Start();
  CHECK(client->WaitConnected(Milliseconds(kPatienceMs)).ok());
}

}  // namespace nowcalls::testing
