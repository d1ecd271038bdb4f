// The life of an embedded service: its ends, its ledger's failures, and servers before and after
// it.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nowcalls/embedded.h"
#include "support/admin.h"
#include "support/forgotten.h"
#include "support/forked_child.h"
#include "support/poll_until.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

constexpr FlowId kEight{8};

std::string RulesOfEight(int level, const Json& cluster = Json::object()) {
  return RuleSet(RuleJson(8, level, cluster)).dump();
}

const Json& LongLived() {
  static const Json times = {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}};
  return times;
}

std::unique_ptr<Embedded> OpenWith(const EmbeddedOptions& options) {
  Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options);
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  return *std::move(opened);
}

std::unique_ptr<Embedded> OpenWithRules(const std::string& data_dir, int level) {
  auto tokens = OpenWith({.data_dir = data_dir, .timeout = Milliseconds(kPatienceMs)});
  REQUIRE(tokens->LoadRules("default", RulesOfEight(level, LongLived())).ok());
  return tokens;
}

// The working directory, for as long as it lives.
class InDirectory {
 public:
  explicit InDirectory(const std::string& to) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(to);
  }
  ~InDirectory() { std::filesystem::current_path(before_); }

 private:
  const std::filesystem::path before_;
};

}  // namespace

TEST_CASE("tokens and rules go from a server to an embedded service and back") {
  TestServer server(RuleJson(8, 3, LongLived()));
  RpcClient before = server.Connect("embedded");
  REQUIRE(before.Call("acquire", {8, 1}).result[0] == 0);
  CHECK(server.server().Terminate() == 0);
  uint64_t of_program = 0;
  {
    const auto tokens = OpenWith({.data_dir = server.data_dir(), .rejoin = true});
    Acquired acquired = tokens->Acquire(kEight);
    REQUIRE(acquired.ok());
    CHECK(acquired.now_calls == 2);
    of_program = acquired.permit.token().value;
    Forget(std::move(acquired.permit));
  }
  CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
  server.server().Start();
  RpcClient after = server.Connect("embedded");
  CHECK(after.Call("flow", {8}).result.at("now_calls") == 2);
  CHECK(after.Call("release", {of_program}).result[0] == 6);
  CHECK(after.Call("flow", {8}).result.at("now_calls") == 1);
}

TEST_CASE("a ledger that fails ends the service at once, and not the process") {
  const TempDir dir;
  const std::string data_dir = dir.Sub("data");
  auto tokens = OpenWith({.data_dir = data_dir, .timeout = 1h});
  REQUIRE(tokens->LoadRules("default", RulesOfEight(1, LongLived())).ok());
  Acquired held = tokens->Acquire(kEight);
  REQUIRE(held.ok());
  const uint64_t token = held.permit.token().value;
  std::future<Acquired> waits = tokens->AcquireFuture(kEight, {.wait = 1h});
  CHECK(waits.wait_for(20ms) == std::future_status::timeout);

  std::filesystem::rename(data_dir + "/ledger", dir.Sub("aside"));
  CHECK(waits.get().outcome == Outcome::kUnknown);
  const Acquired late = tokens->Acquire(kEight);
  CHECK(late.outcome == Outcome::kUnavailable);
  CHECK(Contains(late.message, "the ledger failed"));
  CHECK(tokens->AcquireFuture(kEight).get().outcome == Outcome::kUnavailable);
  CHECK(tokens->LoadRules("default", "[]").status().code() == StatusCode::kAlreadyExists);
  CHECK(held.permit.Release().outcome == Outcome::kUnavailable);
  tokens.reset();

  std::filesystem::remove_all(data_dir + "/ledger");
  std::filesystem::rename(dir.Sub("aside"), data_dir + "/ledger");
  const std::vector<Json> rows = AdminRows(Source::Offline(data_dir), {"tokens"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("token_id").get<uint64_t>() == token);
  tokens = OpenWith({.data_dir = data_dir});
  CHECK(tokens->Acquire(kEight).refused_by == RefusedBy::kLevel);
}

TEST_CASE("a grant that cannot be written is not told") {
  const TempDir dir;
  const auto tokens = OpenWithRules(dir.Sub("data"), 2);
  std::filesystem::rename(dir.Sub("data/ledger"), dir.Sub("aside"));
  const Acquired acquired = tokens->Acquire(kEight);
  // Unavailable if the loop has looked before.
  CHECK((acquired.outcome == Outcome::kUnknown || acquired.outcome == Outcome::kUnavailable));
  CHECK_FALSE(acquired.permit);
}

TEST_CASE("after a commit that failed no callback tells a grant, whoever asked or waited") {
  constexpr int kAsked = 200;
  const TempDir dir;
  const std::string data_dir = dir.Sub("data");
  auto tokens = OpenWith({.data_dir = data_dir, .timeout = Milliseconds(kPatienceMs)});
  const Json rules = Json::array({RuleJson(8, 1000, LongLived()), RuleJson(9, 1, LongLived())});
  REQUIRE(tokens->LoadRules("default", RuleSet(rules).dump()).ok());
  Acquired held = tokens->Acquire(FlowId(9));
  REQUIRE(held.ok());
  std::future<Acquired> waits = tokens->AcquireFuture(FlowId(9), {.wait = 1h});
  REQUIRE(tokens->Acquire(kEight).permit.Release().ok());  // The waiter is in its line by now.
  std::atomic<int> told{0};
  std::atomic<int> without_grant{0};
  const auto note = [&](const Acquired& one) {
    const bool unsure = one.outcome == Outcome::kUnknown;
    if (unsure || one.outcome == Outcome::kUnavailable) ++without_grant;
    ++told;
  };

  std::filesystem::rename(data_dir + "/ledger", dir.Sub("aside"));
  held.permit.ReleaseAsync();  // In memory this makes room for the waiter.
  for (int i = 0; i < kAsked; ++i) tokens->AcquireAsync(kEight, {}, note);
  CHECK(waits.get().outcome == Outcome::kUnknown);
  CHECK(PollUntil(kPatienceMs, [&] { return told == kAsked; }));
  CHECK(tokens->Acquire(kEight).outcome == Outcome::kUnavailable);
  tokens.reset();
  CHECK(told == kAsked);
  CHECK(without_grant == kAsked);

  std::filesystem::remove_all(data_dir + "/ledger");
  std::filesystem::rename(dir.Sub("aside"), data_dir + "/ledger");
  const std::vector<Json> rows = AdminRows(Source::Offline(data_dir), {"tokens"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("flow_id") == 9);
}

TEST_CASE("a program may change its directory") {
  const TempDir dir;
  const InDirectory home(dir.path());
  const auto tokens = OpenWithRules("data", 1);
  const TempDir elsewhere;
  const InDirectory away(elsewhere.path());
  for (int i = 0; i < 3; ++i) {
    const Acquired acquired = tokens->Acquire(kEight);
    CHECK_MESSAGE(acquired.ok(), acquired.message);
  }
  CHECK(std::filesystem::exists(dir.Sub("data/ledger/CURRENT")));
}

TEST_CASE("a forked child leaves the ledger to its parent") {
  const TempDir dir;
  auto tokens = OpenWithRules(dir.Sub("data"), 2);
  Acquired held = tokens->Acquire(kEight);
  REQUIRE(held.ok());
  CHECK(ChildFinds([&] {
    bool right = tokens->Acquire(kEight).outcome == Outcome::kBadRequest;
    right = right && !tokens->LoadRules("default", "[]").ok();
    { const Permit dropped = std::move(held.permit); }
    tokens.reset();
    return right;
  }));
  CHECK(tokens->Acquire(kEight).now_calls == 2);
  CHECK(held.permit.Release().ok());
}

TEST_CASE("calls that wait are told of the end, and permits outlive it") {
  for (const bool on_disk : {false, true}) {
    CAPTURE(on_disk);
    const TempDir dir;
    auto tokens = OpenWithRules(on_disk ? dir.Sub("data") : "", 1);
    Acquired held = tokens->Acquire(kEight);
    REQUIRE(held.ok());
    std::future<Acquired> waits = tokens->AcquireFuture(kEight, {.wait = 1h});
    CHECK(waits.wait_for(20ms) == std::future_status::timeout);
    tokens.reset();
    CHECK(waits.get().outcome == Outcome::kUnknown);
    CHECK(held.permit.Release().outcome == Outcome::kUnavailable);
  }
}

TEST_CASE("what a callback asks is answered, and it must not wait") {
  const auto tokens = OpenWithRules("", 1);
  std::promise<std::vector<Outcome>> told;
  tokens->AcquireAsync(kEight, {}, [&](Acquired first) {
    CHECK(tokens->OnOwnThread());
    const Outcome blocking = tokens->Acquire(kEight).outcome;
    const StatusCode rules = tokens->LoadRules("default", "[]").status().code();
    CHECK(rules == StatusCode::kFailedPrecondition);
    first.permit.ReleaseAsync();
    tokens->AcquireAsync(kEight, {}, [&, blocking](const Acquired& second) {
      told.set_value({blocking, second.outcome});
    });
  });
  CHECK(told.get_future().get() == std::vector<Outcome>{Outcome::kBadRequest, Outcome::kOk});
  CHECK_FALSE(tokens->OnOwnThread());
}

TEST_CASE("more threads may wait than a connection to a server allows") {
  constexpr int kEach = 700;  // Two flows, since a rule has at most 1000 waiters.
  const auto tokens = OpenWith({.timeout = Milliseconds(kPatienceMs)});
  REQUIRE(
      tokens->LoadRules("default", RuleSet(Json::array({RuleJson(8, 1), RuleJson(9, 1)})).dump())
          .ok());
  std::vector<Acquired> held;
  for (const FlowId flow : {kEight, FlowId(9)}) held.push_back(tokens->Acquire(flow));
  std::atomic<int> granted{0};
  for (int i = 0; i < kEach; ++i) {
    for (const FlowId flow : {kEight, FlowId(9)}) {
      tokens->AcquireAsync(flow, {.wait = 1h}, [&](const Acquired& one) { granted += one.ok(); });
    }
  }
  for (Acquired& one : held) CHECK(one.permit.Release().ok());
  CHECK(PollUntil(kPatienceMs, [&] { return granted == 2 * kEach; }));
}

TEST_CASE("a permit is kept beyond its hold if its rule says so") {
  const auto tokens = OpenWith({.timeout = Milliseconds(kPatienceMs)});
  REQUIRE(tokens
              ->LoadRules("default", RulesOfEight(1, {{"resourceTimeout", 60'000},
                                                      {"resourceTimeoutStrategy", 2}}))
              .ok());
  const Acquired kept = tokens->Acquire(kEight, {.hold = 300ms});
  REQUIRE(kept.ok());
  // Several holds have passed when this one gives up.
  const Acquired late = tokens->Acquire(kEight, {.wait = 1500ms});
  CHECK(late.outcome == Outcome::kRefused);
  CHECK_FALSE(kept.permit.lost());
}

TEST_CASE("wrong rules are named by rule and field, wrong options by their names") {
  const auto tokens = OpenWithRules("", 2);
  const Status wrong =
      tokens->LoadRules("default", RulesOfEight(2, {{"resourceTimeout", -1}})).status();
  CHECK(wrong.code() == StatusCode::kInvalidArgument);
  CHECK(Contains(wrong.message(), "resourceTimeout"));
  CHECK(wrong.message().starts_with("rule 1 "));
  CHECK(tokens->LoadRules("", "[]").status().code() == StatusCode::kInvalidArgument);
  CHECK(tokens->Acquire(kEight).ok());
  const auto refusal = [](const EmbeddedOptions& options) {
    return Embedded::Open(options).status().message();
  };
  CHECK(refusal({.name_space = ""}).starts_with("name_space: "));
  CHECK(refusal({.client_id = "@me"}).starts_with("client_id: "));
  CHECK(refusal({.timeout = 0ms}) == "timeout must be 1 ms to 1 h");
  for (const double factor : {1.9, 3.1, std::nan("")}) {
    CHECK(refusal({.resource_timeout_factor = factor}) == "resource_timeout_factor must be 2 to 3");
  }
}

TEST_CASE("lines for the log come on the service's own thread, which may ask") {
  std::mutex mutex;
  std::string lines;
  std::atomic<int> answered{0};
  Embedded* service = nullptr;
  const TempDir dir;
  const auto tokens =
      OpenWith({.data_dir = dir.Sub("data"), .log = [&](LogLevel, std::string_view line) {
                  const std::lock_guard lock(mutex);
                  lines += std::string(line) + "\n";
                  if (service == nullptr) return;
                  CHECK(service->OnOwnThread());
                  service->AcquireAsync(kEight, {}, [&](const Acquired&) { ++answered; });
                }});
  REQUIRE(tokens->LoadRules("default", RulesOfEight(1)).ok());
  {
    const std::lock_guard lock(mutex);
    service = tokens.get();
  }
  REQUIRE(tokens->LoadRules("default", RulesOfEight(2)).ok());
  CHECK(PollUntil(kPatienceMs, [&] { return answered > 0; }));
  const std::lock_guard lock(mutex);
  CHECK(Contains(lines, "rule"));
  service = nullptr;
}

}  // namespace nowcalls::testing
