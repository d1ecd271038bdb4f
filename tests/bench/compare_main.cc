// nowcalls-compare: nowcalls beside Redis on this machine, scenario by scenario.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "bench/compare_options.h"
#include "bench/interruption.h"
#include "bench/machine_facts.h"
#include "bench/open_files.h"
#include "bench/scenario.h"
#include "support/process.h"

namespace nowcalls::compare {
namespace {

void Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int Fail(int exit_code, const std::string& message) {
  std::fprintf(stderr, "nowcalls-compare: %s\n", message.c_str());
  return exit_code;
}

// What is being measured, on a terminal's last line only.
void ShowProgress(const std::string& text) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

std::string SumLine(const std::vector<Comparison>& comparisons) {
  size_t reached = 0;
  size_t missed = 0;
  size_t not_measured = 0;
  for (const Comparison& comparison : comparisons) {
    reached += comparison.Count(Verdict::kReached);
    missed += comparison.Count(Verdict::kMissed);
    not_measured += comparison.Count(Verdict::kNotMeasured);
  }
  return "targets: " + std::to_string(reached) + " reached, " + std::to_string(missed) +
         " missed, " + std::to_string(not_measured) + " not measured\n";
}

std::string Heading(const CompareOptions& options, const MachineFacts& facts) {
  std::string text = facts.Table();
  text += "rounds       " + std::to_string(options.sizes.rounds) +
          ", of which medians and (min..max) are shown; loads are counted for " +
          Decimal(options.sizes.duration_s, 1) + " s\n";
  if (options.quick) text += "NOTE         --quick: these figures and verdicts mean nothing\n";
  return text + "\n";
}

int Compare(const CompareOptions& options, const std::vector<Scenario>& scenarios,
            const std::string& redis_program) {
  AllowManyOpenFiles();
  Lab lab({options.dir, options.keep_dir, redis_program});
  const MachineFacts facts = ReadMachineFacts(lab.dir(), redis_program);
  Say(Heading(options, facts));
  std::vector<Comparison> comparisons;
  Json json = {{"machine", facts.ToJson()},
               {"quick", options.quick},
               {"rounds", options.sizes.rounds},
               {"duration_s", options.sizes.duration_s},
               {"scenarios", Json::array()}};
  bool failed = false;
  for (const Scenario& scenario : scenarios) {
    comparisons.push_back(RunScenario(scenario, options.sizes.rounds, &lab, ShowProgress));
    ShowProgress("");
    Say(comparisons.back().Table() + "\n");
    failed = failed || !comparisons.back().failures().empty();
    json["scenarios"].push_back(comparisons.back().ToJson());
    json["scenarios"].back()["runs"] = lab.TakeRuns();
    // Each time, so that what has been measured is not lost with what comes later.
    if (!options.json_path.empty()) {
      testing::WriteStringToFile(options.json_path, json.dump(2) + "\n");
    }
  }
  Say("afterwards   load " + ReadLoad() + ", " + FdatasyncText(MeasureFdatasync(lab.dir())) + "\n");
  Say(SumLine(comparisons));
  if (options.keep_dir) Say("kept: " + lab.dir() + "\n");
  return failed ? kExitFailure : kExitOk;
}

int Run(const CompareOptions& options) {
  const std::vector<Scenario> all = AllScenarios(options.sizes);
  if (options.list) {
    for (const Scenario& scenario : all) Say(scenario.name + "\n");
    return kExitOk;
  }
  const Result<std::vector<Scenario>> scenarios = Select(all, options.only);
  if (!scenarios.ok()) return Fail(kExitUsage, scenarios.status().message());
  const std::string redis_program = FindProgram("redis-server");
  if (redis_program.empty()) {
    return Fail(kExitUnavailable,
                "there is no redis-server on PATH; on Debian: apt-get install redis-server");
  }
  try {
    return Compare(options, *scenarios, redis_program);
  } catch (const std::exception& error) {
    return Fail(kExitIoError, error.what());
  }
}

}  // namespace
}  // namespace nowcalls::compare

int main(int argc, char** argv) {
  using namespace nowcalls::compare;  // NOLINT(google-build-using-namespace)
  const ParsedCompareOptions parsed = ParseCompareOptions(argc, argv);
  std::fputs(parsed.out.c_str(), stdout);
  std::fputs(parsed.err.c_str(), stderr);
  if (!parsed.options) return parsed.exit_code;
  CatchInterruptions();
  try {
    return Run(*parsed.options);
  } catch (const Interrupted& interrupted) {
    ShowProgress("");
    EndBy(interrupted);
  }
}
