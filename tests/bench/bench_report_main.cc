// nowcalls-bench-report: curves of nowcalls and Redis as plots, with a page that shows them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "base/exit_codes.h"
#include "bench/curves.h"
#include "bench/interruption.h"
#include "bench/machine_facts.h"
#include "bench/open_files.h"
#include "bench/plot.h"
#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::compare {
namespace {

struct ReportOptions {
  bool quick = false;
  int rounds = 0;         // 0: as many as the sizes say,
  double duration_s = 0;  // and as long.
  std::string dir = NOWCALLS_SOURCE_DIR "/build/bench";
  std::string out;  // Empty: DIR/report.
};

int Fail(int exit_code, const std::string& message) {
  std::fprintf(stderr, "nowcalls-bench-report: %s\n", message.c_str());
  return exit_code;
}

void ShowProgress(const std::string& text) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

void Draw(const Plot& plot, const std::string& out, const std::string& footer,
          const std::string& gnuplot) {
  const std::string path = out + "/" + plot.name;
  testing::WriteStringToFile(path + ".dat", GnuplotData(plot));
  testing::WriteStringToFile(path + ".gp", GnuplotScript(plot, footer));
  const testing::Finished drawn =
      testing::RunProgram({"/usr/bin/env", "--chdir=" + out, gnuplot, plot.name + ".gp"});
  if (drawn.exit_code != 0) throw std::runtime_error("gnuplot cannot draw it: " + drawn.err);
}

int Report(const ReportOptions& options, const std::string& redis, const std::string& gnuplot) {
  AllowManyOpenFiles();
  const std::string out =
      std::filesystem::absolute(options.out.empty() ? options.dir + "/report" : options.out);
  std::filesystem::create_directories(out);
  Lab lab({options.dir, false, redis});
  const MachineFacts facts = ReadMachineFacts(lab.dir(), redis);
  std::fputs(facts.Table().c_str(), stdout);
  std::fflush(stdout);
  CurveSizes sizes = options.quick ? CurveSizes::Quick() : CurveSizes{};
  if (options.rounds > 0) sizes.rounds = options.rounds;
  if (options.duration_s > 0) sizes.duration_s = options.duration_s;
  MeasuredCurves curves = MeasureCurves(sizes, &lab, ShowProgress);
  ShowProgress("");
  for (const Plot& plot : curves.plots) {
    try {
      Draw(plot, out, Footer(facts), gnuplot);
    } catch (const std::exception& error) {
      curves.failures.push_back(plot.name + ": " + error.what());
    }
  }
  testing::WriteStringToFile(out + "/index.md",
                             IndexPage(curves.plots, facts, curves.failures, options.quick));
  for (const std::string& failure : curves.failures) Fail(0, failure);
  std::printf("report: %s/index.md\n", out.c_str());
  return curves.failures.empty() ? kExitOk : kExitFailure;
}

int Run(const ReportOptions& options) {
  const std::string redis = FindProgram("redis-server");
  const std::string gnuplot = FindProgram("gnuplot");
  if (redis.empty() || gnuplot.empty()) {
    return Fail(kExitUnavailable,
                "redis-server and gnuplot must be on PATH; on Debian: apt-get install redis-server "
                "gnuplot-nox");
  }
  try {
    return Report(options, redis, gnuplot);
  } catch (const std::exception& error) {
    return Fail(kExitIoError, error.what());
  }
}

}  // namespace
}  // namespace nowcalls::compare

int main(int argc, char** argv) {
  namespace compare = nowcalls::compare;
  compare::ReportOptions options;
  CLI::App app("Measures nowcalls and Redis over ranges of load and size, and draws the curves.",
               "nowcalls-bench-report");
  app.footer(
      "Exit codes: 0 all was measured; 1 something could not be; 64 usage is wrong; 69 "
      "redis-server\n"
      "or gnuplot is missing; 74 files cannot be written.\n");
  app.add_flag("--quick", options.quick, "Short and small: only to see that it works");
  app.add_option("--rounds", options.rounds, "Of each point [3]")->check(CLI::Range(1, 1000));
  app.add_option("--duration", options.duration_s, "Seconds that a load is counted [4]")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--dir", options.dir, "The servers' directories are made here [build/bench]")
      ->type_name("DIR");
  app.add_option("--out", options.out, "Where the report goes [DIR/report]")->type_name("DIR");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr,
                 "nowcalls-bench-report: %s\nRun 'nowcalls-bench-report --help' to see usage.\n",
                 error.what());
    return nowcalls::kExitUsage;
  }
  compare::CatchInterruptions();
  try {
    return compare::Run(options);
  } catch (const compare::Interrupted& interrupted) {
    compare::ShowProgress("");
    compare::EndBy(interrupted);
  }
}
