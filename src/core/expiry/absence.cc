#include "core/expiry/absence.h"

#include <algorithm>
#include <memory>
#include <string>

#include "core/log_ends.h"
#include "core/tables/spared_tokens.h"

namespace nowcalls::core {
namespace {

// A new moment for an offline session changes the order of checks.
constexpr uint64_t kLooksPerPlan = 6;

}  // namespace

void Absence::Begin(Instant now) {
  for (const auto& [id, slot] : sessions_->by_id()) SetOffline(slot, now.ms);
}

// Ends every plan for the session. Verdicts about its tokens are forgotten: the next absence asks
// anew.
void Absence::CameBack(SessionSlot slot) {
  SessionState& session = sessions_->at(slot);
  if (walk_.session_slot == slot) EndWalk();
  DisarmCheck(slot);
  session.walk_ms = kNotScheduled;
  session.spared.reset();
  session.from_before_restart = false;
  mass_expiry_->CameBack(&session);
}

// The guard counts the session only if it holds tokens, so it is told before CloseIfUnused.
void Absence::WentOffline(const Step& step, SessionSlot slot) {
  SetOffline(slot, step.now.ms);
  mass_expiry_->WentOffline(&sessions_->at(slot), step.now.ms);
  CloseIfUnused(step, slot);
}

void Absence::SetOffline(SessionSlot slot, int64_t since_ms) {
  SessionState& session = sessions_->at(slot);
  session.offline_since_ms = since_ms;
  // Without tokens there is nothing to wait for: the check closes the session.
  session.walk_ms = session.tokens.size == 0 ? since_ms : since_ms + session.client_offline_ms_min;
  ArmCheck(slot);
}

void Absence::EndToken(const Step& step, TokenSlot slot, EndReason reason, std::string_view note,
                       CallOutcome outcome) {
  const SessionSlot session_slot = tokens_->at(slot).session_slot;
  // Here no way to end a token is missed. The line needs the entry, so it comes before Books erases
  // that. Its strings are made even if the server's bound then drops the line.
  if (books_->options().log_ends.any()) {
    NoteEnd(*books_, slot, step.now.ms, {reason, outcome, note}, notices_);
  }
  books_->EndToken(step, slot, {reason, outcome, note});
  CloseIfUnused(step, session_slot);
}

void Absence::CloseIfUnused(const Step& step, SessionSlot slot) {
  SessionState& session = sessions_->at(slot);
  if (session.online() || session.tokens.size > 0) return;
  mass_expiry_->Forget(&session);
  if (walk_.session_slot == slot) EndWalk();
  DisarmCheck(slot);
  books_->CloseSession(step, slot);
}

// Which sessions hold tokens of such a flow is not indexed: each gets an earlier walk, which finds
// out. Spared tokens that wait for their rule are due with it; the judge's moments stay.
void Absence::LowerOfflineTime(int64_t client_offline_time_ms) {
  books_->looks() += sessions_->size();
  for (const auto& [id, slot] : sessions_->by_id()) {
    SessionState& session = sessions_->at(slot);
    if (session.tokens.size == 0) continue;
    session.client_offline_ms_min = std::min(session.client_offline_ms_min, client_offline_time_ms);
    if (session.online()) continue;
    books_->looks() += kLooksPerPlan;
    session.walk_ms = std::min(session.walk_ms, session.offline_since_ms + client_offline_time_ms);
    if (session.spared != nullptr) {
      session.spared->BringForward([&, at = slot](FlowSlot flow) { return DueMs(at, flow); });
    }
    // A walk under way arms the check at its end.
    if (walk_.session_slot != slot) ArmCheck(slot);
  }
}

void Absence::OnTime(const Step& step) {
  // One session is walked at a time; the next call continues where the looks ran out. Beginning a
  // walk is a look too, so sessions without due tokens are bounded as well.
  uint32_t looks_left = Step::kDueLooksMax;
  while (looks_left > 0 && step.has_room_for_due()) {
    if (walk_.session_slot == kNoSession) {
      if (checks_.empty() || checks_.begin()->first > step.now.ms) break;
      BeginWalk(step, checks_.begin()->second);
      --looks_left;
    }
    looks_left -= ContinueWalk(step, looks_left);
  }
}

Instant Absence::NextDeadline() const {
  if (walk_.session_slot != kNoSession) return Instant{0};
  return checks_.empty() ? kNever : Instant{checks_.begin()->first};
}

void Absence::ArmCheck(SessionSlot slot) {
  DisarmCheck(slot);
  SessionState& session = sessions_->at(slot);
  session.check_ms = NextCheckMs(session);
  if (session.check_ms != kNotScheduled) checks_.emplace(session.check_ms, slot);
}

void Absence::DisarmCheck(SessionSlot slot) {
  SessionState& session = sessions_->at(slot);
  if (session.check_ms == kNotScheduled) return;
  checks_.erase({session.check_ms, slot});
  session.check_ms = kNotScheduled;
}

// The earliest of three moments. A token may be due for the first time. The mass verdict must be
// taken before the guard forgets. A spared token is to be asked about again.
int64_t Absence::NextCheckMs(const SessionState& session) const {
  const int64_t next_ms = std::min(session.walk_ms, mass_expiry_->JudgeDueMs(session));
  return session.spared == nullptr ? next_ms : std::min(next_ms, session.spared->next_ms());
}

// The same for all tokens that the session has of the flow.
int64_t Absence::DueMs(SessionSlot session_slot, FlowSlot flow_slot) const {
  return sessions_->at(session_slot).offline_since_ms +
         books_->flows().at(flow_slot).client_offline_time_ms;
}

void Absence::BeginWalk(const Step& step, SessionSlot slot) {
  DisarmCheck(slot);
  SessionState& session = sessions_->at(slot);
  // The mass verdict, with the longest window, also if no token is due yet.
  if (mass_expiry_->JudgeDueMs(session) <= step.now.ms) {
    mass_expiry_->Judge(&session, step.now.ms, MassExpiryGuard::kWindowMsMax);
  }
  // If no token is due for the first time, the walk skips the list. So asking again costs a look
  // for each spared token, however many others the session holds.
  walk_ = Walk{};
  walk_.session_slot = slot;
  walk_.began_ms = step.now.ms;
  walk_.cursor.order = TokenOrder::kSession;
  if (session.walk_ms <= step.now.ms) {
    walk_.cursor.next = session.tokens.head;
    session.walk_ms = kNotScheduled;  // The walk finds out anew.
  }
  tokens_->Attach(&walk_.cursor);
}

// Looks at up to `tokens_max` tokens of the walked session; returns how many.
uint32_t Absence::ContinueWalk(const Step& step, uint32_t tokens_max) {
  // The session may be closed with its last token, so its names are copied first.
  const SessionSlot slot = walk_.session_slot;
  const SessionState& session = sessions_->at(slot);
  const std::string client_id = session.client_id;
  const std::string name_space = books_->flows().name_space(session.name_space).name;
  const int64_t offline_ms = step.now.ms - session.offline_since_ms;

  // EndOrSpare may end the walk with the session, so the sum is kept outside of walk_.
  uint64_t reclaimed = walk_.reclaimed;
  uint32_t seen = 0;
  bool more = WalkHasMore();
  while (more && seen < tokens_max && step.has_room_for_due()) {
    ++seen;
    const TokenSlot token = NextDueInWalk();
    if (token != kNoToken && EndOrSpare(step, token)) ++reclaimed;
    more = walk_.session_slot == slot && WalkHasMore();
  }
  const bool ended_with_session = walk_.session_slot != slot;
  if (!ended_with_session) walk_.reclaimed = reclaimed;
  if (more) return seen;

  // The walk has met all due tokens of the session.
  if (reclaimed > 0) {
    notices_->AddIfRoom({.topic = LogTopic::kPeer,
                         .text = "client " + client_id + " of namespace " + name_space +
                                 " has been offline for " + std::to_string(offline_ms) +
                                 " ms: reclaimed " + std::to_string(reclaimed) +
                                 (reclaimed == 1 ? " token" : " tokens"),
                         .fields = {{"client", client_id}, {"namespace", name_space}}});
  }
  if (!ended_with_session) {
    EndWalk();
    ArmCheck(slot);
    CloseIfUnused(step, slot);
  }
  return seen;
}

// Spared tokens follow the list. TakeDue gives those of one moment, or of one rule, at a time.
bool Absence::WalkHasMore() {
  if (walk_.cursor.next != kNoToken || walk_.spared_next < walk_.spared.size()) return true;
  SparedTokens* spared = sessions_->at(walk_.session_slot).spared.get();
  if (spared == nullptr) return false;
  walk_.spared = spared->TakeDue(walk_.began_ms);
  walk_.spared_next = 0;
  return !walk_.spared.empty();
}

// The next token; kNoToken when it is not due, or has ended. REQUIRES: WalkHasMore().
TokenSlot Absence::NextDueInWalk() {
  // A spared token, by fence: kNoToken if it has ended since.
  if (walk_.cursor.next == kNoToken) {
    const uint64_t fence = walk_.spared[walk_.spared_next++];
    return tokens_->Find(fence);
  }
  const TokenSlot token = walk_.cursor.next;
  const FlowSlot flow_slot = tokens_->at(token).flow_slot;
  // The cursor moves on first: the token may end.
  walk_.cursor.next = tokens_->at(token).next(TokenOrder::kSession);
  if (walk_.cursor.next != kNoToken) tokens_->Prefetch(tokens_->at(walk_.cursor.next).fence);
  // At the first token of a flow: when all of them are due. If some wait in SparedTokens, all do,
  // and the walk passes over them. A later moment plans the next walk.
  const auto [due_ms, is_new] = walk_.due_ms.try_emplace(flow_slot, kNotScheduled);
  if (is_new) {
    SessionState& session = sessions_->at(walk_.session_slot);
    const bool asked = session.spared != nullptr && session.spared->Has(flow_slot);
    if (!asked) due_ms->second = DueMs(walk_.session_slot, flow_slot);
    if (due_ms->second > walk_.began_ms) {
      session.walk_ms = std::min(session.walk_ms, due_ms->second);
    }
  }
  return due_ms->second <= walk_.began_ms ? token : kNoToken;
}

// Whether the token was taken from its offline session.
bool Absence::EndOrSpare(const Step& step, TokenSlot slot) {
  const TokenEntry& entry = tokens_->at(slot);
  const auto spared = [&session = sessions_->at(entry.session_slot)] {
    if (session.spared == nullptr) session.spared = std::make_unique<SparedTokens>();
    return session.spared.get();
  };
  const int64_t due_ms = DueMs(entry.session_slot, entry.flow_slot);
  if (due_ms > step.now.ms) {  // Its rule has become more patient meanwhile.
    spared()->WaitForRule(entry.flow_slot, entry.fence, due_ms);
    return false;
  }
  // A reclaim counts against the batch's room for due tokens. Other answers write no record: the
  // token waits in memory, and without a named moment is asked about after a sweep interval.
  const ExpireDecision decision = judge_->Decide(step.now, slot, ExpireCause::kClientOffline);
  if (decision.kind() == ExpireDecision::Kind::kReclaim) {
    step.batch->CountDue();
    EndToken(step, slot, EndReason::kClientOffline);
    return true;
  }
  const bool extend = decision.kind() == ExpireDecision::Kind::kExtend;
  spared()->WaitForStrategy(
      entry.flow_slot, entry.fence,
      extend ? decision.until_ms() : step.now.ms + books_->options().sweep_interval_ms);
  return false;
}

void Absence::EndWalk() {
  tokens_->Detach(&walk_.cursor);
  walk_ = Walk{};
}

}  // namespace nowcalls::core
