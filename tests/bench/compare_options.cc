#include "bench/compare_options.h"

#include <CLI/CLI.hpp>
#include <regex>
#include <sstream>
#include <utility>

#include "base/exit_codes.h"
#include "base/text.h"
#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::compare {
namespace {

constexpr int kRoundsMax = 1000;
constexpr double kDurationMax = 3600;

constexpr char kFooter[] =
    "Exit codes: 0 measured, whether or not targets were reached; 1 something could not be\n"
    "measured; 64 usage is wrong; 69 there is no redis-server on PATH; 74 files cannot be\n"
    "written.\n";

}  // namespace

ParsedCompareOptions ParseCompareOptions(int argc, const char* const* argv) {
  CompareOptions options;
  options.dir = NOWCALLS_SOURCE_DIR "/build/bench";
  CLI::App app("Compares nowcalls with Redis, scenario by scenario, on this machine.",
               "nowcalls-compare");
  app.footer(kFooter);
  app.add_flag("--quick", options.quick, "Short and small: only to see that it works");
  const auto* rounds = app.add_option("--rounds", options.sizes.rounds, "Of each scenario [15]")
                           ->check(CLI::Range(1, kRoundsMax));
  const auto* duration =
      app.add_option("--duration", options.sizes.duration_s, "Seconds that a load is counted [4]")
          ->check(CLI::Range(0.1, kDurationMax));
  app.add_option("--only", options.only, "Scenarios whose whole name matches this expression")
      ->type_name("REGEX");
  app.add_flag("--list", options.list, "Print the names of the scenarios and end");
  app.add_option("--json", options.json_path, "Write everything to this file, too")
      ->type_name("FILE");
  app.add_option("--dir", options.dir, "The servers' directories are made here [build/bench]")
      ->type_name("DIR");
  app.add_flag("--keep-dir", options.keep_dir, "Leave them there");
  ParsedCompareOptions parsed;
  std::ostringstream out;
  std::ostringstream err;
  try {
    app.parse(argc, argv);
    if (options.quick) {
      Sizes sizes = Sizes::Quick();
      if (rounds->count() > 0) sizes.rounds = options.sizes.rounds;
      if (duration->count() > 0) sizes.duration_s = options.sizes.duration_s;
      options.sizes = sizes;
    }
    parsed.options = options;
  } catch (const CLI::Success& help) {
    parsed.exit_code = app.exit(help, out, err);
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = kExitUsage;
    err << "nowcalls-compare: " << error.what()
        << "\nRun 'nowcalls-compare --help' to see usage.\n";
  }
  parsed.out = out.str();
  parsed.err = err.str();
  return parsed;
}

Result<std::vector<Scenario>> Select(std::vector<Scenario> scenarios, const std::string& only) {
  if (only.empty()) return scenarios;
  std::string names;
  for (const Scenario& scenario : scenarios) {
    names += (names.empty() ? "" : ", ") + Quoted(scenario.name);
  }
  try {
    const std::regex expression(only, std::regex::extended);
    std::erase_if(scenarios, [&expression](const Scenario& scenario) {
      return !std::regex_match(scenario.name, expression);
    });
  } catch (const std::regex_error& error) {
    return Status::InvalidArgument("--only: " + Quoted(only) +
                                   " is no regular expression: " + error.what());
  }
  if (!scenarios.empty()) return scenarios;
  return Status::InvalidArgument("--only: " + Quoted(only) +
                                 " matches the whole name of no scenario; there are " + names);
}

}  // namespace nowcalls::compare
