// Guests: an HTTP server's connections by kind, and their bounds.
//
// Thread: any; it locks.
#ifndef NOWCALLS_WEB_GUESTS_H_
#define NOWCALLS_WEB_GUESTS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace nowcalls::web {

enum class GuestKind : uint8_t {
  kUndecided,  // Has not said yet what it asks for.
  kProbe,      // Of Options::probe_paths.
  kShort,      // Of Options::short_paths.
  kOther,
};

struct GuestBounds {
  unsigned all;
  unsigned of_one_address;
  // True: a newcomer closes the oldest of its address, or of that with most. False: it is refused.
  bool oldest_gives_way;
};

constexpr GuestBounds BoundsOf(GuestKind kind) {
  switch (kind) {
    case GuestKind::kUndecided: return {48, 16, true};
    case GuestKind::kProbe:
    case GuestKind::kShort: return {24, 8, true};
    case GuestKind::kOther: break;
  }
  return {160, 64, false};
}

inline constexpr unsigned kGuestsMax =
    BoundsOf(GuestKind::kUndecided).all + BoundsOf(GuestKind::kProbe).all +
    BoundsOf(GuestKind::kShort).all + BoundsOf(GuestKind::kOther).all;

class Guests {
 public:
  // A new connection, or an undecided one under its kind. CloseSlow ends it after `close_at_ms`
  // (BoottimeMs). False: no room; the caller closes `fd`.
  bool Admit(int fd, GuestKind kind, const std::string& address, int64_t close_at_ms);
  // Only settled guests are shut down.
  void Settle(int fd);
  void Expect(int fd, int64_t close_at_ms);
  // Gives an undecided guest its kind. True also if it was decided before. False: no room; its
  // owner closes it.
  bool Decide(int fd, GuestKind kind, const std::string& address, int64_t close_at_ms);
  // Call before `fd` is closed.
  void Leave(int fd);
  // Shuts down those beyond their time; their owners close them.
  void CloseSlow(int64_t now_ms);

 private:
  struct Guest {
    GuestKind kind = GuestKind::kUndecided;
    std::string address{};
    uint64_t number = 0;  // In the order of arrival.
    int64_t close_at_ms = 0;
    bool settled = false;
    bool leaving = false;  // Shut down already.
  };

  // With the mutex, as the next.
  bool Place(int fd, GuestKind kind, const std::string& address, int64_t close_at_ms, bool settled);
  // The descriptor that gives way; -1: none need, -2: none can.
  int FindWay(GuestKind kind, const std::string& address) const;
  static void ShutDown(int fd, Guest* guest);

  mutable std::mutex mutex_;
  std::map<int, Guest> guests_;  // By descriptor.
  uint64_t arrived_ = 0;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_GUESTS_H_
