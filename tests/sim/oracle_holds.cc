// How long a token may be held: what is asked for, what is told, and the longest hold of its rule.
#include <algorithm>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

std::string ToldText(const std::string& what, int64_t told_ms, int64_t least_ms, int64_t most_ms) {
  return "S6 " + what + " tells a hold of " + std::to_string(told_ms) + " ms, and it is " +
         std::to_string(least_ms) + " to " + std::to_string(most_ms) + " ms";
}

}  // namespace

int64_t Oracle::HoldOf(int64_t flow, int64_t wanted_ms) const {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return 0;
  const FlowFacts& facts = found->second;
  int64_t hold_ms = wanted_ms == 0 ? facts.hold_ms : std::min(wanted_ms, facts.hold_ms);
  if (facts.max_hold_ms > 0) hold_ms = std::min(hold_ms, facts.max_hold_ms);
  return hold_ms;
}

int64_t Oracle::HoldMayEndMs(const Token& token) const {
  const int64_t max_hold_ms = flows_.at(token.seen.flow).max_hold_ms;
  return max_hold_ms == 0 ? kNeverMs : token.issued_from_ms + max_hold_ms;
}

int64_t Oracle::HoldEndsMs(const Token& token) const {
  const int64_t max_hold_ms = flows_.at(token.seen.flow).max_hold_ms;
  if (max_hold_ms == 0) return kNeverMs;
  return token.issued_to_ms + max_hold_ms + SetBackMs(token.issued_from_ms);
}

// Whether it has surely not timed out.
bool Oracle::IsHeld(const Token& token) const {
  const int64_t now_ms = timeline_->now_ms();
  if (now_ms >= token.deadline_ms || now_ms >= HoldMayEndMs(token)) return false;
  const int64_t hold_ms = flows_.at(token.seen.flow).hold_ms;
  return std::none_of(token.keeps.begin(), token.keeps.end(),
                      [&](OpId keep) { return now_ms >= operations_.at(keep).asked_ms + hold_ms; });
}

// An acquire that shares its request id may tell what is left of a token that is there already.
void Oracle::NoteTimes(const Operation& acquire, std::optional<int64_t> told_ms, Token* token) {
  token->seen_live = std::max(token->seen_live, acquire.asked);
  if (acquire.request_id != 0 && SharesRequestId(acquire)) return;
  if (told_ms) CheckToldHold(acquire, *told_ms);
  // Nobody has kept it: its id was not known.
  token->hold_ms = HoldOf(acquire.flow, acquire.terms.hold_ms);
}

void Oracle::CheckToldHold(const Operation& acquire, int64_t told_ms) {
  const int64_t hold_ms = HoldOf(acquire.flow, acquire.terms.hold_ms);
  if (told_ms == hold_ms) return;
  Violation(ToldText("the grant of " + acquire.owner + ", flow " + std::to_string(acquire.flow),
                     told_ms, hold_ms, hold_ms));
}

void Oracle::CheckKeptHold(const Operation& keep, const Token& token, int64_t told_ms) {
  const int64_t hold_ms = flows_.at(token.seen.flow).hold_ms;
  const auto left_ms = [&](int64_t end_ms, int64_t at_ms) {
    return end_ms == kNeverMs ? hold_ms : std::clamp<int64_t>(end_ms - at_ms, 1, hold_ms);
  };
  const int64_t least_ms = left_ms(HoldMayEndMs(token), timeline_->now_ms());
  const int64_t most_ms = left_ms(HoldEndsMs(token), keep.asked_ms);
  if (told_ms >= least_ms && told_ms <= most_ms) return;
  Violation(
      ToldText("the keep of token " + std::to_string(token.seen.id), told_ms, least_ms, most_ms));
}

}  // namespace nowcalls::sim
