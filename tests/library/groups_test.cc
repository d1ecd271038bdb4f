// acquire_all through the client library: many clients over random sets of flows.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "library/clients.h"
#include "support/sample.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

constexpr int kFlows = 6;
constexpr int kLevel = 5;
constexpr int kClients = 50;

// What the holders themselves count, beside the server.
struct Ground {
  std::array<std::atomic<int>, kFlows> inside{};
  std::atomic<int> over{0};     // Times that a level was exceeded.
  std::atomic<int> partial{0};  // Grants of fewer permits than flows.
  std::atomic<int> grants{0};
  std::atomic<int> refusals{0};
  std::atomic<int> failures{0};
};

std::vector<FlowDemand> DrawDemands(Prng* prng) {
  std::vector<FlowDemand> demands;
  for (int flow = 0; flow < kFlows; ++flow) {
    if (prng->Below(2) == 0) continue;
    demands.push_back(
        {.flow = FlowId(flow + 1), .count = 1 + static_cast<uint32_t>(prng->Below(2))});
  }
  if (demands.empty()) demands.push_back({.flow = FlowId(1)});
  // In any order: the server has one of its own.
  for (size_t i = demands.size(); i > 1; --i) std::swap(demands[i - 1], demands[prng->Below(i)]);
  return demands;
}

void Enter(const std::vector<FlowDemand>& demands, Ground* ground) {
  for (const FlowDemand& demand : demands) {
    const int count = static_cast<int>(demand.count);
    if ((ground->inside[demand.flow.value - 1] += count) > kLevel) ++ground->over;
  }
}

void Leave(const std::vector<FlowDemand>& demands, Ground* ground) {
  for (const FlowDemand& demand : demands) {
    ground->inside[demand.flow.value - 1] -= static_cast<int>(demand.count);
  }
}

void LiveUntil(int64_t end_ms, Client* client, uint64_t seed, Ground* ground) {
  Prng prng(seed);
  while (BoottimeMs() < end_ms) {
    const std::vector<FlowDemand> demands = DrawDemands(&prng);
    AcquireOptions options;
    options.wait = Milliseconds(prng.Between(0, 200));
    options.prioritized = prng.Below(4) == 0;
    AllAcquired acquired = client->AcquireAll(demands, options);
    if (acquired.outcome == Outcome::kRefused) {
      ++ground->refusals;
      continue;
    }
    if (!acquired.ok()) {
      ++ground->failures;
      continue;
    }
    ++ground->grants;
    if (acquired.permits.size() != demands.size()) ++ground->partial;
    Enter(demands, ground);
    std::this_thread::yield();
    Leave(demands, ground);
  }
}

}  // namespace

TEST_CASE("fifty clients over random sets of flows: none hangs, no level is exceeded") {
  Json rules = Json::array();
  for (int flow = 1; flow <= kFlows; ++flow) rules.push_back(RuleJson(flow, kLevel));
  TestServer server(rules);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(StartClient(server.address(), "client-" + std::to_string(i)));
  }
  Ground ground;
  const int64_t end_ms = BoottimeMs() + (Whole() ? 60'000 : 3'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back(LiveUntil, end_ms, clients[i].get(), SampleSeed() + i, &ground);
  }
  for (std::thread& thread : threads) thread.join();
  MESSAGE(ground.grants.load(), " groups granted, ", ground.refusals.load(), " refused");
  CHECK(ground.grants > kClients);
  CHECK(ground.over == 0);
  CHECK(ground.partial == 0);
  CHECK(ground.failures == 0);
  for (const auto& client : clients) CHECK(client->Close(1min).ok());
  RpcClient rpc = server.Connect();
  for (int flow = 1; flow <= kFlows; ++flow) CHECK(NowCalls(&rpc, FlowId(flow)) == 0);
}

TEST_CASE("a group is refused with the flow that is in its way, and none of it is held") {
  TestServer server(Json::array({RuleJson(1, 2), RuleJson(2, 1)}));
  RpcClient rpc = server.Connect();
  const auto client = StartClient(server.address(), "worker");
  AllAcquired first = client->AcquireAll({{FlowId(2)}, {FlowId(1)}});
  REQUIRE(first.permits.size() == 2);
  CHECK(first.permits[0].grant().flow == FlowId(2));
  const AllAcquired second = client->AcquireAll({{FlowId(1)}, {FlowId(2)}});
  CHECK(second.outcome == Outcome::kRefused);
  CHECK(second.flow == FlowId(2));
  CHECK(second.message == "flow 2 refused by level: 1 of 1 in progress");
  CHECK(NowCalls(&rpc, FlowId(1)) == 1);
  CHECK(client->AcquireAll({{FlowId(1)}, {FlowId(3)}}).outcome == Outcome::kNoRule);
  CHECK(client->AcquireAll({}).outcome == Outcome::kBadRequest);
  CHECK(client->AcquireAll({{FlowId(1)}, {FlowId(1)}}).outcome == Outcome::kBadRequest);
  CHECK(first.permits[0].Release().ok());
  CHECK(client->AcquireAll({{FlowId(1)}, {FlowId(2)}}).ok());
}

}  // namespace nowcalls::testing
