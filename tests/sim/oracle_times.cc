// How late a token may end, and an acquire be answered.
//
// Time in which the server cannot do what is due does not count: while its loop or its disk stands
// still, and a little longer, since what has arrived meanwhile comes first.
#include <algorithm>
#include <cmath>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

constexpr int64_t kCatchUpMs = 1'500;
constexpr int64_t kAnswerMs = 3'000;
// No sweep takes longer.
constexpr int64_t kWalksMs = 60'000;

}  // namespace

void Oracle::LinkSettled(LinkId link) {
  if (!settled_.insert(link).second) return;
  levels_.SessionSettled(Tick(), link);
  const auto owner = link_owners_.find(link);
  if (owner != link_owners_.end() && owners_[owner->second].unsettled.erase(link) > 0) {
    owners_[owner->second].settled_ms = timeline_->now_ms();
  }
  for (const uint64_t id : present_) {
    Token& token = tokens_[id];
    const auto gone =
        std::erase_if(token.keeps, [&](OpId keep) { return operations_.at(keep).link == link; });
    if (gone > 0) token.touched_ms = timeline_->now_ms();
  }
}

void Oracle::ServerHindered(int64_t until_ms) {
  hindrances_.Add(timeline_->now_ms(), until_ms + kCatchUpMs);
}

void Oracle::ClockSetBack(int64_t by_ms, int64_t stands_ms) {
  set_back_[timeline_->now_ms() + stands_ms] += by_ms;
}

// By how much the server's clock may have been late in what began at `since_ms`.
int64_t Oracle::SetBackMs(int64_t since_ms) const {
  int64_t sum_ms = 0;
  // Each step rounds once more.
  for (const auto& [until_ms, by_ms] : set_back_) sum_ms += until_ms >= since_ms ? by_ms + 1 : 0;
  return sum_ms;
}

// How late the server is with what began at `since_ms` and was due at `due_ms`.
int64_t Oracle::UnhinderedMs(int64_t due_ms, int64_t since_ms) const {
  return hindrances_.FreeMs(due_ms, timeline_->now_ms()) - SetBackMs(since_ms);
}

// The latest moment at which it may be due: what a restart and a mass of lost clients spare it is
// counted in.
int64_t Oracle::EndDueMs(const Token& token) const {
  const FlowFacts& facts = flows_.at(token.seen.flow);
  const auto owner = owners_.find(token.seen.owner);
  const int64_t settled_ms = owner == owners_.end() ? 0 : owner->second.settled_ms;
  const auto mass_ms = static_cast<int64_t>(std::ceil(
      std::max(1.0, promptness_.mass_factor) * static_cast<double>(facts.client_offline_ms)));
  const int64_t bound_ms = std::max(HoldEndsMs(token), ready_ms_);
  const int64_t by_hold_ms = std::min(
      bound_ms, std::max({token.touched_ms + token.hold_ms,
                          ready_ms_ + std::min(facts.hold_ms, grace_ms_), settled_ms + mass_ms}));
  if (owner == owners_.end()) return by_hold_ms;
  const std::set<LinkId>& unsettled = owner->second.unsettled;
  if (!unsettled.empty()) {
    // The server may have noticed only now that it is gone, and spare it from now on.
    const bool may_be_gone = std::any_of(unsettled.begin(), unsettled.end(),
                                         [&](LinkId link) { return broken_ms_.contains(link); });
    if (!may_be_gone) return by_hold_ms;
    return std::min(bound_ms, std::max(by_hold_ms, timeline_->now_ms() + mass_ms));
  }
  const int64_t by_absence_ms =
      std::max(settled_ms + mass_ms, ready_ms_ + std::max(facts.client_offline_ms, grace_ms_));
  return std::min(by_hold_ms, by_absence_ms);
}

void Oracle::NotePresent() {
  size_t& present = were_present_[timeline_->now_ms()];
  present = std::max(present, present_.size());
}

// A sweep walks over all that were there when it began, also those that have ended meanwhile.
int64_t Oracle::SweepMs(int64_t due_ms) const {
  int64_t longest_ms = 0;
  for (const auto& [at_ms, present] : were_present_) {
    const int64_t walk_ms = static_cast<int64_t>(present) * promptness_.sweep_each_ms;
    longest_ms = std::max(longest_ms, walk_ms - std::max<int64_t>(0, due_ms - at_ms));
  }
  return promptness_.sweep_ms + longest_ms;
}

void Oracle::CheckLateEnds() {
  NotePresent();
  were_present_.erase(were_present_.begin(),
                      were_present_.lower_bound(timeline_->now_ms() - kWalksMs));
  if (!runs_) return;
  for (const uint64_t id : present_) {
    const Token& token = tokens_[id];
    const int64_t due_ms = EndDueMs(token);
    const int64_t offline_ms = flows_.at(token.seen.flow).client_offline_ms;
    const bool spared = ready_ms_ + std::max(offline_ms, grace_ms_) > token.touched_ms;
    const int64_t since_ms =
        spared ? std::min(token.issued_from_ms, ready_ms_) : token.issued_from_ms;
    const int64_t late_ms = UnhinderedMs(due_ms, since_ms);
    if (!token.keeps.empty() || late_ms <= promptness_.sweep_ms) continue;
    if (late_ms <= SweepMs(due_ms)) continue;
    Violation("I7 token " + std::to_string(id) + " of " + token.seen.owner + ", flow " +
              std::to_string(token.seen.flow) + " was due at " + std::to_string(due_ms) +
              " ms and is still there");
  }
}

void Oracle::CheckLateAnswer(const Operation& acquire) {
  if (acquire.link == kNoLink) return;
  const int64_t due_ms = acquire.asked_ms + acquire.terms.wait_ms;
  if (UnhinderedMs(due_ms, acquire.asked_ms) <= kAnswerMs + promptness_.network_ms) return;
  Violation("I7 the acquire of " + acquire.owner + ", flow " + std::to_string(acquire.flow) +
            " was to be answered by " + std::to_string(due_ms) + " ms");
}

}  // namespace nowcalls::sim
