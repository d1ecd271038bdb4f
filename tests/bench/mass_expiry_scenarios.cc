// Scenarios in which very many tokens are due within a moment, beside a load that has nothing to do
// with them. Nothing is spared: there was no restart, and there are fewer clients than the server
// would take for a network cut when they go (--mass-expiry-sessions-min, 10).
#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "bench/interruption.h"
#include "bench/scenario.h"

namespace nowcalls::compare {
namespace {

// The load beside begins to count shortly before the first token is due, and does so for the time
// in which all of them should be gone; counting for longer would hide what happens then.
constexpr int64_t kLoadBeforeMs = 1'500;
constexpr char kLoadWarmUp[] = "1.3";
constexpr char kLoadDuration[] = "2.2";
constexpr int64_t kLoadMsMax = 60'000;
constexpr int64_t kEndMsMax = 60'000;
constexpr char kForever[] = "2592000000";  // 30 days.

// Tokens that are out and become due.
struct Due {
  uint64_t tokens = 0;
  int64_t first_ms = 0;   // As BoottimeMs. When the first of them is due.
  int64_t spread_ms = 0;  // The last of them is due so much later at most.
  std::string reason;     // Why they end, as `info` calls it.
};

// When the server had taken all of them back.
int64_t AwaitEnd(const Due& due, const NowcallsContender& server) {
  Json info;
  const bool gone = Await(due.first_ms + kEndMsMax - BoottimeMs(), [&] {
    info = server.Info();
    return info.at("totals").at("ended").at(due.reason) >= due.tokens;
  });
  const int64_t gone_ms = BoottimeMs();
  if (!gone) {
    throw std::runtime_error("the tokens were not taken back within " +
                             std::to_string(kEndMsMax / 1000) + " s as " + due.reason + ": " +
                             info.at("totals").at("ended").dump());
  }
  if (info.at("counts").at("mass_expiries") != 0) {
    throw std::runtime_error("the server took the end of a fill for a network cut");
  }
  return gone_ms;
}

class MassExpiry : public Measurement {
 public:
  MassExpiry(Lab* lab, const Sizes& sizes) : lab_(lab), sizes_(sizes) {}

  Values Round(size_t /*side*/) override {
    const std::unique_ptr<NowcallsContender> server = lab_->NewNowcalls();
    server->Start();
    const Due due = Fill(server.get());
    RequireTokens(due.tokens, server.get());
    const int64_t load_at_ms = due.first_ms - kLoadBeforeMs;
    if (BoottimeMs() > load_at_ms) {
      throw std::runtime_error(
          "the tokens were due before the load could begin; the machine is "
          "too slow for this scenario");
    }
    Pause(load_at_ms - BoottimeMs());
    BenchRun load =
        lab_->StartBench({"--namespace", "beside", "--first-flow", "5000001", "--connections", "10",
                          "--rate", std::to_string(sizes_.mass_rate), "--flows", "16", "--warm-up",
                          kLoadWarmUp, "--duration", kLoadDuration},
                         *server);
    const int64_t gone_ms = AwaitEnd(due, *server);
    const Result<Values> values = ValuesOf(lab_->Finish(&load, kLoadMsMax));
    if (!values.ok()) throw std::runtime_error(values.status().message());
    Values measured = *values;
    measured["reclaimed_s"] = static_cast<double>(gone_ms - due.first_ms) / 1000;
    measured["spread_s"] = static_cast<double>(due.spread_ms) / 1000;
    return measured;
  }

 protected:
  virtual Due Fill(NowcallsContender* server) = 0;
  Lab* lab() { return lab_; }
  const Sizes& sizes() const { return sizes_; }

 private:
  Lab* lab_;
  Sizes sizes_;
};

// Tokens that nobody keeps. They are acquired by some fills one after the other, each with a hold
// that ends at the same moment for its first token; so they are due within the time of one fill.
class Timeouts : public MassExpiry {
 public:
  using MassExpiry::MassExpiry;

 private:
  static constexpr uint32_t kFills = 8;
  static constexpr int64_t kBeforeMs = 4'000;
  static constexpr uint64_t kFillPerMsMin = 40;

  Due Fill(NowcallsContender* server) override {
    const uint64_t tokens = sizes().tokens / kFills;
    Due due;
    due.tokens = tokens * kFills;
    due.first_ms = BoottimeMs() + kBeforeMs + static_cast<int64_t>(due.tokens / kFillPerMsMin);
    due.reason = "resource_timeout";
    for (uint32_t i = 0; i < kFills; ++i) {
      const int64_t begin_ms = BoottimeMs();
      lab()->Fill(tokens, *server,
                  {"--namespace", "mass-" + std::to_string(i), "--first-flow",
                   std::to_string(2'000'001 + i), "--hold-ms",
                   std::to_string(due.first_ms - begin_ms), "--client-offline-ms", kForever});
      due.spread_ms = std::max(due.spread_ms, BoottimeMs() - begin_ms);
    }
    return due;
  }
};

// Tokens of a single client that does not come back: all are due at the same moment.
class LostClient : public MassExpiry {
 public:
  using MassExpiry::MassExpiry;

 private:
  static constexpr int64_t kOfflineMs = 4'000;

  Due Fill(NowcallsContender* server) override {
    Due due;
    due.tokens = sizes().tokens;
    lab()->Fill(due.tokens, *server, {"--client-offline-ms", std::to_string(kOfflineMs)});
    // Some ms after the server saw the connections go.
    due.first_ms = BoottimeMs() + kOfflineMs;
    due.reason = "client_offline";
    return due;
  }
};

template <typename Kind>
Scenario MassExpiryScenario(const std::string& name, const std::string& what, const Sizes& sizes) {
  Scenario scenario;
  scenario.name = name;
  scenario.title = Decimal(static_cast<double>(sizes.tokens), 0) + " tokens " + what +
                   ", beside an open loop of " + Decimal(sizes.mass_rate, 0) +
                   " operations/s on other flows";
  scenario.sides = {ContenderName(ContenderKind::kNowcalls), ""};
  scenario.figures = {
      {"reclaimed_s", "first due to last taken back, s", 2, Target{Target::Kind::kAtMost, 2}},
      {"spread_s", "of which to the last due, at most, s", 2, std::nullopt},
      {std::string(kAcquireP50), "p50 of acquires beside, us", 0, std::nullopt},
      {std::string(kAcquireP99), "p99 of acquires beside, us", 0, std::nullopt},
      {std::string(kAcquireP999), "p99.9 of acquires beside, us", 0,
       Target{Target::Kind::kAtMost, 20'000}}};
  scenario.begin = [sizes](Lab* lab) { return std::make_unique<Kind>(lab, sizes); };
  return scenario;
}

}  // namespace

void AddMassExpiryScenarios(const Sizes& sizes, std::vector<Scenario>* scenarios) {
  scenarios->push_back(
      MassExpiryScenario<Timeouts>("mass expiry", "that nobody keeps are due together", sizes));
  scenarios->push_back(MassExpiryScenario<LostClient>(
      "mass expiry of a client", "of one client that is gone are due at once", sizes));
}

}  // namespace nowcalls::compare
