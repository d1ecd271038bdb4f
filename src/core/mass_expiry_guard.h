// MassExpiryGuard: tells a network cut from clients that die one by one.
//
// Thread: loop. It counts the sessions that went offline while they held tokens, by moment. Each
// session counts once, at its last loss, for as long as it exists. If a large part of all sessions
// with tokens went offline within one clientOfflineTime of each other, they were rather cut off
// than dead, and the expire strategy may want to wait for them longer. Sessions that hold nothing
// when they leave do not count: every client that is done leaves so.
//
// Times are milliseconds on the ledger clock and may not go back.
#ifndef NOWCALLS_CORE_MASS_EXPIRY_GUARD_H_
#define NOWCALLS_CORE_MASS_EXPIRY_GUARD_H_

#include <cstdint>
#include <deque>

namespace nowcalls::core {

struct MassExpiryOptions {
  uint32_t sessions_min = 10;  // Fewer are no mass.
  uint32_t percent = 50;       // Of the sessions there were; 0: there is never a mass.
};

class MassExpiryGuard {
 public:
  // Sessions that go offline further apart than this are never one event, whatever their rules say.
  // So a verdict can be passed this long after a session went offline, at the latest.
  static constexpr int64_t kWindowMsMax = 60'000;
  // How long a loss is remembered. A session is judged when its window has passed, and then needs
  // the losses within a window before it. The rest is for a loop that is late.
  static constexpr int64_t kRememberedMs = 3 * kWindowMsMax;

  // What the guard has counted for one session; a member of the session that only the guard
  // changes.
  struct Loss {
    static constexpr int64_t kNone = INT64_MIN;
    int64_t at_ms = kNone;  // When it last went offline with tokens.
    bool away = false;      // It has not come back since.
  };

  // Of the sessions that went offline within a window.
  struct Tally {
    uint64_t lost = 0;
    uint64_t away = 0;  // Those among them that have not come back.
  };

  explicit MassExpiryGuard(const MassExpiryOptions& options) : options_(options) {}

  bool enabled() const { return options_.percent > 0; }

  // The session of `loss` went offline and holds tokens. A loss it had before is forgotten.
  void WentOffline(Loss* loss, int64_t now_ms);
  // The session of `loss` is online again.
  void CameBack(Loss* loss);
  // The session of `loss` is about to be closed.
  void Forget(Loss* loss);

  static bool Remembers(const Loss& loss, int64_t now_ms) {
    return loss.at_ms != Loss::kNone && loss.at_ms + kRememberedMs >= now_ms;
  }

  // The losses within `window_ms` (at most kWindowMsMax) before or after that moment.
  Tally Count(int64_t offline_since_ms, int64_t window_ms) const;
  // `lost` sessions are a mass if there were no more sessions than this; 0: they are no mass.
  uint64_t SessionsMax(uint64_t lost) const;

 private:
  static constexpr int64_t kMomentMs = 50;

  // Losses within kMomentMs.
  struct Moment {
    int64_t at_ms = 0;  // A multiple of kMomentMs.
    Tally tally;
  };

  static int64_t MomentOf(int64_t at_ms) { return at_ms - at_ms % kMomentMs; }
  // The moment of the loss; null when it is no longer remembered.
  Moment* Find(const Loss& loss);

  const MassExpiryOptions options_;
  std::deque<Moment> moments_;  // By time; kRememberedMs / kMomentMs at most, and one.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_MASS_EXPIRY_GUARD_H_
