// How long tokens are held, and what clients are told of those that were taken back.
#include <algorithm>

#include "crash/checker.h"
#include "crash/checker_times.h"

namespace nowcalls::crash {
// One with a request id may be answered with a token that it was granted before, and has kept.
void Checker::CheckToldHold(const Operation& operation) {
  const FlowFacts& flow = flows_[operation.flow_id];
  int64_t hold_ms = RuleHoldMs(flow);
  if (operation.request_id == 0 && operation.wanted_ms > 0) {
    hold_ms = std::min(hold_ms, operation.wanted_ms);
  }
  const bool exact = operation.request_id == 0 && operation.wanted_ms > 0;
  const bool bounded = flow.max_hold_ms > 0;
  if (exact ? operation.hold_ms == hold_ms : !bounded || operation.hold_ms <= hold_ms) return;
  Report("I13 not held for " + std::to_string(hold_ms) + " ms: " + Describe(operation),
         operation.token_id);
}

void Checker::CheckLost(const History& history) {
  for (const LostEvent& lost : history.lost) {
    ++counts_.told_lost;
    const auto found = tokens_.find(lost.token_id);
    if (found != tokens_.end()) {
      CheckLostToken(lost, &found->second);
      continue;
    }
    if (ended_.contains(lost.token_id)) {
      Report("I13 token " + std::to_string(lost.token_id) + " ended before it was told lost",
             lost.token_id);
    }
    // Its grant was not answered.
    reclaimed_[lost.token_id] = "it was told lost to " + lost.client;
  }
  std::map<uint64_t, const LostEvent*> told;
  for (const LostEvent& lost : history.lost) told[lost.token_id] = &lost;
  for (const Operation& operation : history.operations) {
    const auto found = told.find(operation.token_id);
    if (found == told.end()) continue;
    const bool released =
        operation.action == Action::kRelease && operation.outcome == Outcome::kReleased;
    const bool kept =
        operation.outcome == Outcome::kKept && operation.asked_us > found->second->at_us;
    if (!released && !kept) continue;
    Report(
        "I13 told lost at " + std::to_string(found->second->at_us) + ", but " + Describe(operation),
        operation.token_id);
  }
}

void Checker::CheckLostToken(const LostEvent& lost, Token* token) {
  const std::string what =
      "told lost to " + lost.client + " (" + lost.reason + ") at " + std::to_string(lost.at_us);
  token->trail.push_back(what);
  if (token->client != lost.client) {
    Report("I13 token " + std::to_string(lost.token_id) + " of another client is " + what,
           lost.token_id);
  }
  if (lost.reason == "resource_timeout" && lost.at_us < token->deadline_us) {
    Report("I13 token " + std::to_string(lost.token_id) + " is held until " +
               std::to_string(token->deadline_us) + ", and " + what,
           lost.token_id);
  }
  token->gone = true;
  if (lost.at_us < token->gone_us) {
    token->gone_us = lost.at_us;
    token->gone_by = lost.client;
  }
}

}  // namespace nowcalls::crash
