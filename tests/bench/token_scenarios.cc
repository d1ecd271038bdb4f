// Scenarios about many live tokens: recovery and memory.
#include <string>
#include <utility>

#include "bench/scenario.h"

namespace nowcalls::compare {
namespace {

constexpr ContenderKind kSides[] = {ContenderKind::kNowcalls, ContenderKind::kRedis};

double BytesAToken(uint64_t before_bytes, uint64_t tokens, const Contender& server) {
  return (static_cast<double>(server.resident_bytes()) - static_cast<double>(before_bytes)) /
         static_cast<double>(tokens);
}

class RecoveryMeasurement : public Measurement {
 public:
  RecoveryMeasurement(Lab* lab, uint64_t tokens) : lab_(lab), tokens_(tokens) {}

  Values Round(size_t side) override {
    const FillAndRecovery measured = MeasureRecovery(kSides[side], tokens_, lab_);
    return {{"ready_s", measured.ready_s}, {"fill_s", measured.fill_s}};
  }

 private:
  Lab* lab_;
  uint64_t tokens_;
};

class MemoryMeasurement : public Measurement {
 public:
  MemoryMeasurement(Lab* lab, const Sizes& sizes) : lab_(lab), sizes_(sizes) {}

  Values Round(size_t side) override {
    const std::unique_ptr<Contender> server = lab_->NewContender(kSides[side]);
    server->Start();
    const uint64_t before_bytes = server->resident_bytes();
    lab_->Fill(sizes_.tokens, *server);
    server->Settle();
    RequireTokens(sizes_.tokens, server.get());
    Values values = {{"bytes_a_token", BytesAToken(before_bytes, sizes_.tokens, *server)}};
    if (kSides[side] == ContenderKind::kRedis) return values;
    lab_->Fill(sizes_.many_tokens - sizes_.tokens, *server);
    RequireTokens(sizes_.many_tokens, server.get());
    values["bytes_a_token_many"] = BytesAToken(before_bytes, sizes_.many_tokens, *server);
    return values;
  }

 private:
  Lab* lab_;
  Sizes sizes_;
};

Scenario Recovery(const Sizes& sizes) {
  Scenario scenario;
  scenario.name = "ready after kill -9";
  scenario.title = "from the start of the process to its first answer, with " +
                   Decimal(static_cast<double>(sizes.tokens), 0) + " live tokens";
  scenario.sides = {ContenderName(kSides[0]), ContenderName(kSides[1])};
  scenario.figures = {{"ready_s", "ready, s", 3, Target{Target::Kind::kRatioAtMost, 0.6}},
                      {"fill_s", "to acquire them before, s", 2, std::nullopt}};
  const uint64_t tokens = sizes.tokens;
  scenario.begin = [tokens](Lab* lab) {
    return std::make_unique<RecoveryMeasurement>(lab, tokens);
  };
  return scenario;
}

Scenario Memory(const Sizes& sizes) {
  const Target target{Target::Kind::kAtMost, 140};
  const auto label = [](uint64_t tokens) {
    return "resident bytes a token at " + Decimal(static_cast<double>(tokens), 0);
  };
  Scenario scenario;
  scenario.name = "memory";
  scenario.title = "resident memory of the server, over what it had before, by live tokens";
  scenario.sides = {ContenderName(kSides[0]), ContenderName(kSides[1])};
  scenario.figures = {{"bytes_a_token", label(sizes.tokens), 1, target},
                      {"bytes_a_token_many", label(sizes.many_tokens), 1, target}};
  scenario.begin = [sizes](Lab* lab) { return std::make_unique<MemoryMeasurement>(lab, sizes); };
  return scenario;
}

}  // namespace

void RequireTokens(uint64_t tokens, Contender* server) {
  const uint64_t found = server->Tokens();
  if (found == tokens) return;
  throw std::runtime_error("of " + std::to_string(tokens) + " tokens " + std::to_string(found) +
                           " are there");
}

FillAndRecovery MeasureRecovery(ContenderKind kind, uint64_t tokens, Lab* lab) {
  FillAndRecovery measured;
  const std::unique_ptr<Contender> server = lab->NewContender(kind);
  server->Start();
  const uint64_t before_bytes = server->resident_bytes();
  measured.fill_s = lab->Fill(tokens, *server).at("counted_s");
  server->Settle();
  RequireTokens(tokens, server.get());
  measured.bytes_a_token = BytesAToken(before_bytes, tokens, *server);
  server->Kill9();
  lab->SyncDisk();
  measured.ready_s = server->Start();
  RequireTokens(tokens, server.get());
  return measured;
}

void AddTokenScenarios(const Sizes& sizes, std::vector<Scenario>* scenarios) {
  scenarios->push_back(Recovery(sizes));
  scenarios->push_back(Memory(sizes));
}

}  // namespace nowcalls::compare
