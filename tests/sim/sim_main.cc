// nowcalls-sim: runs seeds of the simulator, and says what they did.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "sim/seed_runner.h"
#include "sim/simulation.h"

namespace {

using nowcalls::sim::FaultCounts;
using nowcalls::sim::RunResult;

constexpr const char* kUsage =
    "usage: nowcalls-sim SEEDS [--from FIRST] [--cluster]   SEEDS seeds from FIRST on; with\n"
    "                                     --cluster those alone that have two or three nodes\n"
    "       nowcalls-sim --seed N         one seed, with its trace\n";

struct Arguments {
  nowcalls::sim::SeedChoice choice;
  std::optional<uint64_t> seed;
};

template <typename T>
bool ParseNumber(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseArguments(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    nowcalls::sim::SeedChoice& choice = arguments->choice;
    if (argument == "--cluster") {
      choice.clusters = true;
    } else if (argument == "--from") {
      if (i + 1 >= argc || !ParseNumber(argv[++i], &choice.first)) return false;
    } else if (argument == "--seed") {
      if (i + 1 >= argc || !ParseNumber(argv[++i], &arguments->seed.emplace())) return false;
    } else if (choice.seeds != 0 || !ParseNumber(argument, &choice.seeds)) {
      return false;
    }
  }
  return arguments->seed.has_value() != (arguments->choice.seeds > 0);
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void SayFaults(const FaultCounts& faults) {
  std::string text = "faults:";
  for (size_t i = 0; i < nowcalls::sim::kFaultCount; ++i) {
    text += std::string(i == 0 ? " " : ", ") + std::to_string(faults.counts[i]) + " " +
            std::string(nowcalls::sim::FaultName(static_cast<nowcalls::sim::Fault>(i)));
  }
  Say(text);
}

int RunOne(uint64_t seed) {
  Say("SEED " + std::to_string(seed));
  const RunResult result = nowcalls::sim::Run({.seed = seed, .keeps_lines = true});
  for (const std::string& line : result.lines) Say(line);
  SayFaults(result.faults);
  Say("trace hash " + std::to_string(result.hash));
  if (result.violations.empty()) return nowcalls::kExitOk;
  for (const std::string& violation : result.violations) Say("VIOLATION " + violation);
  return nowcalls::kExitFailure;
}

int RunMany(const nowcalls::sim::SeedChoice& choice) {
  const uint64_t seeds = choice.seeds;
  Say("SEED " + std::to_string(choice.first) + " and those after it, " + std::to_string(seeds) +
      (choice.clusters ? " with several nodes" : "") + " in all");
  const nowcalls::sim::SeedTotals totals = nowcalls::sim::RunSeeds(choice, Say);
  SayFaults(totals.faults);
  const std::string counts =
      std::to_string(totals.seeds) + " seeds up to " + std::to_string(totals.next - 1) + ", " +
      std::to_string(totals.requests) + " requests, " + std::to_string(totals.granted) +
      " grants, " + std::to_string(totals.failures) + " failures";
  if (totals.failures > 0) {
    Say(counts);
    return nowcalls::kExitFailure;
  }
  Say(counts + "; the failure rate per seed is below 3/" + std::to_string(seeds) + " (95%)");
  return nowcalls::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!ParseArguments(argc, argv, &arguments)) {
    std::fputs(kUsage, stderr);
    return nowcalls::kExitUsage;
  }
  try {
    if (arguments.seed) return RunOne(*arguments.seed);
    return RunMany(arguments.choice);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nowcalls-sim: %s\n", error.what());
    return nowcalls::kExitFailure;
  }
}
