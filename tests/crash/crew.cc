#include "crash/crew.h"

#include <cstdint>
#include <map>
#include <utility>

#include "crash/lanes.h"
#include "crash/rule_sets.h"

namespace nowcalls::crash {

Crew::Crew(Prng* prng, bool instances) : operator_(prng->Next()), frames_(prng->Next()) {
  std::vector<int64_t> flows = {1, 2, 3, 4, 5, kKeyedFlow, RuleSets::kRetiredFlow};
  for (int64_t i = 0; i < kKeys; ++i) flows.push_back(kFirstKeyLane + i);
  for (int i = 0; i < 5; ++i) {
    Add({.client_id = "client-" + std::to_string(i), .flow_ids = flows}, prng);
  }
  // Another process of the last one, with tokens of its own.
  if (instances) {
    Add({.client_id = "client-4", .instance = uint64_t{1} << 62, .flow_ids = flows}, prng);
  }
  Add({.client_id = "mover", .name_space = RuleSets::kMoving, .flow_ids = {11, 12}}, prng);
  // Nobody can release what such a connection leaves behind, so it uses what ends by itself.
  for (int i = 0; i < 2; ++i) {
    Add({.client_id = "", .flow_ids = {3, 5}, .held_max = 5, .reconnects_per_10k = 5}, prng);
  }
}

void Crew::Add(LoadOptions options, Prng* prng) {
  clients_.push_back(std::make_unique<LoadClient>(std::move(options), prng->Next()));
}

void Crew::Start(const std::string& address,
                 const std::function<std::string(const std::string&)>& log_path,
                 LoadSignals* signals) {
  for (const auto& client : clients_) {
    const std::string log = log_path(std::to_string(threads_.size()));
    threads_.emplace_back([address, log, &client, signals] { client->Run(address, log, signals); });
  }
  threads_.emplace_back(
      [this, address, log = log_path("frames"), signals] { frames_.Run(address, log, signals); });
  threads_.emplace_back([this, address, log = log_path("operator"), signals] {
    operator_.Run(address, log, signals);
  });
}

void Crew::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::vector<std::string> Crew::Problems() const {
  std::vector<std::string> problems;
  const auto add = [&](const std::string& problem) {
    if (!problem.empty()) problems.push_back(problem);
  };
  for (const auto& client : clients_) add(client->problem());
  add(frames_.problem());
  add(operator_.problem());
  return problems;
}

void Crew::Adopt(const LedgerView& ledger) {
  std::map<std::string, std::vector<uint64_t>> held;
  for (const auto& token : ledger.tokens) held[token.client_id].push_back(token.token_id);
  for (const auto& client : clients_) client->SetHeld(held[client->owner()]);
}

}  // namespace nowcalls::crash
