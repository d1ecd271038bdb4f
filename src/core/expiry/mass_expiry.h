// MassExpiry: finds offline sessions that went offline in a mass, as in a network cut.
//
// Thread: loop. Notes each mass once. Only sessions with a client id count: others cannot come
// back. It may touch: `mass` and `loss` of a session; the notices.
#ifndef NOWCALLS_CORE_EXPIRY_MASS_EXPIRY_H_
#define NOWCALLS_CORE_EXPIRY_MASS_EXPIRY_H_

#include <cstdint>
#include <optional>

#include "core/notices.h"
#include "core/options.h"
#include "core/tables/mass_expiry_guard.h"
#include "core/tables/session_table.h"

namespace nowcalls::core {

class MassExpiry {
 public:
  MassExpiry(const CoreOptions& options, const SessionTable* sessions, Notices* notices);

  void CameBack(SessionState* session);
  void WentOffline(SessionState* session, int64_t now_ms);
  void Forget(SessionState* session) { guard_.Forget(&session->loss); }  // Before the erase.

  // Sets the verdict: a mass went offline within `window_ms` of the session. It may change until
  // that has passed.
  void Judge(SessionState* session, int64_t now_ms, int64_t window_ms);
  // When to call Judge with no token due; kNotScheduled: never.
  int64_t JudgeDueMs(const SessionState& session) const;

  // Since the server started: masses, and sessions in them.
  uint64_t masses() const { return masses_; }
  uint64_t sessions() const { return mass_sessions_; }

 private:
  static constexpr int64_t kNotesApartMs = 1'000;

  struct HolderCount {
    std::optional<int64_t> since_ms;
    uint32_t next = 0;  // Slots below it were looked at.
    uint64_t sessions = 0;
  };

  bool CanBeMass(const SessionState& session) const;
  uint64_t HoldersOnline(int64_t now_ms, uint64_t sessions_max);
  void NoteMass(const MassExpiryGuard::Tally& tally, uint64_t sessions, int64_t window_ms);

  const SessionTable* const sessions_;
  Notices* const notices_;
  const double factor_;
  const bool own_strategy_;  // The expire strategy is not the default one.
  MassExpiryGuard guard_;
  HolderCount holders_;
  uint64_t masses_ = 0;
  uint64_t mass_sessions_ = 0;
  int64_t told_until_ms_ = 0;  // Earlier losses belong to the last mass.
  int64_t noted_ms_ = -kNotesApartMs;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_EXPIRY_MASS_EXPIRY_H_
