// nowcalls::Embedded: the same service within the process.
#include "nowcalls/embedded.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nowcalls/client.h"
#include "support/admin.h"
#include "support/forgotten.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/server_process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

constexpr FlowId kSeven{7};

std::string RulesText(int level, const Json& cluster = Json::object()) {
  return RuleSet(RuleJson(7, level, cluster)).dump();
}

std::unique_ptr<Embedded> OpenAt(const std::string& data_dir) {
  Result<std::unique_ptr<Embedded>> opened =
      Embedded::Open({.data_dir = data_dir, .timeout = Milliseconds(kPatienceMs)});
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  return *std::move(opened);
}

// What a program does with any TokenService.
void UseService(TokenService* tokens) {
  Acquired first = tokens->Acquire(kSeven);
  REQUIRE_MESSAGE(first.ok(), first.message);
  CHECK(first.now_calls == 1);
  CHECK(first.permit.token().value > 0);
  const Acquired second = tokens->Acquire(kSeven);
  const Acquired third = tokens->Acquire(kSeven);
  CHECK(second.ok());
  CHECK(third.refused_by == RefusedBy::kLevel);
  std::future<Acquired> waits = tokens->AcquireFuture(kSeven, {.wait = 1min});
  CHECK(waits.wait_for(20ms) == std::future_status::timeout);
  CHECK(first.permit.Release().ok());
  CHECK(waits.get().ok());
  CHECK(tokens->Acquire(FlowId(8)).outcome == Outcome::kNoRule);
  CHECK(tokens->Request(kSeven).ok());
  CHECK(tokens->AcquireAll({{kSeven}}).ok());
}

// A service of a user's own: flows from 100 on are of the other one.
class TwoServices final : public TokenService {
 public:
  TwoServices(TokenService* low, TokenService* high) : low_(low), high_(high) {}

  void AcquireAsync(FlowId flow, const AcquireOptions& options,
                    std::function<void(Acquired)> done) override {
    ++acquires_;
    Of(flow)->AcquireAsync(flow, options, std::move(done));
  }
  void AcquireAllAsync(const std::vector<FlowDemand>& demands, const AcquireOptions& options,
                       std::function<void(AllAcquired)> done) override {
    Of(demands.front().flow)->AcquireAllAsync(demands, options, std::move(done));
  }
  void RequestAsync(FlowId flow, const RequestOptions& options,
                    std::function<void(Passed)> done) override {
    Of(flow)->RequestAsync(flow, options, std::move(done));
  }
  void RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                         const RequestOptions& options, std::function<void(Passed)> done) override {
    Of(flow)->RequestParamAsync(flow, values, options, std::move(done));
  }
  bool OnOwnThread() const override { return low_->OnOwnThread() || high_->OnOwnThread(); }
  int acquires() const { return acquires_; }

 private:
  TokenService* Of(FlowId flow) const { return flow < FlowId(100) ? low_ : high_; }

  TokenService* const low_;
  TokenService* const high_;
  std::atomic<int> acquires_{0};
};

}  // namespace

TEST_CASE("a program uses a server, a ledger of its own and memory in the same way") {
  SUBCASE("a server") {
    const TestServer server(RuleJson(7, 2));
    auto client =
        Client::Start({.addresses = {server.address()}, .timeout = Milliseconds(kPatienceMs)});
    REQUIRE(client.ok());
    UseService(client->get());
  }
  SUBCASE("a ledger") {
    const TempDir dir;
    const auto tokens = OpenAt(dir.Sub("data"));
    CHECK(*tokens->LoadRules("default", RulesText(2)) == 1);
    UseService(tokens.get());
  }
  SUBCASE("memory") {
    const auto tokens = OpenAt("");
    CHECK(*tokens->LoadRules("default", RulesText(2)) == 1);
    UseService(tokens.get());
  }
}

TEST_CASE("many threads share a service, and the level holds") {
  constexpr int kLevel = 3;
  const auto tokens = OpenAt("");
  REQUIRE(tokens->LoadRules("default", RulesText(kLevel)).ok());
  std::atomic<int> inside{0};
  std::atomic<int> over{0};
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const Acquired acquired = tokens->Acquire(kSeven, {.wait = 1min});
        if (!acquired) continue;
        ++granted;
        if (++inside > kLevel) ++over;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(granted == 8 * 50);
  CHECK(over == 0);
}

TEST_CASE("what is wrong with rules or options is named, and the rules of before stay") {
  const auto tokens = OpenAt("");
  REQUIRE(tokens->LoadRules("default", RulesText(2)).ok());
  const Status wrong = tokens->LoadRules("default", R"([{"resource": "a"}])").status();
  CHECK(wrong.code() == StatusCode::kInvalidArgument);
  CHECK(tokens->Acquire(kSeven).ok());
  CHECK(Embedded::Open({.client_id = "@me"}).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("tokens and rules outlive the service, and the tools read its ledger") {
  const TempDir dir;
  const std::string data_dir = dir.Sub("data");
  const Json cluster = {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}};
  TokenId token{};
  {
    const auto tokens = OpenAt(data_dir);
    REQUIRE(tokens->LoadRules("default", RulesText(1, cluster)).ok());
    Acquired acquired = tokens->Acquire(kSeven);
    REQUIRE(acquired.ok());
    token = acquired.permit.token();
    CHECK(Embedded::Open({.data_dir = data_dir}).status().code() == StatusCode::kAlreadyExists);
    // The program ends with the token out: only the destructor of the permit would release it.
    Forget(std::move(acquired.permit));
  }
  const Finished verified = RunAdmin(Source::Offline(data_dir), {"verify"});
  CHECK_MESSAGE(verified.exit_code == 0, verified.out, verified.err);
  const std::vector<Json> rows = AdminRows(Source::Offline(data_dir), {"tokens"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("token_id").get<uint64_t>() == token.value);
  CHECK(rows[0].at("client_id") == "embedded");
  const auto tokens = OpenAt(data_dir);
  const Acquired second = tokens->Acquire(kSeven);
  CHECK(second.refused_by == RefusedBy::kLevel);
  CHECK(second.now_calls == 1);
}

TEST_CASE("a process that is killed leaves exactly the tokens that it was told of") {
  const TempDir dir;
  const std::string data_dir = dir.Sub("data");
  Process victim(
      {.argv = {std::string(NOWCALLS_TEST_BIN_DIR) + "/nowcalls-embedded-victim", data_dir},
       .environment = {},
       .stdout_path = dir.Sub("told")});
  const auto told = [&] {
    const std::string lines = ReadFileToString(dir.Sub("told"));
    return std::count(lines.begin(), lines.end(), '\n');
  };
  REQUIRE(PollUntil(kPatienceMs, [&] { return told() == 50; }));
  victim.Signal(SIGKILL);
  victim.Wait();
  CHECK(RunAdmin(Source::Offline(data_dir), {"verify"}).exit_code == 0);
  std::string ids;
  for (const Json& row : AdminRows(Source::Offline(data_dir), {"tokens"})) {
    ids += std::to_string(row.at("token_id").get<uint64_t>()) + "\n";
  }
  CHECK(ids == ReadFileToString(dir.Sub("told")));
  const auto tokens = OpenAt(data_dir);
  CHECK(tokens->Acquire(kSeven).now_calls == 51);
}

TEST_CASE("a token that nobody keeps is taken back and told lost") {
  const auto tokens = OpenAt("");
  REQUIRE(tokens->LoadRules("default", RulesText(1, {{"resourceTimeout", 100}})).ok());
  const Acquired kept = tokens->Acquire(kSeven, {.keep = KeepMode::kOff});
  REQUIRE(kept.ok());
  CHECK(PollUntil(kPatienceMs, [&] { return kept.permit.lost(); }));
  CHECK(kept.permit.lost_reason() == "resource_timeout");
  CHECK(tokens->Acquire(kSeven, {.wait = Milliseconds(kPatienceMs)}).ok());
}

TEST_CASE("a service of a user's own stands before others") {
  const TestServer server(RuleJson(200, 1));
  auto client =
      Client::Start({.addresses = {server.address()}, .timeout = Milliseconds(kPatienceMs)});
  REQUIRE(client.ok());
  const auto local = OpenAt("");
  REQUIRE(local->LoadRules("default", RulesText(1)).ok());
  TwoServices both(local.get(), client->get());
  const Acquired low = both.Acquire(kSeven);
  const Acquired high = both.Acquire(FlowId(200));
  CHECK(low.ok());
  CHECK(high.ok());
  CHECK(both.acquires() == 2);
  RpcClient rpc = server.Connect();
  CHECK(rpc.Call("flow", {200}).result.at("now_calls") == 1);
  CHECK(both.Acquire(FlowId(7)).refused_by == RefusedBy::kLevel);
}

}  // namespace nowcalls::testing
