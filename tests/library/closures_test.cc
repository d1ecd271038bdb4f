// What the client library does with the closures of its users.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "library/clients.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

// Captured by a closure: sees whether another thread can use the client while it is destroyed.
class Captured {
 public:
  enum State : int { kAlive, kFreed, kFreedUnderLock };

  Captured(Client* client, std::atomic<int>* state) : client_(client), state_(state) {}
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    std::promise<void> looked;
    std::future<void> free = looked.get_future();
    std::thread([client = client_, looked = std::move(looked)]() mutable {
      (void)client->stats();
      looked.set_value();
    }).detach();
    *state_ = free.wait_for(5s) == std::future_status::ready ? kFreed : kFreedUnderLock;
  }

 private:
  Client* const client_;
  std::atomic<int>* const state_;
};

}  // namespace

TEST_CASE("closures are destroyed where they may use the client") {
  TestServer server(RuleJson(7, 2, {{"resourceTimeout", 60'000}}));
  const auto client = StartClient(server.address(), "worker");
  REQUIRE(client->WaitConnected(1min).ok());
  std::atomic<int> state{Captured::kAlive};
  auto captured = std::make_shared<Captured>(client.get(), &state);
  SUBCASE("a callback that was told that no answer came in time") {
    server.server().process().Stop();
    std::promise<void> told;
    client->AcquireAsync(kFlow, {.timeout = 50ms}, [&told, captured](const Acquired& acquired) {
      CHECK(acquired.outcome == Outcome::kUnknown);
      told.set_value();
    });
    captured.reset();
    told.get_future().wait();
    server.server().process().Signal(SIGCONT);
  }
  SUBCASE("on_lost of a blocking acquire that no answer came to in time") {
    server.server().process().Stop();
    CHECK(client
              ->Acquire(kFlow, {.timeout = 50ms,
                                .on_lost = [captured](const Grant&, const std::string&) {}})
              .outcome == Outcome::kUnknown);
    captured.reset();
    server.server().process().Signal(SIGCONT);
  }
  SUBCASE("on_lost of a token that is released") {
    Acquired acquired =
        client->Acquire(kFlow, {.on_lost = [captured](const Grant&, const std::string&) {}});
    captured.reset();
    CHECK(acquired.permit.Release().ok());
  }
  SUBCASE("on_lost of a token whose permit is destroyed") {
    const Acquired acquired =
        client->Acquire(kFlow, {.on_lost = [captured](const Grant&, const std::string&) {}});
    captured.reset();
  }
  SUBCASE("on_lost of a token that is lost") {
    RpcClient rpc = server.Connect();
    const Acquired acquired =
        client->Acquire(kFlow, {.on_lost = [captured](const Grant&, const std::string&) {}});
    captured.reset();
    ReclaimToken(&rpc, acquired.permit.token());
    CHECK(PollUntil(kPatienceMs, [&] { return state != Captured::kAlive; }));
    CHECK(acquired.permit.lost());
  }
  CHECK(PollUntil(kPatienceMs, [&] { return state != Captured::kAlive; }));
  CHECK(state == Captured::kFreed);
}

TEST_CASE("a callback that asks again whenever it is told does not keep a client from its end") {
  std::unique_ptr<Client> client =
      StartClient({.addresses = {"127.0.0.1:1"}, .timeout = 20ms, .fallback = Fallback::kFail});
  Client* const asked = client.get();
  std::promise<void> begun;
  std::atomic<int> told{0};
  std::function<void()> ask = [&] {
    asked->AcquireAsync(kFlow, {}, [&](const Acquired& acquired) {
      if (++told == 2) begun.set_value();
      if (!acquired.ok()) ask();
    });
  };
  ask();
  begun.get_future().wait();
  SUBCASE("when it is destroyed") { client.reset(); }
  SUBCASE("when it is closed, nor those that ask afterwards") {
    CHECK(client->Close(1min).ok());
    CHECK(client->Acquire(kFlow).outcome == Outcome::kBadRequest);
    CHECK(client->AcquireFuture(kFlow).get().outcome == Outcome::kBadRequest);
    client.reset();
  }
  CHECK(told > 2);
}

TEST_CASE("what a callback throws is logged, and the client goes on") {
  TestServer server(RuleJson(7, 2, {{"resourceTimeout", 60'000}, {"clientOfflineTime", 60'000}}));
  RpcClient rpc = server.Connect();
  std::mutex mutex;
  std::string lines;
  ClientOptions options;
  options.addresses = {server.address()};
  options.timeout = Milliseconds(kPatienceMs);
  options.log = [&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines += std::string(line) + "\n";
    throw std::runtime_error("a log that throws, too");
  };
  const auto client = StartClient(options);
  const auto logged = [&](const char* line) {
    return PollUntil(kPatienceMs, [&] {
      const std::lock_guard lock(mutex);
      return Contains(lines, line);
    });
  };
  client->AcquireAsync(kFlow, {}, [](const Acquired&) { throw std::runtime_error("oh"); });
  CHECK(logged("the callback of a call has thrown: oh\n"));
  client->RequestAsync(kFlow, {}, [](const Passed&) { throw 7; });
  CHECK(logged("the callback of a call has thrown what is no std::exception\n"));
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&rpc) == 0; }));  // Its permit is released.
  Acquired held = client->Acquire(
      kFlow, {.on_lost = [](const Grant&, const std::string&) { throw std::logic_error("ah"); }});
  REQUIRE(held.ok());
  ReclaimToken(&rpc, held.permit.token());
  CHECK(logged("on_lost has thrown: ah\n"));
  held.permit.ReleaseAsync([](const Released&) { throw std::runtime_error("eh"); });
  CHECK(logged("the callback of a call has thrown: eh\n"));
  CHECK(client->Acquire(kFlow).ok());
}

TEST_CASE("a client that is destroyed in a callback ends behind it") {
  TestServer server(RuleJson(7, 2));
  RpcClient rpc = server.Connect();
  std::unique_ptr<Client> client = StartClient(server.address(), "worker");
  Client* const asked = client.get();
  std::promise<Outcome> told;
  asked->AcquireAsync(kFlow, {}, [&](Acquired acquired) {
    acquired.permit.ReleaseAsync();
    asked->AcquireAsync(kFlow, {.wait = 1h},
                        [&](const Acquired& later) { told.set_value(later.outcome); });
    client.reset();
  });
  CHECK(told.get_future().get() == Outcome::kUnknown);
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&rpc) == 0; }));
}

TEST_CASE("callbacks of a closed client may ask and wait, and run one at a time") {
  const auto client = StartClient({.addresses = {"127.0.0.1:1"}});
  CHECK(client->Close(1min).ok());
  constexpr int kThreads = 4;
  constexpr int kCalls = 200;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> told{0};
  std::atomic<int> wrong{0};
  const auto tell = [&](const Acquired& acquired) {
    if (++inside > 1) ++most;
    if (acquired.outcome != Outcome::kBadRequest) ++wrong;
    ++told;
    --inside;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        client->AcquireAsync(kFlow, {}, [&](const Acquired& acquired) {
          tell(acquired);
          if (client->Acquire(kFlow).outcome != Outcome::kBadRequest) ++wrong;
          client->AcquireAsync(kFlow, {}, tell);
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(told == 2 * kThreads * kCalls);
  CHECK(most == 0);
  CHECK(wrong == 0);
}

}  // namespace nowcalls::testing
