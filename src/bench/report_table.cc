#include <cstdarg>
#include <cstdio>

#include "base/counted.h"
#include "base/text.h"
#include "bench/report.h"
#include "bench/summary.h"

namespace nowcalls::bench {
namespace {

__attribute__((format(printf, 1, 2))) std::string Printed(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

constexpr size_t kErrorBytesShown = 200;
constexpr double kBusyPart = 0.9;

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// Of a load of requests for calls a second.
std::string RequestLoopLine(const Options& options) {
  const std::string connections = Counted(options.connections, "connection");
  std::string flows = Counted(options.flows, "flow") + ", " +
                      std::string(OperationName(options.operation)) + " in " +
                      std::string(LanguageName(options.language));
  if (options.operation == Operation::kRequestParam) {
    flows += ", " + Counted(options.values, "value");
  }
  if (options.rate > 0) {
    return Printed("open loop: %.0f operations a second over ", options.rate) + connections + "; " +
           flows + "\n";
  }
  return "closed loop: " + connections + " with " + std::to_string(options.in_flight) +
         " in flight each; " + flows + "\n";
}

std::string LoopLine(const Options& options) {
  if (options.command == Command::kIdle) {
    return Counted(options.connections, "idle connection") + "\n";
  }
  const std::string connections = Counted(options.connections, "connection");
  if (options.operation != Operation::kAcquire) return RequestLoopLine(options);
  const std::string flows =
      Counted(options.flows, "flow") +
      (options.keys > 0 ? ", " + Counted(options.keys, "key") : std::string()) + ", level " +
      std::to_string(options.level) + ", hold " + std::to_string(options.hold_ms) + " ms" +
      (options.request_ids ? "\n" : ", no request ids\n");
  if (options.rate > 0) {
    return Printed("open loop: %.0f operations a second over ", options.rate) + connections + "; " +
           flows;
  }
  return "closed loop: " + connections + " with " + std::to_string(options.in_flight) +
         " in flight each; " + flows;
}

std::string CountLine(const char* name, uint64_t count, int64_t ns) {
  return Printed("  %-22s %14.0f  %14.1f /s\n", name, static_cast<double>(count),
                 PerSecond(count, ns));
}

std::string CountLines(const Recorder& recorder, const std::vector<SecondRow>& seconds,
                       int64_t ns) {
  const Totals totals = Sum(seconds);
  std::string lines = CountLine("operations", totals.operations(), ns);
  lines += CountLine("  acquires granted", totals.granted, ns);
  lines += CountLine("  releases", totals.released, ns);
  lines += CountLine("refused", totals.refused, ns);
  for (size_t i = 1; i < recorder.refusals().size(); ++i) {
    if (recorder.refusals()[i] == 0) continue;
    lines += CountLine(("  " + std::string(RefusalName(i))).c_str(), recorder.refusals()[i], ns);
  }
  lines += CountLine("errors", totals.errors, ns);
  for (const auto& [name, error] : recorder.errors()) {
    lines += CountLine(("  " + TerminalText(name)).c_str(), error.count, ns);
    lines += "      the first: " + Quoted(error.first_text, kErrorBytesShown) + "\n";
  }
  return lines;
}

// Also what was granted after the counted seconds of a fill that was cut short.
std::string GrantedInAllLine(const Options& options, uint64_t granted) {
  return Printed("  %-22s %14.0f  of %.0f tokens\n", "granted in all", static_cast<double>(granted),
                 static_cast<double>(options.tokens));
}

std::string QuantilesHead() {
  std::string line = Printed("  %-12s %12s", "latency, us", "count");
  for (const Quantile& quantile : kQuantiles) line += Printed(" %10s", quantile.name.data());
  return line + Printed(" %10s\n", "max");
}

std::string QuantilesLine(const char* name, const Histogram& histogram) {
  if (histogram.count() == 0) return "";
  std::string line = Printed("  %-12s %12.0f", name, static_cast<double>(histogram.count()));
  for (const Quantile& quantile : kQuantiles) {
    line += Printed(" %10.1f", Microseconds(histogram.Quantile(quantile.parts_per_million)));
  }
  return line + Printed(" %10.1f\n", Microseconds(histogram.max()));
}

std::string LatencyLines(const Recorder& recorder) {
  Histogram both = recorder.acquire();
  both.Merge(recorder.release());
  return QuantilesHead() + QuantilesLine("acquire", recorder.acquire()) +
         QuantilesLine("release", recorder.release()) + QuantilesLine("both", both) +
         QuantilesLine("refused", recorder.refused()) +
         QuantilesLine("send delay", recorder.send_delay());
}

std::string UsageLines(const LoadResult& result) {
  const double counted_s = Seconds(result.counted_ns);
  const auto line = [&](const char* who, double cpu_s) {
    return Printed("  %s CPU %.2f s (%.0f %%)", who, cpu_s, 100 * cpu_s / counted_s);
  };
  const double client_cpu_s = result.after.client_cpu_s - result.before.client_cpu_s;
  std::string lines = line("client", client_cpu_s) + "\n";
  // One loop is one core. At its limit the client is what was measured.
  if (client_cpu_s > kBusyPart * counted_s) {
    lines += "  the client was busy all the time: the server could do more than it was asked for\n";
  }
  if (!result.before.server || !result.after.server) return lines;
  constexpr double kMiB = 1024 * 1024;
  return lines + line("server", result.after.server->cpu_s - result.before.server->cpu_s) +
         Printed(", memory %.1f MiB, %.1f MiB before\n",
                 static_cast<double>(result.after.server->resident_bytes) / kMiB,
                 static_cast<double>(result.before.server->resident_bytes) / kMiB);
}

}  // namespace

std::string ReportTable(const Options& options, const ServerFacts& facts,
                        const LoadResult& result) {
  std::string text = options.target.ToString() + ", version " + facts.version + ", durability " +
                     facts.durability + "\n";
  text += LoopLine(options);
  text +=
      Printed("%.2f s counted%s, %.2f s to connect\n\n", Seconds(result.counted_ns),
              result.interrupted ? " until it was interrupted" : "", Seconds(result.connect_ns));
  if (options.command != Command::kIdle) {
    text += CountLines(result.load, result.seconds, result.counted_ns);
    if (options.command == Command::kFill) text += GrantedInAllLine(options, result.granted_ever);
    text += "\n";
    text += LatencyLines(result.load) + "\n";
  }
  if (options.expire_rate > 0) {
    text += "  never released, beside it:\n";
    text += CountLines(result.expiring, result.expiring_seconds, result.counted_ns);
    text += QuantilesLine("acquire", result.expiring.acquire()) + "\n";
  }
  return text + UsageLines(result);
}

}  // namespace nowcalls::bench
