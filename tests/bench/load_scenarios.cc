// Scenarios whose figures are those of a load, or of connections without one.
#include <array>
#include <utility>

#include "bench/scenario.h"

namespace nowcalls::compare {
namespace {

constexpr double kKiB = 1024;

std::string Seconds(double seconds) { return Decimal(seconds, 3); }

// A server a side that lives for all rounds.
class WithServers : public Measurement {
 public:
  WithServers(Lab* lab, std::array<ContenderKind, Comparison::kSides> kinds)
      : lab_(lab), kinds_(kinds) {}

 protected:
  Lab* lab() { return lab_; }
  Contender* Server(size_t side) {
    std::unique_ptr<Contender>& server = servers_[side];
    if (!server || !server->Running()) {
      server.reset();
      server = lab_->NewContender(kinds_[side]);
      server->Start();
    }
    return server.get();
  }

 private:
  Lab* lab_;
  std::array<ContenderKind, Comparison::kSides> kinds_;
  std::array<std::unique_ptr<Contender>, Comparison::kSides> servers_;
};

constexpr std::array<ContenderKind, 2> kBoth = {ContenderKind::kNowcalls, ContenderKind::kRedis};
constexpr std::array<ContenderKind, 2> kNowcallsTwice = {ContenderKind::kNowcalls,
                                                         ContenderKind::kNowcalls};
constexpr std::array<ContenderKind, 2> kBothByTls = {ContenderKind::kNowcallsTls,
                                                     ContenderKind::kRedisTls};
constexpr std::array<ContenderKind, 2> kTlsAndPlain = {ContenderKind::kNowcallsTls,
                                                       ContenderKind::kNowcalls};

class LoadMeasurement : public WithServers {
 public:
  LoadMeasurement(Lab* lab, std::array<ContenderKind, 2> kinds,
                  std::array<std::vector<std::string>, 2> words, double lasts_s)
      : WithServers(lab, kinds), words_(std::move(words)), lasts_s_(lasts_s) {}

  Values Round(size_t side) override {
    Contender* server = Server(side);
    server->Settle();
    const Result<Values> values = ValuesOf(lab()->RunBench(words_[side], *server, lasts_s_));
    if (!values.ok()) throw std::runtime_error(values.status().message());
    return *values;
  }

 private:
  std::array<std::vector<std::string>, 2> words_;
  double lasts_s_;
};

class IdleMeasurement : public Measurement {
 public:
  IdleMeasurement(Lab* lab, std::array<ContenderKind, 2> kinds, const Sizes& sizes)
      : lab_(lab), kinds_(kinds), sizes_(sizes) {}

  Values Round(size_t side) override {
    return MeasureIdle(kinds_[side], sizes_.idle_connections, sizes_.duration_s, lab_);
  }

 private:
  Lab* lab_;
  std::array<ContenderKind, 2> kinds_;
  Sizes sizes_;
};

FigureKind Kind(std::string_view key, std::string label, int digits = 0,
                std::optional<Target> target = std::nullopt) {
  return {std::string(key), std::move(label), digits, target};
}

std::vector<FigureKind> LoadFigures() {
  return {Kind(kOperations, "operations/s"),
          Kind(kP50, "p50, us"),
          Kind(kP99, "p99, us"),
          Kind(kP999, "p99.9, us"),
          Kind(kServerCpu, "server CPU, %"),
          Kind(kClientCpu, "client CPU, %")};
}

std::vector<FigureKind> OpenLoopFigures() {
  return {Kind(kOperations, "operations/s"),
          Kind(kAcquireP50, "p50 of acquires, us"),
          Kind(kAcquireP99, "p99 of acquires, us", 0, Target{Target::Kind::kAtMost, 5'000}),
          Kind(kAcquireP999, "p99.9 of acquires, us", 0, Target{Target::Kind::kAtMost, 20'000}),
          Kind(kP99, "p99 of both, us"),
          Kind(kP999, "p99.9 of both, us"),
          Kind(kServerCpu, "server CPU, %"),
          Kind(kClientCpu, "client CPU, %")};
}

std::vector<std::string> LoadWords(const Sizes& sizes, uint32_t connections, uint32_t flows) {
  return {"--connections", std::to_string(connections), "--flows",   std::to_string(flows),
          "--duration",    Seconds(sizes.duration_s),   "--warm-up", Seconds(sizes.warm_up_s)};
}

Comparison::Sides NamesOf(std::array<ContenderKind, 2> kinds) {
  return {ContenderName(kinds[0]), ContenderName(kinds[1])};
}

Scenario ClosedLoop(const Sizes& sizes, uint32_t connections, uint32_t in_flight, double ratio_min,
                    std::array<ContenderKind, 2> kinds = kBoth) {
  std::vector<std::string> words = LoadWords(sizes, connections, sizes.flows);
  words.insert(words.end(), {"--in-flight", std::to_string(in_flight)});
  Scenario scenario;
  scenario.name = std::to_string(connections) + " x " + std::to_string(in_flight);
  scenario.title = "closed loop, " + std::to_string(connections) + " connections with " +
                   std::to_string(in_flight) + " in flight each, " + std::to_string(sizes.flows) +
                   " flows";
  scenario.sides = NamesOf(kinds);
  scenario.figures = LoadFigures();
  scenario.figures[0].target = Target{Target::Kind::kRatioAtLeast, ratio_min};
  const double lasts_s = sizes.duration_s + sizes.warm_up_s;
  scenario.begin = [words, lasts_s, kinds](Lab* lab) {
    return std::make_unique<LoadMeasurement>(lab, kinds, std::array{words, words}, lasts_s);
  };
  return scenario;
}

Scenario OpenLoop(const Sizes& sizes) {
  constexpr double kExpireAfterS = 2;
  Sizes longer = sizes;
  longer.warm_up_s += kExpireAfterS;  // So that tokens expire all the time that is counted.
  std::vector<std::string> words = LoadWords(longer, 50, sizes.flows);
  words.insert(words.end(), {"--rate", std::to_string(sizes.open_rate), "--expire-rate",
                             std::to_string(sizes.expire_rate), "--expire-after-ms",
                             std::to_string(static_cast<int>(kExpireAfterS * 1000))});
  Scenario scenario;
  scenario.name = "open loop";
  scenario.title = Decimal(sizes.open_rate, 0) + " operations/s on schedule, 50 connections; " +
                   Decimal(sizes.expire_rate, 0) + " tokens/s expire besides";
  scenario.sides = NamesOf(kBoth);
  scenario.figures = OpenLoopFigures();
  const double lasts_s = longer.duration_s + longer.warm_up_s;
  scenario.begin = [words, lasts_s](Lab* lab) {
    return std::make_unique<LoadMeasurement>(lab, kBoth, std::array{words, words}, lasts_s);
  };
  return scenario;
}

Scenario IdleConnections(const Sizes& sizes, std::array<ContenderKind, 2> kinds, double kib_max) {
  Scenario scenario;
  scenario.name = "idle connections";
  scenario.title =
      Decimal(sizes.idle_connections, 0) + " connections that say nothing after their greeting";
  scenario.sides = NamesOf(kinds);
  scenario.figures = {Kind(kServerCpu, "server CPU, %", 2, Target{Target::Kind::kAtMost, 1}),
                      Kind(kKibAConnection, "resident, KiB a connection", 2,
                           Target{Target::Kind::kAtMost, kib_max})};
  scenario.begin = [sizes, kinds](Lab* lab) {
    return std::make_unique<IdleMeasurement>(lab, kinds, sizes);
  };
  return scenario;
}

Scenario ManyFlows(const Sizes& sizes) {
  std::array<std::vector<std::string>, 2> words = {LoadWords(sizes, 50, sizes.many_flows),
                                                   LoadWords(sizes, 50, sizes.flows)};
  for (auto& side : words) side.insert(side.end(), {"--in-flight", "16"});
  Scenario scenario;
  scenario.name = "many flows";
  scenario.title = "nowcalls alone, closed loop, 50 connections with 16 in flight each";
  scenario.sides = {Decimal(sizes.many_flows, 0) + " flows", Decimal(sizes.flows, 0) + " flows"};
  scenario.figures = LoadFigures();
  scenario.figures[0].target = Target{Target::Kind::kRatioAtLeast, 0.9};
  const double lasts_s = sizes.duration_s + sizes.warm_up_s;
  scenario.begin = [words, lasts_s](Lab* lab) {
    return std::make_unique<LoadMeasurement>(lab, kNowcallsTwice, words, lasts_s);
  };
  return scenario;
}

}  // namespace

Values MeasureIdle(ContenderKind kind, uint32_t connections, double duration_s, Lab* lab) {
  const std::unique_ptr<Contender> server = lab->NewContender(kind);
  server->Start();
  const auto before_bytes = static_cast<double>(server->resident_bytes());
  const Json run = lab->RunBench(
      {"idle", "--connections", std::to_string(connections), "--duration", Seconds(duration_s)},
      *server, duration_s);
  const Result<Values> values = ValuesOf(run);
  if (!values.ok()) throw std::runtime_error(values.status().message());
  const double grown_bytes = values->at(std::string(kResidentBytes)) - before_bytes;
  Values idle = *values;
  idle[std::string(kKibAConnection)] = grown_bytes / kKiB / connections;
  return idle;
}

void AddLoadScenarios(const Sizes& sizes, std::vector<Scenario>* scenarios) {
  scenarios->push_back(ClosedLoop(sizes, 50, 64, 5));
  scenarios->push_back(ClosedLoop(sizes, 50, 16, 4));
  scenarios->push_back(ClosedLoop(sizes, 500, 4, 2.5));
  scenarios->push_back(ClosedLoop(sizes, 50, 1, 1.3));
  scenarios->push_back(OpenLoop(sizes));
  scenarios->push_back(ManyFlows(sizes));
  scenarios->push_back(IdleConnections(sizes, kBoth, 8));
  const auto add = [scenarios](std::string name, Scenario scenario) {
    scenario.name = std::move(name);
    scenarios->push_back(std::move(scenario));
  };
  add("TLS 50 x 64", ClosedLoop(sizes, 50, 64, 4, kBothByTls));
  add("TLS and plain 50 x 64", ClosedLoop(sizes, 50, 64, 0.6, kTlsAndPlain));
  add("TLS idle", IdleConnections(sizes, kBothByTls, 24));
}

}  // namespace nowcalls::compare
