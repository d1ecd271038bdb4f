#include "bench/compare_options.h"

#include <doctest/doctest.h>

#include <set>

namespace nowcalls::compare {
namespace {

ParsedCompareOptions Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "nowcalls-compare");
  return ParseCompareOptions(static_cast<int>(words.size()), words.data());
}

std::vector<std::string> Names(const Result<std::vector<Scenario>>& scenarios) {
  std::vector<std::string> names;
  for (const Scenario& scenario : *scenarios) names.push_back(scenario.name);
  return names;
}

TEST_CASE("nowcalls-compare takes fifteen rounds of four seconds unless told otherwise") {
  const ParsedCompareOptions parsed = Parse({});
  REQUIRE(parsed.options.has_value());
  CHECK(parsed.options->sizes.rounds == 15);
  CHECK(parsed.options->sizes.duration_s == 4);
  CHECK(parsed.options->sizes.tokens == 1'000'000);
  CHECK(Parse({"--rounds", "3", "--duration", "0.5"}).options->sizes.rounds == 3);
}

TEST_CASE("--quick makes everything small but for what is given besides") {
  const Sizes quick = Parse({"--quick"}).options->sizes;
  CHECK(quick.rounds == 1);
  CHECK(quick.tokens < 100'000);
  const Sizes more = Parse({"--quick", "--rounds", "2", "--duration", "3"}).options->sizes;
  CHECK(more.rounds == 2);
  CHECK(more.duration_s == 3);
  CHECK(more.tokens == quick.tokens);
}

TEST_CASE("nowcalls-compare ends with 64 for what it does not understand") {
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{
           {"--rounds", "0"}, {"--rounds", "many"}, {"--duration", "-1"}, {"all"}, {"--qick"}}) {
    const ParsedCompareOptions parsed = Parse(words);
    CAPTURE(words[0]);
    CHECK_FALSE(parsed.options.has_value());
    CHECK(parsed.exit_code == 64);
    CHECK(parsed.err.starts_with("nowcalls-compare: "));
  }
  CHECK(Parse({"--help"}).exit_code == 0);
  CHECK(Parse({"--help"}).out.find("Exit codes") != std::string::npos);
}

TEST_CASE("scenarios are selected by their whole names") {
  const std::vector<Scenario> all = AllScenarios(Sizes{});
  CHECK(Names(Select(all, "")).size() == all.size());
  CHECK(Names(Select(all, "50 x 1")) == std::vector<std::string>{"50 x 1"});
  CHECK(Names(Select(all, "50 x (1|64)")) == std::vector<std::string>{"50 x 64", "50 x 1"});
  CHECK(Select(all, "50 x").status().message().find("'50 x 64'") != std::string::npos);
  CHECK(Select(all, "(").status().message().find("no regular expression") != std::string::npos);
}

TEST_CASE("every scenario has a name of its own, a title and something to judge") {
  std::set<std::string> names;
  for (const Scenario& scenario : AllScenarios(Sizes{})) {
    CAPTURE(scenario.name);
    CHECK(names.insert(scenario.name).second);
    CHECK_FALSE(scenario.title.empty());
    const Comparison none(scenario.name, scenario.title, scenario.sides, scenario.figures);
    CHECK(none.Count(Verdict::kNotMeasured) > 0);
  }
}

}  // namespace
}  // namespace nowcalls::compare
