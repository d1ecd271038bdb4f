// The commands of the manual's recipes, run as a reader would type them. A block of code is a file
// if it begins with "# /PATH"; else it is commands behind "$ ", continued by deeper lines, and
// lines that they print. The directories of the page become those of a test.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/server_process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

const std::string kRecipes = NOWCALLS_SOURCE_DIR "/tools/manual/recipes.md";
const std::string kShopRules = NOWCALLS_SOURCE_DIR "/data/rules/shop.json";

struct Recipe {
  std::string script;
  std::vector<std::string> prints;
};

std::string WithPlaces(std::string text, const std::string& dir) {
  for (const std::string place : {"/etc/nowcalls", "/var/lib/", "/var/backups/"}) {
    for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
      text.insert(at, dir);
      at += dir.size() + place.size();
    }
  }
  return text;
}

// What the section with this heading has to type.
Recipe RecipeOf(const std::string& heading, const std::string& dir) {
  std::istringstream lines(WithPlaces(ReadFileToString(kRecipes), dir));
  Recipe recipe;
  bool inside = false;
  std::string file;  // That the lines are of; empty: they are commands.
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) inside = line == "## " + heading;
    if (!inside || !line.starts_with("    ")) {
      file.clear();
      continue;
    }
    line.erase(0, 4);
    if (line.starts_with("# /")) {
      file = line.substr(2);
    } else if (!file.empty()) {
      WriteStringToFile(
          file, (std::filesystem::exists(file) ? ReadFileToString(file) : "") + line + "\n");
    } else if (line.starts_with("$ ")) {
      recipe.script += line.substr(2) + "\n";
    } else if (line.starts_with("    ")) {
      recipe.script += line + "\n";
    } else {
      recipe.prints.push_back(line.substr(0, line.find("...")));
    }
  }
  return recipe;
}

void Follow(const std::string& heading) {
  CAPTURE(heading);
  if (!std::filesystem::exists("/usr/bin/jq") || !std::filesystem::exists("/usr/bin/curl")) {
    MESSAGE("skipped: the recipes need jq and curl");
    return;
  }
  const TempDir dir;
  for (const char* place : {"etc/nowcalls", "var/lib", "var/backups/nowcalls"}) {
    std::filesystem::create_directories(dir.Sub(place));
  }
  std::filesystem::copy(kShopRules, dir.Sub("etc/nowcalls/shop-staging.json"));
  const TestServer server;
  const Environment environment = {{"NOWCALLS_SERVER", server.address()},
                                   {"CENTRE", "file://" + kShopRules},
                                   {"PATH", NOWCALLS_BIN_DIR ":/usr/bin:/bin"}};
  const Finished loaded = RunProgram(
      {ProductBinary("nowcalls-admin"), "rules", "load", "--namespace", "shop", kShopRules},
      environment);
  REQUIRE_MESSAGE(loaded.exit_code == 0, loaded.err);
  const Recipe recipe = RecipeOf(heading, dir.path());
  REQUIRE_FALSE(recipe.script.empty());
  const Finished done =
      RunProgram({"/bin/bash", "-c", "set -euo pipefail\ncd " + dir.path() + "\n" + recipe.script},
                 environment);
  CHECK_MESSAGE(done.exit_code == 0, recipe.script, done.err);
  for (const std::string& line : recipe.prints) {
    CHECK_MESSAGE(Contains(done.out, line), line, "\n", done.out);
  }
}

TEST_CASE("the manual's recipes do what they say") {
  Follow("Two environments on one machine");
  Follow("Set one rule's count from CI");
  Follow("Follow a configuration centre");
  Follow("Drain a namespace, or the server");
  Follow("Loss of the host");
}

}  // namespace
}  // namespace nowcalls::testing
