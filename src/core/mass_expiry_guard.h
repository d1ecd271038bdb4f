// MassExpiryGuard: tells a network cut from clients that die one by one.
//
// Thread: loop. It counts the sessions that go offline, by moment, and those of them that come
// back. When a large part of all sessions went offline within one clientOfflineTime of each other,
// they were rather cut off than dead, and the expire strategy may want to wait for them longer.
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
  static constexpr int64_t kWindowMsMax = 60'000;

  explicit MassExpiryGuard(const MassExpiryOptions& options) : options_(options) {}

  // Moments must not go back.
  void WentOffline(int64_t now_ms);
  // A session that went offline at that moment is online again.
  void CameBack(int64_t offline_since_ms);

  struct Verdict {
    bool mass = false;
    uint64_t lost = 0;      // Sessions that went offline within the window.
    uint64_t sessions = 0;  // Of so many.
  };
  // Whether who went offline at `offline_since_ms` did so in a mass: with others within
  // `window_ms` before or after. `online` sessions are online now.
  Verdict Judge(int64_t offline_since_ms, int64_t window_ms, uint64_t online) const;

 private:
  static constexpr int64_t kMomentMs = 50;

  // Sessions lost within kMomentMs.
  struct Moment {
    int64_t at_ms = 0;  // A multiple of it.
    uint64_t lost = 0;
    uint64_t away = 0;  // Those of them that have not come back.
  };

  static int64_t MomentOf(int64_t at_ms) { return at_ms - at_ms % kMomentMs; }

  const MassExpiryOptions options_;
  std::deque<Moment> moments_;  // Of the last two windows: some thousands at most.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_MASS_EXPIRY_GUARD_H_
