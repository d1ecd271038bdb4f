// nowcalls-crash-loop: any number of kill -9 cycles with the outside checker.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "crash/cluster_loop.h"
#include "crash/crash_loop.h"
#include "faults/rocks_kill_points.h"

namespace {

template <typename T>
bool ParseNumber(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseArguments(int argc, char** argv, nowcalls::crash::CrashLoopOptions* options,
                    bool* cluster) {
  options->cycles = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--keep-dir") {
      options->keep_dir = true;
    } else if (argument == "--cluster") {
      *cluster = true;
    } else if (argument == "--whitebox") {
      options->whitebox = true;
    } else if (argument == "--seed" && i + 1 < argc) {
      if (!ParseNumber(argv[++i], &options->seed)) return false;
    } else if (options->cycles != 0 || !ParseNumber(argument, &options->cycles)) {
      return false;
    }
  }
  return options->cycles > 0;
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int Run(const nowcalls::crash::CrashLoopOptions& options, bool cluster) {
  const std::string seed = std::to_string(options.seed);
  Say("SEED " + seed);
  const auto result =
      cluster ? nowcalls::crash::RunClusterLoop(options) : nowcalls::crash::RunCrashLoop(options);
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(kShown, result.violations.size()); ++i) {
    Say("VIOLATION " + result.violations[i]);
  }
  if (!result.dir.empty()) Say("kept: " + result.dir);
  for (const auto& [moment, cycles] : result.moments) {
    Say(std::to_string(cycles) + " cycles ended during " + moment);
  }
  for (const auto& [point, cycles] : result.fired) {
    Say(std::to_string(cycles) + " cycles were ended by " + point);
  }
  for (const auto& [stage, kills] : result.starts) {
    Say(std::to_string(kills) + " kills meant for recovery came " + stage);
  }
  for (const auto& [durability, cycles] : result.durabilities) {
    Say(std::to_string(cycles) + " cycles had durability " + durability);
  }
  for (const auto& [what, count] : result.tally) Say(std::to_string(count) + " " + what);
  if (options.whitebox && !nowcalls::faults::RocksKillPointsAvailable()) {
    Say("kill points of RocksDB: not available, version " + nowcalls::faults::RocksVersion() +
        " was built without them");
  }
  Say(std::to_string(result.unknown) + " operations were left unanswered, " +
      std::to_string(result.adopted) + " of them had been granted");
  const std::string counts = std::to_string(result.cycles) + " cycles, " +
                             std::to_string(result.acknowledged) + " operations acknowledged, " +
                             std::to_string(result.violations.size()) + " violations; ";
  if (!result.violations.empty()) {
    Say(counts + "again with: tools/dev crash " + std::to_string(options.cycles) +
        (options.whitebox ? " --whitebox" : "") + (cluster ? " --cluster" : "") + " --seed " +
        seed);
    return nowcalls::kExitFailure;
  }
  Say(counts + "the failure rate per cycle is below 3/" + std::to_string(result.cycles) + " (95%)");
  return nowcalls::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  nowcalls::crash::CrashLoopOptions options;
  options.seed = nowcalls::RandomBits128()[0];
  options.progress = Say;
  bool cluster = false;
  if (!ParseArguments(argc, argv, &options, &cluster)) {
    std::fprintf(
        stderr,
        "usage: nowcalls-crash-loop CYCLES [--whitebox | --cluster] [--seed N] [--keep-dir]\n");
    return nowcalls::kExitUsage;
  }
  try {
    return Run(options, cluster);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nowcalls-crash-loop: %s\n", error.what());
    return nowcalls::kExitFailure;
  }
}
