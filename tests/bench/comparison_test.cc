#include "bench/comparison.h"

#include <doctest/doctest.h>

namespace nowcalls::compare {
namespace {

Comparison TwoSides() {
  return {"50 x 1",
          "closed loop",
          {"nowcalls", "Redis"},
          {{"ops", "operations/s", 0, Target{Target::Kind::kRatioAtLeast, 1.3}},
           {"ready", "ready, s", 2, Target{Target::Kind::kRatioAtMost, 0.6}},
           {"p99", "p99, us", 1, Target{Target::Kind::kAtMost, 20}},
           {"cpu", "CPU, %", 0, std::nullopt}}};
}

std::vector<std::string> Verdicts(const Comparison& comparison) {
  std::vector<std::string> verdicts;
  const Json json = comparison.ToJson();
  for (const Json& figure : json.at("figures")) {
    verdicts.push_back(figure.contains("verdict") ? figure.at("verdict").get<std::string>() : "");
  }
  return verdicts;
}

TEST_CASE("a target is reached when the medians are on its side of the limit or at it") {
  Comparison comparison = TwoSides();
  for (const double operations : {120, 130, 900}) {
    comparison.Add(0, {{"ops", operations}, {"ready", 6}, {"p99", 20}, {"cpu", 1}});
    comparison.Add(1, {{"ops", 100}, {"ready", 10}, {"p99", 1}, {"cpu", 1}});
  }
  CHECK(Verdicts(comparison) == std::vector<std::string>{"reached", "reached", "reached", ""});
  CHECK(comparison.Count(Verdict::kReached) == 3);
}

TEST_CASE("a target is missed on the other side of its limit") {
  Comparison comparison = TwoSides();
  comparison.Add(0, {{"ops", 129}, {"ready", 6.1}, {"p99", 20.5}});
  comparison.Add(1, {{"ops", 100}, {"ready", 10}, {"p99", 1}});
  CHECK(Verdicts(comparison) == std::vector<std::string>{"missed", "missed", "missed", ""});
  CHECK(comparison.Count(Verdict::kMissed) == 3);
}

TEST_CASE("a target of a figure that one side lacks is neither reached nor missed") {
  Comparison comparison = TwoSides();
  comparison.Add(0, {{"ops", 1000}, {"ready", 6}, {"p99", 5}});
  CHECK(Verdicts(comparison) ==
        std::vector<std::string>{"not measured", "not measured", "reached", ""});
}

TEST_CASE("a server that could not keep up in one round has missed its targets") {
  Comparison comparison = TwoSides();
  comparison.Add(0, {{"ops", 1000}, {"ready", 1}, {"p99", 5}});
  comparison.Add(1, {{"ops", 100}, {"ready", 10}, {"p99", 5}});
  comparison.AddOverload(1, "round 2: too much");
  CHECK(comparison.Count(Verdict::kReached) == 3);
  comparison.AddOverload(0, "round 3: too much");
  CHECK(comparison.Count(Verdict::kMissed) == 3);
  CHECK(comparison.failures().empty());
  CHECK(comparison.Table().find("  Redis: round 2: too much\n") != std::string::npos);
}

TEST_CASE("the table of a comparison has the medians, their spread, the ratio and the verdict") {
  Comparison comparison("50 x 1", "closed loop", {"nowcalls", "Redis"},
                        {{"ops", "operations/s", 0, Target{Target::Kind::kRatioAtLeast, 1.3}},
                         {"p99", "p99, us", 1, std::nullopt}});
  for (const double value : {1000, 3000, 2000}) {
    comparison.Add(0, {{"ops", value}, {"p99", value / 100}});
    comparison.Add(1, {{"ops", value / 2}});
  }
  comparison.AddFailure("Redis, round 3 of 3: it ended");
  CHECK(comparison.Table() ==
        "50 x 1: closed loop\n"
        "                             nowcalls                Redis  ratio   target\n"
        "  operations/s  2,000  (1,000..3,000)  1,000  (500..1,500)   2.00  >= 1.3x  reached\n"
        "  p99, us          20.0  (10.0..30.0)                    -      -\n"
        "  failed: Redis, round 3 of 3: it ended\n");
}

TEST_CASE("the table of nowcalls alone has neither a second column nor a ratio") {
  Comparison comparison("mass expiry", "a million", {"nowcalls", ""},
                        {{"s", "reclaimed, s", 2, Target{Target::Kind::kAtMost, 2}}});
  comparison.Add(0, {{"s", 1.5}});
  CHECK(comparison.Table() ==
        "mass expiry: a million\n"
        "                nowcalls  target\n"
        "  reclaimed, s      1.50    <= 2  reached\n");
  const Json json = comparison.ToJson();
  CHECK_FALSE(json.at("figures").at(0).contains("ratio"));
  CHECK(json.at("figures").at(0).at("nowcalls").at("median") == 1.5);
  CHECK(json.at("rounds").at("nowcalls").at(0).at("s") == 1.5);
}

}  // namespace
}  // namespace nowcalls::compare
