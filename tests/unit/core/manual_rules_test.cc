// The rules that the manual shows, read as `rules check` reads them.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test_paths.h"
#include "unit/core/rule_parsing.h"

namespace nowcalls::core {
namespace {

const std::string kRoot = NOWCALLS_SOURCE_DIR;

std::string TextOfFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The indented blocks of a page that hold rules, as sets.
std::vector<std::string> RulesIn(const std::string& page) {
  std::vector<std::string> sets;
  std::string block;
  std::istringstream lines(page + "\n\n");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    ")) {
      block += line.substr(4) + "\n";
      continue;
    }
    const bool is_rule = block.find("\"resource\"") != std::string::npos;
    if (is_rule && block.front() == '[') sets.push_back(block);
    if (is_rule && block.front() == '{') sets.push_back("[" + block + "]");
    block.clear();
  }
  return sets;
}

std::vector<std::filesystem::path> FilesIn(const std::string& folder, const char* extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void CheckSound(const std::string& set) {
  CAPTURE(set);
  const auto parsed = ParseRules(set);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().ToString());
  CHECK(parsed->warnings() == 0);  // A rule that is left to clients is none.
}

TEST_CASE("the rules that the manual shows load without a warning") {
  size_t shown = 0;
  for (const auto& page : FilesIn("/tools/manual", ".md")) {
    CAPTURE(page);
    for (const std::string& set : RulesIn(TextOfFile(page))) {
      CheckSound(set);
      ++shown;
    }
  }
  CHECK(shown >= 5);
}

TEST_CASE("the sample rules load without a warning") {
  const auto files = FilesIn("/data/rules", ".json");
  CHECK(files.size() >= 6);
  for (const auto& file : files) CheckSound(TextOfFile(file));
}

// The field that is missing in a rule of `set` and should be there on purpose; empty: none.
std::string NotChosen(const std::string& set) {
  const auto rules = nlohmann::json::parse(set, nullptr, true, /*ignore_comments=*/true);
  for (const auto& rule : rules) {
    if (!rule.value("clusterMode", true)) continue;
    const auto& config = rule.at("clusterConfig");
    const bool in_progress = rule.value("grade", rule.value("metricType", 1)) == 0;
    const bool by_value = rule.contains("paramIdx") || rule.contains("durationInSec");
    const auto lacks = [&](const char* field) { return !config.contains(field); };
    if (in_progress && lacks("resourceTimeoutStrategy")) return "resourceTimeoutStrategy";
    if (by_value && lacks("fallbackToLocalWhenFail")) return "fallbackToLocalWhenFail";
  }
  return {};
}

TEST_CASE("rules that are shown say how long calls may last, and by value what an outage does") {
  std::vector<std::string> sets;
  for (const auto& page : FilesIn("/tools/manual", ".md")) {
    for (const std::string& set : RulesIn(TextOfFile(page))) sets.push_back(set);
  }
  for (const auto& file : FilesIn("/data/rules", ".json")) sets.push_back(TextOfFile(file));
  for (const std::string& set : sets) {
    CAPTURE(set);
    CHECK(NotChosen(set).empty());
  }
}

TEST_CASE("the manual's first rule is data/rules/first.json, and says calls in progress") {
  const auto sets = RulesIn(TextOfFile(kRoot + "/tools/manual/rules.md"));
  REQUIRE_FALSE(sets.empty());
  const auto shown = ParseRules(sets.front());
  const auto file = ParseRules(TextOfFile(kRoot + "/data/rules/first.json"));
  REQUIRE(shown.ok());
  REQUIRE(file.ok());
  CHECK(shown->rules == file->rules);
  CHECK_FALSE(shown->rules.at(0).says_rate());
}

}  // namespace
}  // namespace nowcalls::core
