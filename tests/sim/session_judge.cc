#include "sim/session_judge.h"

#include <algorithm>
#include <utility>

#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

constexpr int64_t kTickMs = 2;
constexpr int64_t kKeepPauseMsMin = 10;  // Between two keeps of a token (client/held_tokens.h).

std::string Text(uint64_t id) { return std::to_string(id); }

int64_t LaneOfGrant(const Grant& grant, const Value& param) {
  const auto* const key = std::get_if<std::string>(&param);
  return key == nullptr ? grant.flow.value : LaneOfText(grant.flow.value, *key);
}

}  // namespace

void SessionJudge::Begin(Fallback fallback, std::map<FlowId, uint64_t> shares) {
  Down();
  fallback_ = fallback;
  shares_ = std::move(shares);
  open_.clear();
  stands_.clear();
  permits_.clear();
  stirring_.clear();
  held_.clear();
  local_.clear();
  sent_ms_.clear();
}

// --- Callers. ---

CallNumber SessionJudge::Asked(int64_t deadline_ms) {
  open_[++last_call_] = {.deadline_ms = deadline_ms};
  return last_call_;
}

CallNumber SessionJudge::AcquireAsked(int64_t deadline_ms, uint64_t request_id) {
  Asked(deadline_ms);
  open_[last_call_].request_id = request_id;
  stands_.try_emplace(request_id);
  stirring_.insert(request_id);
  return last_call_;
}

void SessionJudge::Told(CallNumber number) {
  if (open_.erase(number) == 0) Violation("C1 a call is told twice");
}

void SessionJudge::AcquireTold(CallNumber number, const Answer& answer,
                               const std::vector<client::HeldPtr>& held, KeepMode keep) {
  const Open open = open_[number];
  const uint64_t request_id = open.request_id;
  Stand& stand = stands_[request_id];
  if (answer.local) CheckLocal(open, stand, held);
  Told(number);
  stand.told = true;
  stand.by_server = answer.ok() && !answer.local;
  stand.owes_cancel = !stand.by_server && stand.sent && !stand.settled;
  if (answer.outcome == Outcome::kUnavailable && stand.owes_cancel) {
    Violation("C3 an acquire is told that it was not carried out, and it may have been");
  }
  if (!stand.by_server) {
    if (answer.local) {
      for (const client::HeldPtr& token : held) {
        local_[LaneOfGrant(token->grant, token->param)] += token->grant.count;
      }
    }
    return;
  }
  if (held.empty()) Violation("C2 a grant without a token");
  for (const client::HeldPtr& token : held) {
    const uint64_t id = token->grant.token.value;
    if (!stand.granted.contains(id)) {
      Violation("C2 token " + Text(id) + " was not granted to its call");
    }
    held_.insert(id);
    Permit& permit = permits_[id];
    permit.held = token;
    permit.request_id = request_id;
    permit.keep = keep;
    permit.hold_ms = token->grant.hold.count();
  }
}

void SessionJudge::CheckLocal(const Open& open, const Stand& stand,
                              const std::vector<client::HeldPtr>& held) {
  const bool overdue = timeline_->now_ms() >= open.deadline_ms;
  if (ready_ms_ && !overdue && !stand.settled) {
    Violation("C2 a call is decided locally while the server is there");
  }
  if (fallback_ == Fallback::kFail) Violation("C2 a local answer without a fallback");
  for (const client::HeldPtr& token : held) {
    const auto share = shares_.find(token->grant.flow);
    const int64_t lane = LaneOfGrant(token->grant, token->param);
    if (share == shares_.end() || fallback_ == Fallback::kPass) continue;
    const int64_t calls = local_[lane] + token->grant.count;
    if (calls > static_cast<int64_t>(share->second)) {
      Violation("C2 " + std::to_string(calls) + " local calls of flow " + std::to_string(lane) +
                ", whose share is " + std::to_string(share->second));
    }
  }
}

void SessionJudge::Adopted(const client::HeldPtr& held, KeepMode keep) {
  held_.insert(held->grant.token.value);
  permits_[held->grant.token.value] = {
      .held = held, .keep = keep, .touched_ms = timeline_->now_ms()};
}

void SessionJudge::ReleaseAsked(const client::HeldPtr& held) {
  const auto found = permits_.find(held->grant.token.value);
  if (found != permits_.end() && !IsLost(found->second)) found->second.releasing = true;
}

// --- The wire. ---

void SessionJudge::Ready() { ready_ms_ = timeline_->now_ms(); }

void SessionJudge::Down() {
  ready_ms_.reset();
  for (auto& [id, stand] : stands_) {
    stray_cancels_ += stand.cancel_in_flight ? 1 : 0;
    stand.in_flight = stand.cancel_in_flight = false;
  }
  for (auto& [id, permit] : permits_) {
    permit.keeps.clear();
    permit.release_in_flight = false;
  }
}

void SessionJudge::AcquireSent(uint64_t request_id) {
  Stand& stand = stands_[request_id];
  stand.sent = stand.in_flight = true;
  stand.settled = false;
  sent_ms_[request_id] = timeline_->now_ms();
}

void SessionJudge::AcquireAnswered(uint64_t request_id, const std::vector<uint64_t>& tokens) {
  Stand& stand = stands_[request_id];
  stand.in_flight = false;
  stand.settled = true;
  for (const uint64_t token : tokens) {
    stand.granted.insert(token);
    permits_[token].touched_ms = sent_ms_[request_id];
  }
}

void SessionJudge::CancelSent(uint64_t request_id) {
  Stand& stand = stands_[request_id];
  stand.cancel_in_flight = true;
  stand.cancel = ++cancels_;
}

void SessionJudge::CancelAnswered(uint64_t request_id) {
  Stand& stand = stands_[request_id];
  stand.cancel_in_flight = false;
  stand.cancel_answered = true;
}

void SessionJudge::ReleaseSent(uint64_t token) {
  const auto found = permits_.find(token);
  if (found != permits_.end()) found->second.releasing = found->second.release_in_flight = true;
}

void SessionJudge::ReleaseAnswered(uint64_t token) {
  const auto found = permits_.find(token);
  if (found == permits_.end()) return;
  found->second.release_in_flight = false;
  found->second.release_answered = true;
}

void SessionJudge::KeepSent(uint64_t token) {
  const auto found = permits_.find(token);
  if (found != permits_.end()) found->second.keeps.insert(timeline_->now_ms());
}

void SessionJudge::KeepAnswered(uint64_t token, std::optional<int64_t> hold_ms) {
  const auto found = permits_.find(token);
  if (found == permits_.end() || found->second.keeps.empty()) return;
  Permit& permit = found->second;
  const int64_t sent_ms = *permit.keeps.begin();  // Answers come in the order of the keeps.
  permit.keeps.erase(permit.keeps.begin());
  if (!hold_ms) {
    permit.noticed = true;
    return;
  }
  permit.touched_ms = sent_ms;
  permit.hold_ms = *hold_ms;
}

void SessionJudge::KeepFailed(uint64_t token) {
  const auto found = permits_.find(token);
  if (found == permits_.end()) return;
  found->second.keeps.clear();
  found->second.touched_ms = timeline_->now_ms();
}

void SessionJudge::ToldInVain(uint64_t token) {
  const auto found = permits_.find(token);
  if (found != permits_.end()) found->second.forgiven = true;
}

void SessionJudge::LostNoticed(uint64_t token, std::string_view reason) {
  const auto found = permits_.find(token);
  if (found == permits_.end()) return;
  Permit& permit = found->second;
  permit.noticed = true;
  const bool by_time = reason == "resource_timeout" || reason == "client_offline";
  const bool over = permit.releasing || permit.held == nullptr || permit.forgiven ||
                    permit.held->validity.until_ms() == INT64_MAX;
  if (by_time && !over && !IsLost(permit)) {
    Violation("C8 the server takes a token whose holder thinks it valid, token " + Text(token));
  }
}

// --- What stands. ---

void SessionJudge::Check(bool closed) {
  const int64_t now_ms = timeline_->now_ms();
  for (const auto& [number, open] : open_) {
    if (now_ms > open.deadline_ms + kTickMs) {
      return Violation("C1 a call that was due at " + std::to_string(open.deadline_ms) +
                       " ms is not told");
    }
  }
  std::erase_if(held_, [&](uint64_t id) { return !CheckPermit(permits_[id], closed); });
  std::erase_if(stirring_, [&](uint64_t id) { return !CheckStand(id); });
}

bool SessionJudge::CheckStand(uint64_t request_id) {
  const Stand& stand = stands_[request_id];
  if (ready_ms_ && !stand.told && stand.sent && !stand.in_flight && !stand.settled) {
    Violation("C4 an acquire without an answer is not asked again, request id " + Text(request_id));
  }
  const bool owes = stand.owes_cancel && !stand.cancel_answered;
  if (ready_ms_ && owes && !stand.cancel_in_flight) {
    Violation("C4 an acquire that was given up is not cancelled, request id " + Text(request_id));
  }
  return !stand.told || owes;
}

bool SessionJudge::CheckPermit(const Permit& permit, bool closed) {
  const std::string text = "token " + Text(permit.held->grant.token.value);
  const bool over = permit.releasing || permit.release_answered || IsLost(permit);
  if (permit.noticed && !over) Violation("C6 a permit is not told that it is lost, " + text);
  if (!ready_ms_) return !permit.release_answered;
  if (permit.releasing && !permit.release_in_flight && !permit.release_answered) {
    Violation("C4 a release without an answer is not asked again, " + text);
  }
  if (over) return permit.releasing && !permit.release_answered;
  if (permit.keep != KeepMode::kAlways || closed) return true;
  const int64_t pause_ms = std::max(permit.hold_ms / 3, kKeepPauseMsMin);
  const int64_t due_ms = std::max(permit.touched_ms + pause_ms, *ready_ms_) + kTickMs;
  if (permit.keeps.empty() && timeline_->now_ms() > due_ms) {
    Violation("C5 nothing keeps " + text + " since " + std::to_string(due_ms) + " ms");
  }
  return true;
}

void SessionJudge::Audit(const std::vector<SeenToken>& ledger) {
  for (const SeenToken& seen : ledger) {
    if (seen.owner == owner_) AuditToken(seen);
  }
}

void SessionJudge::AuditToken(const SeenToken& seen) {
  const std::string text = "token " + Text(seen.id) + " of flow " + std::to_string(seen.flow) +
                           " and request id " + Text(seen.request_id);
  const auto known = permits_.find(seen.id);
  if (known != permits_.end() && known->second.held != nullptr) {
    const Permit& permit = known->second;
    if (permit.forgiven) return;
    const bool ends = permit.releasing && !permit.release_answered;
    const client::Held::State state = permit.held->state;
    const bool lapsed =
        state == client::Held::State::kLapsed || state == client::Held::State::kReleasing;
    if (IsLost(permit) && !ends && !lapsed)
      Violation("C6 a permit says that it is lost, and is not: " + text);
    if (permit.release_answered) Violation("C3 a permit was released, and has its " + text);
    return;
  }
  const auto found = stands_.find(seen.request_id);
  if (found == stands_.end()) return;  // Of an earlier process.
  const Stand& stand = found->second;
  if (!stand.told || stand.forgiven || !ready_ms_ || stand.cancel_in_flight) return;
  if (!stand.cancel_answered || !IsForgotten(stand)) Violation("C3 nobody holds " + text);
}

void SessionJudge::BatchesLost() {
  for (auto& [id, stand] : stands_) stand.forgiven = true;
  for (auto& [id, permit] : permits_) permit.forgiven = true;
}

}  // namespace nowcalls::sim
