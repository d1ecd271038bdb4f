// Writers that are deposed, and nodes that take over, told step by step.
#include "sim/cluster.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/scenario.h"

namespace nowcalls::sim {
namespace {

const std::vector<SimRule> kRules = {{.flow = 1, .name_space = "shop", .count = 2}};

bool Tells(const Scenario::Lines& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

// What has happened, one line below the other.
std::string Story(Scenario* s) {
  std::string text;
  for (const std::string& line : s->Told()) text += line + "\n";
  return text;
}

TEST_CASE("a batch of a deposed writer that is not in the log was never granted") {
  Scenario s(kRules, 2);
  SimClient& anna = s.Client("anna");
  s.server().HoldCommits(true);
  anna.Acquire({.flow = 1, .request_id = 7});
  s.Settle();
  s.Told();
  s.Depose(/*batch_lands=*/false);
  CHECK(s.tokens_in_ledger() == 0);
  CHECK(anna.held().empty());
  s.Open(&anna);
  anna.Acquire(anna.unsettled().at(7));
  s.Settle();
  CHECK(Story(&s) == "");
}

TEST_CASE("a batch of a deposed writer that is in the log is granted by the next, not by the old") {
  Scenario s(kRules, 2);
  SimClient& anna = s.Client("anna");
  s.server().HoldCommits(true);
  anna.Acquire({.flow = 1, .request_id = 7});
  s.Settle();
  s.Told();
  s.Depose(/*batch_lands=*/true);
  CHECK(s.tokens_in_ledger() == 1);
  CHECK(anna.held().empty());
  s.Open(&anna);
  anna.Acquire(anna.unsettled().at(7));
  s.Settle();
  CHECK(Story(&s) == "");
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
