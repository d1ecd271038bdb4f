// Holders that are cut off, or stopped, at each step of a permit's life: each knows that its token
// is lost before another has it, and nothing is left at the end.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "library/clients.h"
#include "support/cutting_proxy.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.
using Mode = CuttingProxy::Mode;

// The server's hold is 1.2 s, kept at each 0.4 s.
Json ShortLived() {
  return RuleJson(
      7, 1, {{"resourceTimeout", 600}, {"resourceTimeoutStrategy", 2}, {"clientOfflineTime", 900}});
}

struct Holder {
  Holder(const std::string& address, const std::string& id) {
    ClientOptions options;
    options.addresses = {address};
    options.client_id = id;
    options.fallback = Fallback::kFail;
    options.timeout = Milliseconds(kPatienceMs);
    client = StartClient(options);
  }
  bool IsKept() const {
    return PollUntil(kPatienceMs, [&] { return client->stats().kept > 0; });
  }
  std::unique_ptr<Client> client;
};

// Whether the first holder knows that it has lost its token by the time that another has it.
bool KnewBefore(const Acquired& first, Client* second) {
  std::promise<bool> knew;
  Acquired held;
  second->AcquireAsync(kFlow, {.wait = Milliseconds(kPatienceMs)}, [&](Acquired acquired) {
    const bool lost = acquired.ok() && first.permit.lost();
    held = std::move(acquired);
    knew.set_value(lost);
  });
  return knew.get_future().get();
}

bool IsEmpty(const TestServer& server) {
  RpcClient rpc = server.Connect();
  return PollUntil(kPatienceMs, [&] { return NowCalls(&rpc) == 0; });
}

// A process that holds a permit. It says a line for each step, and goes on when it reads one.
class HolderProcess {
 public:
  explicit HolderProcess(const std::string& address) {
    REQUIRE(pipe(orders_) == 0);
    REQUIRE(pipe(reports_) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) Live(address);
    close(orders_[0]);
    close(reports_[1]);
  }
  ~HolderProcess() {
    close(orders_[1]);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(reports_[0]);
  }
  void Signal(int signal) const { REQUIRE(kill(pid_, signal) == 0); }
  void Order(char order) const { REQUIRE(write(orders_[1], &order, 1) == 1); }
  // 0: it has ended.
  char Report() const {
    char report = 0;
    return read(reports_[0], &report, 1) == 1 ? report : '\0';
  }

 private:
  [[noreturn]] void Live(const std::string& address) const {
    close(orders_[1]);
    close(reports_[0]);
    const Holder holder(address, "stopped");
    Acquired acquired = holder.client->Acquire(kFlow);
    Say(acquired.ok() ? 'g' : 'x');
    for (char order = 0; read(orders_[0], &order, 1) == 1;) {
      // The first thing that it does after it was stopped.
      if (order == '?') Say(acquired.permit.lost() ? 'l' : 'h');
      if (order == 'k') Say(holder.IsKept() ? 'k' : 'x');
      if (order == 'a') acquired.permit.ReleaseAsync();
      if (order == 'r') Say(acquired.permit.Release().ok() ? 'r' : 'x');
    }
    _exit(0);
  }
  void Say(char report) const { (void)!write(reports_[1], &report, 1); }

  int orders_[2] = {-1, -1};
  int reports_[2] = {-1, -1};
  pid_t pid_ = -1;
};

}  // namespace

TEST_CASE("a holder that is cut off loses its permit before another has its token") {
  // By a network that drops packets, and by one that has ended its connection at the server.
  for (const Mode mode : {Mode::kBlackHole, Mode::kServerSideGone}) {
    for (const std::string step : {"granted", "kept", "asked to keep"}) {
      CAPTURE(step);
      TestServer server(ShortLived());
      CuttingProxy proxy(server.address());
      const Holder second(server.address(), "second");
      const Holder first(proxy.address(), "first");
      std::promise<std::string> told;
      Acquired acquired = first.client->Acquire(
          kFlow,
          {.on_lost = [&](const Grant&, const std::string& reason) { told.set_value(reason); }});
      REQUIRE(acquired.ok());
      if (step == "kept") CHECK(first.IsKept());
      if (step == "asked to keep") acquired.permit.KeepAsync({});
      proxy.Set(mode);
      CHECK(KnewBefore(acquired, second.client.get()));
      const std::string reason = told.get_future().get();
      CHECK((reason == "resource_timeout" || reason == "client_offline"));
      CHECK(acquired.permit.valid_for() == 0ms);
      proxy.Set(Mode::kForward);
      const Released released = acquired.permit.Release();
      CHECK_MESSAGE(released.ok(), released.message);
      CHECK(released.lost);
      CHECK(IsEmpty(server));
    }
  }
}

TEST_CASE("what is acquired or released while cut off leaves no token behind") {
  for (const Mode mode : {Mode::kBlackHole, Mode::kServerSideGone}) {
    TestServer server(ShortLived());
    CuttingProxy proxy(server.address());
    const Holder holder(proxy.address(), "holder");
    Acquired acquired = holder.client->Acquire(kFlow);
    REQUIRE(acquired.ok());
    proxy.Set(mode);
    acquired.permit.ReleaseAsync();
    const Acquired late = holder.client->Acquire(kFlow, {.timeout = 200ms});
    CHECK((late.outcome == Outcome::kUnknown || late.outcome == Outcome::kUnavailable));
    proxy.Set(Mode::kForward);
    CHECK(holder.client->WaitConnected(Milliseconds(kPatienceMs)).ok());
    CHECK(IsEmpty(server));
    CHECK(holder.client->Acquire(kFlow, {.wait = 10s}).ok());
  }
}

TEST_CASE("a holder that was stopped finds its permit lost before it does anything else") {
  for (const std::string step : {"granted", "kept", "releasing"}) {
    CAPTURE(step);
    TestServer server(ShortLived());
    const HolderProcess stopped(server.address());
    REQUIRE(stopped.Report() == 'g');
    if (step == "kept") {
      stopped.Order('k');
      CHECK(stopped.Report() == 'k');
    }
    if (step == "releasing") stopped.Order('a');
    stopped.Signal(SIGSTOP);
    const Holder second(server.address(), "second");
    Acquired taken = second.client->Acquire(kFlow, {.wait = Milliseconds(kPatienceMs)});
    CHECK_MESSAGE(taken.ok(), taken.message);
    if (step != "releasing") stopped.Order('?');
    stopped.Signal(SIGCONT);
    if (step != "releasing") {
      CHECK(stopped.Report() == 'l');
      stopped.Order('r');
      CHECK(stopped.Report() == 'r');
    }
    CHECK(taken.permit.Release().ok());
    CHECK(IsEmpty(server));
  }
}

}  // namespace nowcalls::testing
