#include "sim/scenario.h"

#include "base/check.h"
#include "cluster/lease.h"

namespace nowcalls::sim {
namespace {

WorldOptions Options(const std::vector<SimRule>& rules, size_t nodes) {
  WorldOptions options;
  options.plan.network_delay_us_max = 1;
  options.plan.commit_us_max = 1;
  options.plan.turn_us_max = 1;
  options.core.token_id_key = {1, 2};
  options.core.sweep_budget_us = 0;
  options.rules = rules;
  options.keeps_lines = true;
  options.supervised = false;
  options.nodes = nodes;
  return options;
}

}  // namespace

Scenario::Scenario(const std::vector<SimRule>& rules, size_t nodes)
    : world_(Options(rules, nodes)) {
  Start();
  LoadRules(rules);
  Told();
}

Scenario::~Scenario() {
  for (const std::string& violation : world_.oracle().violations()) {
    std::fprintf(stderr, "%s\n", violation.c_str());
  }
  NOWCALLS_CHECK(world_.oracle().violations().empty());
}

SimClient& Scenario::Client(const std::string& name) {
  SimClient& client = world_.AddClient({.name = name, .name_space = "shop", .client_id = name});
  Open(&client);
  Told();
  return client;
}

void Scenario::Open(SimClient* client) {
  client->Open(/*steady=*/true);
  Settle();
}

SimSentinel& Scenario::Sentinel(const std::string& name) {
  SimSentinel& sentinel = world_.AddSentinel({.name = name, .name_space = "shop"});
  Open(&sentinel);
  Told();
  return sentinel;
}

void Scenario::Open(SimSentinel* sentinel) {
  sentinel->Open(/*steady=*/true);
  Settle();
}

void Scenario::LoadRules(const std::vector<SimRule>& rules) {
  NOWCALLS_CHECK(world_.admin().Ready());
  world_.admin().LoadRules(rules, "shop");
  Settle();
  NOWCALLS_CHECK(world_.admin().last_was_answered());
}

void Scenario::Take(SimClient* client, int64_t flow, uint64_t request_id) {
  const uint64_t granted = client->granted();
  client->Acquire({.flow = flow, .request_id = request_id});
  Settle();
  NOWCALLS_CHECK(client->granted() == granted + 1);
  Told();
}

void Scenario::Kill(bool batch_survives) {
  server().SurviveNext(batch_survives);
  server().Kill();
  server().HoldCommits(false);
  Settle();
}

SimServer& Scenario::TakeClaim(bool batch_lands) {
  SimServer& writer = server();
  world_.cluster().Depose(batch_lands);
  Pass(20);  // More than a takeover takes.
  NOWCALLS_CHECK(writer.runs() && server().runs() && &server() != &writer);
  return writer;
}

void Scenario::Depose(bool batch_lands) {
  SimServer& writer = TakeClaim(batch_lands);
  writer.HoldCommits(false);
  Pass(cluster::Lease::kTtlMs);  // It cannot renew its lease.
  NOWCALLS_CHECK(!writer.runs());
}

void Scenario::Terminate() {
  server().Terminate();
  Settle();
  NOWCALLS_CHECK(!server().runs());
}

void Scenario::Start() {
  world_.StartServer();
  Settle();
}

}  // namespace nowcalls::sim
