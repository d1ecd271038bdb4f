#include "bench/curves.h"

#include <array>
#include <exception>
#include <memory>
#include <utility>

#include "bench/scenario.h"

namespace nowcalls::compare {
namespace {

constexpr std::array<ContenderKind, 2> kKinds = {ContenderKind::kNowcalls, ContenderKind::kRedis};
constexpr double kThousand = 1000;
constexpr double kMiB = 1024.0 * 1024;
// Of all connections together, where their number is what changes: one each where they are most.
constexpr uint32_t kInFlightTotal = 10'000;
constexpr char kCpuAnOperation[] = "server_cpu_us_an_operation";

std::string Number(double value) { return Decimal(value, 3); }

// Throws when something is missing.
Values RequireValues(const Json& run) {
  const Result<Values> values = ValuesOf(run);
  if (!values.ok()) throw std::runtime_error(values.status().message());
  return *values;
}

// Of a load, with what an operation cost the server.
Values LoadValues(const Json& run) {
  constexpr double kUsAPercent = 1e6 / 100;
  Values values = RequireValues(run);
  const double operations = values.at(std::string(kOperations));
  if (operations == 0) throw std::runtime_error("nothing was answered while it was counted");
  values[kCpuAnOperation] = values.at(std::string(kServerCpu)) * kUsAPercent / operations;
  return values;
}

// One line of points for each side and figure.
struct Series {
  std::string key;
  double divisor = 1;  // Of the figure, for the unit of the plot.
  Plot plot;
};

class Measurer {
 public:
  Measurer(const CurveSizes& sizes, Lab* lab, std::function<void(const std::string&)> say)
      : sizes_(sizes), lab_(lab), say_(std::move(say)) {}

  // Measures `value_of(kind, x)` for each x and both servers, some rounds alternately, and adds the
  // plots of `series`.
  template <typename X>
  void Measure(const std::vector<X>& xs, std::vector<Series> series,
               const std::function<Values(ContenderKind, X)>& values_of) {
    for (Series& each : series) {
      for (const ContenderKind kind : kKinds) each.plot.curves.push_back({ContenderName(kind), {}});
    }
    for (const X x : xs) {
      std::array<std::vector<Values>, 2> rounds;
      for (int round = 1; round <= sizes_.rounds; ++round) {
        for (size_t side = 0; side < kKinds.size(); ++side) {
          const std::string where = series.front().plot.x_label + " " +
                                    Decimal(static_cast<double>(x), 0) + ", round " +
                                    std::to_string(round) + ": " + ContenderName(kKinds[side]);
          say_(where);
          Try(where, [&] { rounds[side].push_back(values_of(kKinds[side], x)); });
        }
      }
      for (Series& each : series) AddPoints(static_cast<double>(x), rounds, &each);
    }
    for (Series& each : series) measured_.plots.push_back(std::move(each.plot));
    EndServers();
  }

  Values RunLoad(ContenderKind kind, std::vector<std::string> words) {
    std::unique_ptr<Contender>& server = servers_[kind == ContenderKind::kNowcalls ? 0 : 1];
    if (!server || !server->Running()) {
      server.reset();
      server = lab_->NewContender(kind);
      server->Start();
    }
    server->Settle();
    words.insert(words.end(),
                 {"--duration", Number(sizes_.duration_s), "--warm-up", Number(sizes_.warm_up_s)});
    const Json run =
        lab_->RunBench(std::move(words), *server, sizes_.duration_s + sizes_.warm_up_s);
    lab_->TakeRuns();
    return LoadValues(run);
  }

  // The next load is of a server that has held nothing.
  void EndServers() { servers_ = {}; }

  MeasuredCurves Take() { return std::move(measured_); }

 private:
  void Try(const std::string& where, const std::function<void()>& measure) {
    try {
      lab_->SyncDisk();
      measure();
    } catch (const std::exception& error) {
      measured_.failures.push_back(where + ": " + error.what());
    }
  }

  static void AddPoints(double x, const std::array<std::vector<Values>, 2>& rounds,
                        Series* series) {
    for (size_t side = 0; side < kKinds.size(); ++side) {
      std::vector<double> values;
      for (const Values& round : rounds[side]) {
        values.push_back(round.at(series->key) / series->divisor);
      }
      const std::optional<Spread> spread = SpreadOf(std::move(values));
      if (spread) series->plot.curves[side].points.push_back({x, *spread});
    }
  }

  CurveSizes sizes_;
  Lab* lab_;
  std::function<void(const std::string&)> say_;
  MeasuredCurves measured_;
  std::array<std::unique_ptr<Contender>, 2> servers_;
};

Series ThroughputSeries(std::string name, std::string title, std::string x_label,
                        std::string text) {
  Series series{std::string(kOperations), kThousand, {}};
  series.plot.name = std::move(name);
  series.plot.title = std::move(title);
  series.plot.x_label = std::move(x_label);
  series.plot.y_label = "thousand operations/s";
  series.plot.digits = 1;
  series.plot.text = std::move(text);
  return series;
}

// Of the same runs as `throughput`.
Series CpuSeries(const Series& throughput, std::string name, std::string title) {
  Series series = throughput;
  series.key = kCpuAnOperation;
  series.divisor = 1;
  series.plot.name = std::move(name);
  series.plot.title = std::move(title);
  series.plot.y_label = "CPU time of the server an operation, us";
  series.plot.digits = 2;
  series.plot.text =
      "The same runs: CPU time of the server's process, with all its threads and in the kernel, "
      "divided by the operations. What Redis has a child do is not in it.";
  return series;
}

void MeasureInFlight(const CurveSizes& sizes, Measurer* measurer) {
  Series throughput = ThroughputSeries(
      "throughput-in-flight", "Throughput by requests in flight", "requests in flight a connection",
      "Closed loop, 50 connections, 16 flows. An acquire and its release are two operations; every "
      "grant and every release is on disk before it is answered.");
  throughput.plot.log_y = true;
  throughput.plot.x_tics_at_points = true;
  Series latency = throughput;
  latency.key = kP99;
  latency.plot.name = "p99-in-flight";
  latency.plot.title = "Latency by requests in flight";
  latency.plot.y_label = "p99, ms";
  latency.plot.digits = 2;
  latency.plot.text = "The same runs: 99 of 100 operations were answered within that time.";
  measurer->Measure<uint32_t>(
      sizes.in_flight, {throughput, latency}, [measurer](ContenderKind kind, uint32_t in_flight) {
        return measurer->RunLoad(kind, {"--connections", "50", "--flows", "16", "--in-flight",
                                        std::to_string(in_flight)});
      });
}

void MeasureTokens(const CurveSizes& sizes, Lab* lab, Measurer* measurer) {
  Series ready{"ready_s", 1, {}};
  ready.plot.name = "ready-tokens";
  ready.plot.title = "Ready after kill -9 by live tokens";
  ready.plot.x_label = "live tokens";
  ready.plot.y_label = "from start to first answer, s";
  ready.plot.log_y = true;
  ready.plot.digits = 3;
  ready.plot.text =
      "A server with so many live tokens is killed with kill -9 and started again. The page cache "
      "is warm.";
  Series memory = ready;
  memory.key = "resident_bytes";
  memory.divisor = kMiB;
  memory.plot.name = "memory-tokens";
  memory.plot.title = "Memory by live tokens";
  memory.plot.y_label = "resident, MiB more than empty";
  memory.plot.digits = 1;
  memory.plot.text = "Resident memory of the same servers before they were killed.";
  Series each = memory;
  each.key = "bytes_a_token";
  each.divisor = 1;
  each.plot.name = "memory-a-token";
  each.plot.title = "Memory a live token";
  each.plot.y_label = "resident, bytes a token";
  each.plot.log_y = false;
  each.plot.text = "The same divided by the number of tokens. Few tokens share what any take.";
  measurer->Measure<uint64_t>(
      sizes.tokens, {ready, memory, each}, [lab](ContenderKind kind, uint64_t tokens) {
        const FillAndRecovery measured = MeasureRecovery(kind, tokens, lab);
        lab->TakeRuns();
        return Values{{"ready_s", measured.ready_s},
                      {"bytes_a_token", measured.bytes_a_token},
                      {"resident_bytes", measured.bytes_a_token * static_cast<double>(tokens)}};
      });
}

void MeasureFlows(const CurveSizes& sizes, Measurer* measurer) {
  const Series throughput = ThroughputSeries(
      "throughput-flows", "Throughput by flows", "flows",
      "Closed loop, 50 connections with 16 requests in flight each, which take the flows in turn. "
      "Each point is of new servers.");
  Series memory = throughput;
  memory.key = std::string(kResidentBytes);
  memory.divisor = kMiB;
  memory.plot.name = "memory-flows";
  memory.plot.title = "Memory by flows";
  memory.plot.y_label = "resident, MiB";
  memory.plot.text =
      "The same runs: all that the server's process has at the end of the load. In nowcalls a flow "
      "has a rule; in Redis it takes memory while it has members.";
  measurer->Measure<uint32_t>(
      sizes.flows, {throughput, CpuSeries(throughput, "cpu-flows", "Server CPU by flows"), memory},
      [measurer](ContenderKind kind, uint32_t flows) {
        measurer->EndServers();
        return measurer->RunLoad(
            kind, {"--connections", "50", "--in-flight", "16", "--flows", std::to_string(flows)});
      });
}

void MeasureConnections(const CurveSizes& sizes, Measurer* measurer) {
  const std::string in_flight = ", " + Decimal(kInFlightTotal, 0) + " in flight";
  Series throughput = ThroughputSeries(
      "throughput-connections", "Throughput by connections" + in_flight, "connections",
      "Closed loop. So many requests are in flight altogether, shared by ever more connections, "
      "each with a session of its own; 16 flows.");
  throughput.plot.x_tics_at_points = true;
  const Series cpu =
      CpuSeries(throughput, "cpu-connections", "Server CPU by connections" + in_flight);
  measurer->Measure<uint32_t>(
      sizes.connections, {throughput, cpu}, [measurer](ContenderKind kind, uint32_t connections) {
        return measurer->RunLoad(kind,
                                 {"--connections", std::to_string(connections), "--in-flight",
                                  std::to_string(kInFlightTotal / connections), "--flows", "16"});
      });
}

void MeasureIdleMemory(const CurveSizes& sizes, Lab* lab, Measurer* measurer) {
  Series memory{std::string(kKibAConnection), 1, {}};
  memory.plot.name = "memory-a-session";
  memory.plot.title = "Memory a session";
  memory.plot.x_label = "idle connections";
  memory.plot.y_label = "resident, KiB a connection";
  memory.plot.x_tics_at_points = true;
  memory.plot.digits = 2;
  memory.plot.text =
      "What a new server takes more once so many connections are there, divided by their number. "
      "Each has said hello, and nothing since. Few connections share what any take.";
  measurer->Measure<uint32_t>(
      sizes.idle_connections, {memory}, [&sizes, lab](ContenderKind kind, uint32_t connections) {
        Values values = MeasureIdle(kind, connections, sizes.duration_s, lab);
        lab->TakeRuns();
        return values;
      });
}

}  // namespace

CurveSizes CurveSizes::Quick() {
  CurveSizes sizes;
  sizes.rounds = 1;
  sizes.duration_s = 0.3;
  sizes.warm_up_s = 0.1;
  sizes.in_flight = {1, 8, 64};
  sizes.flows = {1, 100, 1'000};
  sizes.connections = {10, 100, 200};
  sizes.idle_connections = {100, 200};
  sizes.tokens = {1'000, 10'000, 30'000};
  return sizes;
}

MeasuredCurves MeasureCurves(const CurveSizes& sizes, Lab* lab,
                             const std::function<void(const std::string&)>& say) {
  Measurer measurer(sizes, lab, say);
  MeasureInFlight(sizes, &measurer);
  MeasureConnections(sizes, &measurer);
  MeasureFlows(sizes, &measurer);
  MeasureIdleMemory(sizes, lab, &measurer);
  MeasureTokens(sizes, lab, &measurer);
  return measurer.Take();
}

}  // namespace nowcalls::compare
