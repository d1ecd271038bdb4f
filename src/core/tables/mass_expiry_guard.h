// MassExpiryGuard: tells a network cut from clients that die one by one.
//
// Thread: loop. A mass: a large part of all sessions with tokens went offline within one
// clientOfflineTime of each other. Only a session's last loss counts. Times of the ledger clock
// never go back.
#ifndef NOWCALLS_CORE_TABLES_MASS_EXPIRY_GUARD_H_
#define NOWCALLS_CORE_TABLES_MASS_EXPIRY_GUARD_H_

#include <cstdint>
#include <deque>

namespace nowcalls::core {

struct MassExpiryOptions {
  uint32_t sessions_min = 10;  // Fewer are no mass.
  uint32_t percent = 50;       // Of the sessions there were; 0: there is never a mass.
};

class MassExpiryGuard {
 public:
  // The longest window. A verdict is final this long after a loss.
  static constexpr int64_t kWindowMsMax = 60'000;
  // The third window is for a late loop.
  static constexpr int64_t kRememberedMs = 3 * kWindowMsMax;

  // A member of the session.
  struct Loss {
    static constexpr int64_t kNone = INT64_MIN;
    int64_t at_ms = kNone;  // When it last went offline with tokens.
    bool away = false;      // Not back since.
  };

  struct Tally {
    uint64_t lost = 0;
    uint64_t away = 0;  // Not back since.
  };

  explicit MassExpiryGuard(const MassExpiryOptions& options) : options_(options) {}

  bool enabled() const { return options_.percent > 0; }

  void WentOffline(Loss* loss, int64_t now_ms);  // With tokens. Replaces an earlier loss.
  void CameBack(Loss* loss);
  void Forget(Loss* loss);  // Before the session is closed.

  static bool Remembers(const Loss& loss, int64_t now_ms) {
    return loss.at_ms != Loss::kNone && loss.at_ms + kRememberedMs >= now_ms;
  }

  // Up to `window_ms` (at most kWindowMsMax) before or after the moment.
  Tally Count(int64_t offline_since_ms, int64_t window_ms) const;
  // `lost` of at most this many sessions are a mass; 0: never.
  uint64_t SessionsMax(uint64_t lost) const;

 private:
  static constexpr int64_t kMomentMs = 50;

  struct Moment {
    int64_t at_ms = 0;  // A multiple of kMomentMs.
    Tally tally;
  };

  static int64_t MomentOf(int64_t at_ms) { return at_ms - at_ms % kMomentMs; }
  Moment* Find(const Loss& loss);  // Null: no longer remembered.

  const MassExpiryOptions options_;
  std::deque<Moment> moments_;  // By time; kRememberedMs / kMomentMs at most, and one.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_MASS_EXPIRY_GUARD_H_
