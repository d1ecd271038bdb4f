#include "core/expiry/mass_expiry.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace nowcalls::core {

MassExpiry::MassExpiry(const CoreOptions& options, const SessionTable* sessions, Notices* notices)
    : sessions_(sessions),
      notices_(notices),
      factor_(options.mass_expiry_factor),
      own_strategy_(options.expire_strategy != nullptr),
      guard_(options.mass_expiry) {}

void MassExpiry::CameBack(SessionState* session) {
  session->mass = MassVerdict{};
  guard_.CameBack(&session->loss);
  holders_.since_ms.reset();
}

// The guard counts sessions that can come back, and have tokens to come back for.
void MassExpiry::WentOffline(SessionState* session, int64_t now_ms) {
  holders_.since_ms.reset();
  if (session->kind == ledger::SessionKind::kNamed && session->tokens.size > 0) {
    guard_.WentOffline(&session->loss, now_ms);
  }
}

bool MassExpiry::CanBeMass(const SessionState& session) const {
  return guard_.enabled() && session.kind == ledger::SessionKind::kNamed &&
         !session.from_before_restart && session.tokens.size > 0;
}

int64_t MassExpiry::JudgeDueMs(const SessionState& session) const {
  // The guard remembers three windows, a token may be due after days. So a session whose first
  // token is due later than a window is judged when the window has passed.
  constexpr int64_t kWindowMs = MassExpiryGuard::kWindowMsMax;
  const int64_t due_ms = session.offline_since_ms + kWindowMs;
  const bool tokens_due_later = session.walk_ms != kNotScheduled && session.walk_ms > due_ms;
  if (!tokens_due_later || !CanBeMass(session)) return kNotScheduled;
  return session.mass.Covers(session.offline_since_ms, kWindowMs, due_ms) ? kNotScheduled : due_ms;
}

void MassExpiry::Judge(SessionState* session, int64_t now_ms, int64_t window_ms) {
  const int64_t since_ms = session->offline_since_ms;
  window_ms = std::min(window_ms, MassExpiryGuard::kWindowMsMax);
  if (!CanBeMass(*session) || session->mass.Covers(since_ms, window_ms, now_ms)) return;
  // No mass until the counts below show one.
  session->mass = {.mass = false, .asked_ms = now_ms, .window_ms = window_ms};

  const MassExpiryGuard::Tally tally = guard_.Count(since_ms, window_ms);
  // First the cheap bound: too few losses are a mass of no number of sessions. In a late loop there
  // may be none: the guard has forgotten the session's own.
  const uint64_t sessions_max = guard_.SessionsMax(tally.lost);
  if (sessions_max == 0 || sessions_max < tally.lost) return;
  // Sessions there were: those still away, and the holders online. The count stops beyond the
  // bound.
  const uint64_t sessions = tally.away + HoldersOnline(now_ms, sessions_max - tally.away);
  if (sessions > sessions_max) return;

  // A mass. Its first session is noted; others within twice the window belong to the same mass.
  session->mass.mass = true;
  ++mass_sessions_;
  if (since_ms <= told_until_ms_) return;
  told_until_ms_ = since_ms + 2 * window_ms;
  ++masses_;
  // Clients whose clientOfflineTime is a millisecond can bring about hundreds of masses a second.
  if (now_ms < noted_ms_ + kNotesApartMs) return;
  noted_ms_ = now_ms;
  NoteMass(tally, sessions, window_ms);
}

void MassExpiry::NoteMass(const MassExpiryGuard::Tally& tally, uint64_t sessions,
                          int64_t window_ms) {
  const std::string consequence = own_strategy_
                                      ? "the expire strategy decides how long their tokens are kept"
                                      : "their tokens are kept for " + NumberText(factor_) +
                                            " times the clientOfflineTime of their rules";
  notices_->Add({.warning = true,
                 .text = "mass expiry guard: " + std::to_string(tally.lost) + " of " +
                         std::to_string(sessions) + " sessions with tokens went offline within " +
                         std::to_string(window_ms) +
                         " ms of each other, rather a network cut than a mass death; " +
                         consequence,
                 .fields = {}});
}

// Sessions with a client id that are online and hold tokens, or held some at a loss that the guard
// remembers. So every loss it counts is among these or away. Stops beyond `sessions_max`: a few
// deaths among many clients take a short look, and the count goes on at the next.
uint64_t MassExpiry::HoldersOnline(int64_t now_ms, uint64_t sessions_max) {
  // A count is good for a moment, and until a session comes or goes.
  constexpr int64_t kGoodForMs = 50;
  if (!holders_.since_ms || now_ms - *holders_.since_ms >= kGoodForMs) {
    holders_ = {.since_ms = now_ms, .next = 0, .sessions = 0};
  }
  for (; holders_.sessions <= sessions_max && holders_.next < sessions_->slots(); ++holders_.next) {
    const SessionState& session = sessions_->at(SessionSlot(holders_.next));
    if (!session.online() || session.kind != ledger::SessionKind::kNamed) continue;
    const bool counts = session.tokens.size > 0 || MassExpiryGuard::Remembers(session.loss, now_ms);
    holders_.sessions += counts ? 1 : 0;
  }
  return holders_.sessions;
}

}  // namespace nowcalls::core
