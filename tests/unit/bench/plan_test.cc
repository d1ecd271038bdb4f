#include "bench/plan.h"

#include <doctest/doctest.h>

#include "bench/nowcalls_target.h"
#include "support/json.h"

namespace nowcalls::bench {
namespace {

TEST_CASE("the flow of tokens that expire stands behind those of the load") {
  Options options;
  options.flows = 3;
  options.first_flow = 50;
  options.level = 9;
  options.expire_rate = 10;
  options.expire_after_ms = 300;
  const std::vector<Flow> flows = PlanFlows(options);
  REQUIRE(flows.size() == 4);
  CHECK(flows[2].id == 52);
  CHECK(flows[2].level == 9);
  CHECK(flows[2].lifetime_ms >= 600'000);
  CHECK(flows[2].client_offline_ms == 2'000);  // What a load leaves behind goes with it.
  CHECK(flows[3].id == 53);
  CHECK(flows[3].lifetime_ms == 300);
  const LoadPlan plan = PlanRun(options);
  CHECK(plan.expire_flow == 3);
  CHECK(plan.expire_rate == 10);
}

TEST_CASE("half of an open loop's operations are acquires") {
  Options options;
  options.rate = 1000;
  const LoadPlan plan = PlanRun(options);
  REQUIRE(plan.workload.has_value());
  CHECK(plan.workload->arrivals_per_s == 500);
  CHECK(plan.workload->release);
  CHECK(plan.workload->lanes == options.in_flight);
}

TEST_CASE("an open loop has lanes besides for the tokens that it holds") {
  Options options;
  options.rate = 10'000;
  options.connections = 4;
  options.in_flight = 16;
  options.hold_ms = 100;
  CHECK(LanesOf(options) == 16 + 125);
  options.rate = 0;
  CHECK(LanesOf(options) == 16);
}

TEST_CASE("fill keeps its tokens for as long as it was told, and is done after the last") {
  Options options;
  options.command = Command::kFill;
  options.tokens = 1000;
  options.hold_ms = 7000;
  CHECK(PlanFlows(options).at(0).lifetime_ms == 7000);
  CHECK(PlanFlows(options).at(0).client_offline_ms == 0);
  options.client_offline_ms = 300;
  CHECK(PlanFlows(options).at(0).client_offline_ms == 300);
  const LoadPlan plan = PlanRun(options);
  CHECK(plan.workload->cycles_max == 1000);
  CHECK_FALSE(plan.workload->release);
  CHECK(plan.warm_up_ns == 0);
}

TEST_CASE("idle connections need no flow and no load") {
  Options options;
  options.command = Command::kIdle;
  CHECK(PlanFlows(options).empty());
  CHECK_FALSE(PlanRun(options).workload.has_value());
}

TEST_CASE("rules say how long tokens live by way of the server's own factor") {
  const std::vector<Flow> flows = {{1, 5, 1000}, {2, 6, 1001}, {3, 7, 5000}};
  const testing::Json rules =
      testing::Json::parse(RulesJson(flows, 1, 3, 2.5, /*grade=*/0, /*by_value=*/false));
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].at("count") == 6);
  CHECK(rules[0].at("grade") == 0);
  CHECK(rules[0].at("clusterMode") == true);
  CHECK(rules[0].at("clusterConfig").at("flowId") == 2);
  CHECK(rules[0].at("clusterConfig").at("thresholdType") == 1);
  CHECK(rules[0].at("clusterConfig").at("resourceTimeout") == 401);
  CHECK(rules[0].at("clusterConfig").at("clientOfflineTime") == 1001);
  CHECK(rules[1].at("clusterConfig").at("resourceTimeout") == 2000);
  CHECK_FALSE(rules[0].contains("paramIdx"));
  const auto by_value =
      testing::Json::parse(RulesJson(flows, 0, 1, 2.5, /*grade=*/1, /*by_value=*/true));
  CHECK(by_value[0].at("paramIdx") == 0);
  CHECK(by_value[0].at("grade") == 1);
}

TEST_CASE("a request for calls a second is one operation, and gives nothing back") {
  Options options;
  options.rate = 1000;
  CHECK(PlanRun(options).workload->arrivals_per_s == 500);
  CHECK(PlanRun(options).workload->release);
  options.operation = Operation::kRequest;
  CHECK(PlanRun(options).workload->arrivals_per_s == 1000);
  CHECK_FALSE(PlanRun(options).workload->release);
}

}  // namespace
}  // namespace nowcalls::bench
