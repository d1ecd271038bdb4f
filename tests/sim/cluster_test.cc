// Writers that are deposed, and nodes that take over, told step by step.
#include "sim/cluster.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/scenario.h"

namespace nowcalls::sim {
namespace {

const std::vector<SimRule> kRules = {{.flow = 1, .name_space = "shop", .count = 2}};

bool Tells(const Scenario::Lines& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST_CASE("a batch of a deposed writer that is not in the log was never granted") {
  Scenario s(kRules, 2);
  SimClient& anna = s.Client("anna");
  s.server().HoldCommits(true);
  anna.Acquire({.flow = 1, .request_id = 7});
  s.Settle();
  s.Depose(/*batch_lands=*/false);
  CHECK(s.tokens_in_ledger() == 0);
  CHECK(anna.held().empty());
  Scenario::Lines told = s.Told();
  CHECK(Tells(told, "server: is deposed in term 1, with a batch under way"));
  CHECK(Tells(told, "anna: is disconnected"));
  s.Open(&anna);
  CHECK(Tells(s.Told(), "anna: has 0 tokens back"));
  anna.Acquire(anna.unsettled().at(7));
  s.Settle();
  CHECK(anna.held().size() == 1);
  CHECK(s.tokens_in_ledger() == 1);
}

TEST_CASE("a batch of a deposed writer that is in the log is granted by both") {
  Scenario s(kRules, 2);
  SimClient& anna = s.Client("anna");
  s.server().HoldCommits(true);
  anna.Acquire({.flow = 1, .request_id = 7});
  s.Settle();
  s.Depose(/*batch_lands=*/true);
  CHECK(s.tokens_in_ledger() == 1);
  CHECK(anna.held().size() == 1);
  CHECK(Tells(s.Told(), "anna: is disconnected"));
  s.Open(&anna);
  CHECK(Tells(s.Told(), "anna: has 1 tokens back"));
}

TEST_CASE("a deposed writer refuses by what it knows, and grants nothing, until it is told") {
  Scenario s(kRules, 2);
  SimClient& anna = s.Client("anna");
  s.TakeClaim(/*batch_lands=*/false);
  s.Told();
  anna.Acquire({.flow = 1, .count = 3});
  s.Settle();
  CHECK(Tells(s.Told(), "anna: is refused flow 1: BLOCKED over_level"));
  anna.Acquire({.flow = 1});
  s.Settle();
  CHECK(anna.held().empty());
  CHECK(s.tokens_in_ledger() == 0);
  const Scenario::Lines told = s.Told();
  CHECK(Tells(told, "server: is deposed in term 1, with a batch under way"));
  CHECK(Tells(told, "anna: is disconnected"));
}

TEST_CASE("a token lasts as long as it was granted for, whatever clock the next writer has") {
  constexpr int64_t kHoldMs = 1'000;
  Scenario s({{.flow = 1, .name_space = "shop", .count = 2, .resource_timeout_ms = 30'000}}, 2);
  SimClient& anna = s.Client("anna");
  anna.Acquire({.flow = 1, .hold_ms = kHoldMs});
  s.Settle();
  REQUIRE(s.tokens_in_ledger() == 1);
  s.TakeClaim(/*batch_lands=*/false);
  s.Pass(kHoldMs - 50);
  CHECK(s.tokens_in_ledger() == 1);
}

TEST_CASE("a writer that was deposed leads again with all that the other has committed") {
  Scenario s(kRules, 2);
  SimClient& anna = s.Client("anna");
  SimServer& first = s.server();
  s.Take(&anna, 1);
  s.Depose(/*batch_lands=*/false);
  REQUIRE(&s.server() != &first);
  s.Open(&anna);
  s.Take(&anna, 1);
  s.Depose(/*batch_lands=*/false);
  REQUIRE(&s.server() == &first);
  CHECK(s.tokens_in_ledger() == 2);
  s.Open(&anna);
  anna.Acquire({.flow = 1});
  s.Settle();
  CHECK(Tells(s.Told(), "anna: is refused flow 1: BLOCKED level"));
}

}  // namespace
}  // namespace nowcalls::sim
