#include "sim/calls_judge.h"

#include <algorithm>
#include <utility>

namespace nowcalls::sim {
namespace {

// Milliseconds are cut off at both ends.
constexpr int64_t kCutMs = 2;

// The window of a namespace's guard.
const WindowFacts kGuard{.interval_ms = 1'000, .samples = 10};

int64_t SureSpanMs(const WindowFacts& window) {
  return window.interval_ms - window.bucket_ms() - kCutMs;
}

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
  // Of a flow id with a rule of the other kind alone, a request is told so.
  const bool is_told = status == TokenStatus::kBadRequest && !request.asked.misfit;
  if (status == TokenStatus::kNoRuleExists || is_told) return CheckNoRule(request, at);
  if (request.asked.misfit && status != TokenStatus::kBadRequest) {
    return accuse_("S5 the request for " + Text(request) + " is answered " +
                   std::string(TokenStatusName(status)));
  }
  switch (status) {
    case TokenStatus::kBadRequest: return;
    case TokenStatus::kBlocked: return CheckBlocked(request, at);
    case TokenStatus::kTooManyRequest: return CheckTooMany(request);
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

void CallsJudge::GroupRefused(CallsId id) {
  const auto open = open_.extract(id);
  if (!open.empty()) Count(open.mapped(), /*sure=*/false);
}

void CallsJudge::MayHavePassed(CallsId id) {
  const auto open = open_.extract(id);
  if (!open.empty()) Pass(open.mapped(), /*sure=*/false);
}

void CallsJudge::Pass(const Request& request, bool sure) {
  for (const auto& [number, count] : request.asked.calls) {
    Lane& lane = lanes_[number];
    Note(&lane.passed, lane.facts, request, count, sure);
  }
  Count(request, sure);
}

// The guard counts requests that pass, and those that a rule blocks, but for a drain.
void CallsJudge::Count(const Request& request, bool sure) {
  Note(&guards_[NamespaceOf(request)], kGuard, request, 1, sure);
  if (sure) CheckGuard(request);
}

const std::string& CallsJudge::NamespaceOf(const Request& request) const {
  static const std::string none;
  const auto lane = lanes_.find(request.asked.calls.begin()->first);
  return lane == lanes_.end() ? none : lane->second.facts.name_space;
}

void CallsJudge::Note(std::vector<Passed>* passed, const WindowFacts& window,
                      const Request& request, int64_t count, bool sure) const {
  // Calls of no window any more, also if the server was hindered or down for long.
  constexpr int64_t kLongMs = 30'000;
  const int64_t now_ms = timeline_->now_ms();
  const int64_t left_ms = now_ms - 2 * window.interval_ms - kLongMs;
  std::erase_if(*passed, [&](const Passed& p) { return p.done_ms < left_ms; });
  passed->push_back({.count = count,
                     .asked = request.at,
                     .asked_ms = request.at_ms,
                     .done_ms = now_ms,
                     .sure = sure});
}

int64_t CallsJudge::SureCalls(const std::vector<Passed>& passed, const Passed& first,
                              int64_t span_ms, uint64_t* from) {
  int64_t calls = 0;
  for (const Passed& p : passed) {
    if (!p.sure || p.asked_ms < first.asked_ms || p.done_ms > first.asked_ms + span_ms) continue;
    calls += p.count;
    *from = std::min(*from, p.asked);
  }
  return calls;
}

// A borrowed call counts in the bucket after its own; a server that is held up may count late.
int64_t CallsJudge::CallsWithin(const std::vector<Passed>& passed, const WindowFacts& window,
                                const Request& request) const {
  const int64_t span_ms = window.interval_ms + 2 * window.bucket_ms() + kCutMs;
  int64_t calls = 0;
  for (const Passed& p : passed) {
    if (hindrances_->FreeMs(p.done_ms, request.at_ms) <= span_ms) calls += p.count;
  }
  return calls;
}

// The last of the calls that were surely counted within a span saw all others in its window.
void CallsJudge::CheckWindow(int64_t number, const Lane& lane, const Request& request,
                             uint64_t now) const {
  if (lane.facts.shadow) return;
  const int64_t interval_ms = lane.facts.interval_ms;
  const int64_t span_ms = SureSpanMs(lane.facts);
  const int64_t least_limit = levels_->Highest(number, request.at, now, interval_ms);
  for (const Passed& first : lane.passed) {
    uint64_t from = now;
    const int64_t calls = SureCalls(lane.passed, first, span_ms, &from);
    // A rule that was gone in between begins a window anew.
    if (calls <= least_limit || levels_->MayBeAbsent(number, from, now)) continue;
    const int64_t limit = levels_->Highest(number, from, now, interval_ms);
    if (calls <= limit) continue;
    return accuse_("S4 " + std::to_string(calls) + " calls of flow " + std::to_string(number) +
                   " passed within " + std::to_string(span_ms) + " ms, of a window that allows " +
                   std::to_string(limit));
  }
}

void CallsJudge::CheckGuard(const Request& request) const {
  const std::vector<Passed>& requests = guards_.at(NamespaceOf(request));
  uint64_t from = 0;
  for (const Passed& first : requests) {
    const int64_t passed = SureCalls(requests, first, SureSpanMs(kGuard), &from);
    if (passed <= guard_max_) continue;
    return accuse_("S4 " + std::to_string(passed) + " requests of namespace " +
                   NamespaceOf(request) + " passed its guard, of " + std::to_string(guard_max_));
  }
}

void CallsJudge::CheckTooMany(const Request& request) const {
  auto requests = static_cast<int64_t>(open_.size());
  const auto guard = guards_.find(NamespaceOf(request));
  if (guard != guards_.end()) requests += CallsWithin(guard->second, kGuard, request);
  if (requests >= guard_max_) return;
  accuse_("S5 the request for " + Text(request) + " is too many, and there were " +
          std::to_string(requests));
}

void CallsJudge::CheckNoRule(const Request& request, uint64_t now) const {
  for (const auto& [lane, count] : request.asked.calls) {
    if (levels_->MayBeAbsent(lane, request.at, now)) return;
  }
  accuse_("S5 the request for " + Text(request) + " finds no rule");
}

void CallsJudge::CheckBlocked(const Request& request, uint64_t now) {
  Count(request, /*sure=*/false);
  for (const auto& [lane, count] : request.asked.calls) {
    if (levels_->MayDrain(lane, request.at, now) || MayBeFull(lane, request, now)) return;
  }
  accuse_("S5 the request for " + Text(request) + " is blocked, and had room");
}

// All calls that may be in the window are taken to be in it.
bool CallsJudge::MayBeFull(int64_t number, const Request& request, uint64_t now) const {
  const auto found = lanes_.find(number);
  if (found == lanes_.end() || found->second.facts.shadow) return false;
  const Lane& lane = found->second;
  int64_t calls = request.asked.calls.at(number) + CallsWithin(lane.passed, lane.facts, request);
  for (const auto& [id, other] : open_) {
    const auto asks = other.asked.calls.find(number);
    if (asks != other.asked.calls.end()) calls += asks->second;
  }
  return calls > levels_->Lowest(number, request.at, now, lane.facts.interval_ms);
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
  guards_.clear();
  losing_ = false;
}

void CallsJudge::Ready(ClockGap gap) {
  if (gap == ClockGap::kNone) return;
  for (auto& [number, lane] : lanes_) {
    for (Passed& passed : lane.passed) {
      passed.sure = passed.sure && gap == ClockGap::kLate;
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
