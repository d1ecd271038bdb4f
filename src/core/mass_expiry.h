// MassExpiry: finds out which offline sessions went offline in a mass, as in a network cut.
//
// Thread: loop. It asks the MassExpiryGuard, which counts by moment, and says once for each mass
// what it found. It may touch: in a session, `mass` and `loss`; the notices. Only sessions with a
// client id count: nobody can say of others whether they were cut off, and they cannot come back.
#ifndef NOWCALLS_CORE_MASS_EXPIRY_H_
#define NOWCALLS_CORE_MASS_EXPIRY_H_

#include <cstdint>
#include <optional>

#include "core/mass_expiry_guard.h"
#include "core/notices.h"
#include "core/options.h"
#include "core/session_table.h"

namespace nowcalls::core {

class MassExpiry {
 public:
  MassExpiry(const CoreOptions& options, const SessionTable* sessions, Notices* notices);

  void CameBack(SessionState* session);
  void WentOffline(SessionState* session, int64_t now_ms);
  // The session is about to be erased.
  void Forget(SessionState* session) { guard_.Forget(&session->loss); }

  // Finds out whether the offline session went offline in a mass, with others within `window_ms` of
  // it, and notes the verdict in the session. The answer may change until that time has passed.
  void Judge(SessionState* session, int64_t now_ms, int64_t window_ms);
  // When Judge must be called although none of the session's tokens is due, since the guard does
  // not remember for as long as a clientOfflineTime may be; kNotScheduled: never.
  int64_t JudgeDueMs(const SessionState& session) const;

  // Since the server started: how often sessions went offline in a mass, and how many sessions.
  uint64_t masses() const { return masses_; }
  uint64_t sessions() const { return mass_sessions_; }

 private:
  static constexpr int64_t kNotesApartMs = 1'000;

  // Holders counted for the guard. Good for a moment, and until a session comes or goes.
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
  int64_t told_until_ms_ = 0;  // Sessions that went offline before belong to the last mass.
  int64_t noted_ms_ = -kNotesApartMs;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_MASS_EXPIRY_H_
