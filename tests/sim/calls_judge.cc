#include "sim/calls_judge.h"

#include <algorithm>
#include <utility>

namespace nowcalls::sim {
namespace {

// Milliseconds are cut off at both ends.
constexpr int64_t kCutMs = 2;

}  // namespace

CallsId CallsJudge::Asked(uint64_t at, CallsAsked asked) {
  open_[++last_id_] = {.asked = std::move(asked), .at = at, .at_ms = timeline_->now_ms()};
  return last_id_;
}

// Of a life of the server that is over, nothing is said: Died has taken note of what may be left.
void CallsJudge::Answered(uint64_t at, CallsId id, TokenStatus status, int64_t wait_ms) {
  const auto open = open_.extract(id);
  if (open.empty()) return;
  const Request& request = open.mapped();
  if (status == TokenStatus::kNoRuleExists) return CheckNoRule(request, at);
  if (request.asked.misfit != (status == TokenStatus::kBadRequest)) {
    return accuse_("S5 the request for " + Text(request) + " is answered " +
                   std::string(TokenStatusName(status)));
  }
  switch (status) {
    case TokenStatus::kBadRequest: return;
    case TokenStatus::kBlocked: return CheckBlocked(request, at);
    // As in Sentinel, a call that is borrowed from the next bucket does not count before that
    // begins: meanwhile others may fill the window, which then holds both.
    case TokenStatus::kShouldWait: return Pass(request, /*sure=*/false);
    case TokenStatus::kOk: break;
    default:
      return accuse_("S5 the request for " + Text(request) + " is refused as " +
                     std::string(TokenStatusName(status)) + " without a reason");
  }
  if (wait_ms > 0) accuse_("S5 the request for " + Text(request) + " passes at once, and waits");
  Pass(request, /*sure=*/true);
  for (const auto& [lane, count] : request.asked.calls) {
    CheckWindow(lane, lanes_[lane], request, at);
  }
}

void CallsJudge::Pass(const Request& request, bool sure) {
  for (const auto& [lane, count] : request.asked.calls) {
    Lane& of = lanes_[lane];
    Forget(&of);
    of.passed.push_back({.count = count,
                         .asked = request.at,
                         .asked_ms = request.at_ms,
                         .done_ms = timeline_->now_ms(),
                         .sure = sure});
  }
}

// Calls of no window any more, also if the server was hindered or down for long.
void CallsJudge::Forget(Lane* lane) const {
  constexpr int64_t kLongMs = 30'000;
  const int64_t left_ms = timeline_->now_ms() - 2 * lane->facts.interval_ms - kLongMs;
  std::erase_if(lane->passed, [&](const Passed& p) { return p.done_ms < left_ms; });
}

// The last of the calls that were surely counted within a span saw all others in its window.
void CallsJudge::CheckWindow(int64_t lane, const Lane& of, const Request& request,
                             uint64_t now) const {
  if (of.facts.shadow) return;
  const int64_t interval_ms = of.facts.interval_ms;
  const int64_t span_ms = interval_ms - of.facts.bucket_ms() - kCutMs;
  const int64_t least_limit = levels_->Highest(lane, request.at, now, interval_ms);
  for (const Passed& first : of.passed) {
    int64_t calls = 0;
    uint64_t from = now;
    for (const Passed& p : of.passed) {
      if (!p.sure || p.asked_ms < first.asked_ms || p.done_ms > first.asked_ms + span_ms) continue;
      calls += p.count;
      from = std::min(from, p.asked);
    }
    // A rule that was gone in between begins a window anew.
    if (calls <= least_limit || levels_->MayBeAbsent(lane, from, now)) continue;
    const int64_t limit = levels_->Highest(lane, from, now, interval_ms);
    if (calls <= limit) continue;
    return accuse_("S4 " + std::to_string(calls) + " calls of flow " + std::to_string(lane) +
                   " passed within " + std::to_string(span_ms) + " ms, of a window that allows " +
                   std::to_string(limit));
  }
}

void CallsJudge::CheckNoRule(const Request& request, uint64_t now) const {
  for (const auto& [lane, count] : request.asked.calls) {
    if (levels_->MayBeAbsent(lane, request.at, now)) return;
  }
  accuse_("S5 the request for " + Text(request) + " finds no rule");
}

void CallsJudge::CheckBlocked(const Request& request, uint64_t now) {
  for (const auto& [lane, count] : request.asked.calls) {
    if (levels_->MayDrain(lane, request.at, now) || MayBeFull(lane, request, now)) return;
  }
  accuse_("S5 the request for " + Text(request) + " is blocked, and had room");
}

// All calls that may be in the window are taken to be in it. A borrowed call counts in the bucket
// after its own; a server that is held up may count late.
bool CallsJudge::MayBeFull(int64_t lane, const Request& request, uint64_t now) const {
  const auto found = lanes_.find(lane);
  if (found == lanes_.end() || found->second.facts.shadow) return false;
  const WindowFacts& facts = found->second.facts;
  const int64_t span_ms = facts.interval_ms + 2 * facts.bucket_ms() + kCutMs;
  int64_t calls = request.asked.calls.at(lane);
  for (const Passed& p : found->second.passed) {
    if (hindrances_->FreeMs(p.done_ms, request.at_ms) <= span_ms) calls += p.count;
  }
  for (const auto& [id, other] : open_) {
    const auto asks = other.asked.calls.find(lane);
    if (asks != other.asked.calls.end()) calls += asks->second;
  }
  return calls > levels_->Lowest(lane, request.at, now, facts.interval_ms);
}

bool CallsJudge::IsSaved(const Passed& passed, bool orderly) const {
  if (orderly) return true;
  const int64_t until_ms = losing_ ? synced_ms_ : timeline_->now_ms();
  return hindrances_->FreeMs(passed.done_ms, until_ms) > save_ms_;
}

void CallsJudge::Died(bool orderly) {
  // What was asked and not answered may have passed.
  for (const auto& [id, request] : std::exchange(open_, {})) Pass(request, /*sure=*/false);
  for (auto& [number, lane] : lanes_) {
    if (!lane.facts.in_ledger) {
      lane.passed.clear();
      continue;
    }
    for (Passed& passed : lane.passed) passed.sure = passed.sure && IsSaved(passed, orderly);
  }
  losing_ = false;
}

void CallsJudge::Ready(bool clock_jumped) {
  if (!clock_jumped) return;
  for (auto& [number, lane] : lanes_) {
    for (Passed& passed : lane.passed) {
      passed.sure = false;
      passed.done_ms = timeline_->now_ms();
    }
  }
}

std::string CallsJudge::Text(const Request& request) const {
  std::string text;
  for (const auto& [lane, count] : request.asked.calls) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " calls of flow " +
            std::to_string(lane);
  }
  return text;
}

}  // namespace nowcalls::sim
