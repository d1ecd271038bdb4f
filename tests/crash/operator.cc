#include "crash/operator.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "crash/rule_sets.h"
#include "support/server_process.h"

namespace nowcalls::crash {
namespace {

using testing::Json;
using testing::Reply;

constexpr char kName[] = "operator";
constexpr char kReason[] = "the loop's operator";
// One for each kind: unlimited, exchanged rules, swept, lost by clients that stay away.
constexpr int64_t kReclaimed[] = {2, 3, 5, 12};
constexpr int64_t kDrained[] = {4, 12};
// Most calls take all there is, some leave tokens.
constexpr int64_t kLimitMax = 1'000;

// With the times that the checker expects.
Json RetiredRules(bool in_force) {
  Json rules = Json::array();
  for (const FlowFacts& flow : RuleSets::Flows()) {
    if (!in_force || flow.flow_id != RuleSets::kRetiredFlow) continue;
    rules.push_back(testing::RuleJson(flow.flow_id, 1'000,
                                      {{"resourceTimeout", flow.resource_timeout_ms},
                                       {"clientOfflineTime", flow.client_offline_ms}}));
  }
  return rules;
}

}  // namespace

void Operator::Run(const std::string& address, const std::string& log_path,
                   const LoadSignals* signals) {
  log_ = std::make_unique<HistoryWriter>(log_path);
  problem_.clear();
  next_number_ = 1;
  rpc_ = testing::RpcClient(address);
  lost_ = false;
  while (!lost_ && !signals->stop) {
    ActOnce();
    std::this_thread::sleep_for(std::chrono::milliseconds(prng_.Between(1, 60)));
  }
  if (signals->ending && lost_) problem_.clear();
}

// Every line begins with its first waiter, and every flow is one of the loop's.
void Operator::ListWaiters() {
  const Reply listed = rpc_.Call("waiters", Json::array());
  bool sound = listed.ok();
  const auto flow_ids = RuleSets::FlowIds();
  const auto line_of = [](const Json& row) {
    return row.at("flow_id").dump() + (row.contains("param") ? row.at("param").dump() : "");
  };
  std::string line;
  int64_t place = 0;
  if (listed.ok()) {
    for (const Json& row : listed.result.at(0)) {
      place = line_of(row) == line ? place + 1 : 1;
      line = line_of(row);
      const auto flow_id = row.at("flow_id").get<int64_t>();
      const bool known = flow_id == kKeyedFlow ||
                         std::find(flow_ids.begin(), flow_ids.end(), flow_id) != flow_ids.end();
      sound = sound && known && row.at("place").get<int64_t>() == place;
    }
  }
  if (sound) return;
  problem_ = "the operator's listing of waiters got: " + listed.ToString();
  lost_ = true;
}

void Operator::ActOnce() {
  if (prng_.Below(8) == 0) return ListWaiters();
  Operation operation;
  const uint64_t roll = prng_.Below(10);
  const int64_t limit = prng_.Below(3) == 0 ? 1 + static_cast<int64_t>(prng_.Below(5)) : kLimitMax;
  if (roll < 4) return ReclaimOne();
  if (roll < 5) {
    operation.action = Action::kReclaimFlow;
    operation.flow_id = kReclaimed[prng_.Below(std::size(kReclaimed))];
    return Do(operation, "reclaim_flow", {operation.flow_id, kReason, limit});
  }
  if (roll < 6) {
    operation.action = Action::kReclaimClient;
    operation.holder = "client-" + std::to_string(prng_.Below(5));
    return Do(operation, "reclaim_client", {"default", operation.holder, kReason, limit});
  }
  if (roll < 8) {
    const bool on = prng_.Below(3) == 0;
    operation.action = on ? Action::kDrain : Action::kUndrain;
    operation.flow_id = kDrained[prng_.Below(std::size(kDrained))];
    return Do(operation, "drain", {operation.flow_id, on});
  }
  RetireOrReturn(limit);
}

void Operator::ReclaimOne() {
  constexpr int64_t kListed = 50;
  const auto flow_ids = RuleSets::FlowIds();
  const Json filter = {{"flow_id", FlowOfLane(flow_ids[prng_.Below(flow_ids.size())])}};
  const Reply listed = rpc_.Call("tokens", {filter, kListed});
  if (!listed.ok()) {
    problem_ = "the operator's listing got: " + listed.ToString();
    lost_ = true;
    return;
  }
  const Json& rows = listed.result.at(0);
  if (rows.empty()) return;
  Operation operation;
  operation.action = Action::kReclaim;
  operation.token_id = rows.at(prng_.Below(rows.size())).at("token_id").get<uint64_t>();
  Do(operation, "reclaim", {operation.token_id, kReason});
}

// A purge under the rule is refused.
void Operator::RetireOrReturn(int64_t limit) {
  const Json rules = RetiredRules(prng_.Below(2) == 0);
  const Reply reply = rpc_.Call("rules_load", {RuleSets::kRetired, rules});
  if (!reply.ok()) {
    problem_ = "the operator's rules_load got: " + reply.ToString();
    lost_ = true;
    return;
  }
  Operation operation;
  operation.action = Action::kPurge;
  operation.flow_id = RuleSets::kRetiredFlow;
  if (prng_.Below(2) == 0) Do(operation, "purge", {operation.flow_id, limit});
}

void Operator::Do(Operation operation, const char* method, const Json& params) {
  constexpr int64_t kReleaseOk = 6;
  operation.number = next_number_++;
  operation.client = kName;
  log_->Ask(operation);
  const Reply reply = rpc_.Call(method, params);
  if (!reply.answered() || (!reply.ok() && reply.error_name != "BAD_PARAMS")) {
    problem_ = std::string("the operator's ") + method + " got: " + reply.ToString();
    lost_ = true;
    return;
  }
  operation.outcome = Outcome::kRefused;  // A purge under a rule, or a flow that is not there.
  if (reply.ok()) {
    const Json& first = reply.result.at(0);
    switch (operation.action) {
      case Action::kReclaim:
        operation.outcome = first == kReleaseOk ? Outcome::kReleased : Outcome::kGone;
        break;
      case Action::kDrain:
      case Action::kUndrain:
        if (first == 0) operation.outcome = Outcome::kDone;
        break;
      default:
        operation.outcome = Outcome::kReclaimed;
        operation.reclaimed = first.get<int64_t>();
        operation.more = reply.result.at(1).get<bool>();
        break;
    }
  }
  log_->Answer(operation);
}

void Operator::Settle(const std::string& address) {
  testing::RpcClient client(address);
  for (const int64_t flow_id : kDrained) client.Call("drain", {flow_id, false});
  const Reply reply = client.Call("rules_load", {RuleSets::kRetired, RetiredRules(true)});
  if (!reply.ok()) throw std::runtime_error("rules_load: " + reply.ToString());
}

}  // namespace nowcalls::crash
