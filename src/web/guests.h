// Guests: the connections of an HTTP server, by what they came for, and how many there may be.
//
// Thread: any; it locks. Each kind has room of its own, so what some ask never shuts out those of
// another kind: readers of streams leave room for probes and scrapes, which are over at once.
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
  // A newcomer beyond them closes the oldest, of its own address or of the address with most. It is
  // turned away otherwise.
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

// Of all kinds together.
inline constexpr unsigned kGuestsMax =
    BoundsOf(GuestKind::kUndecided).all + BoundsOf(GuestKind::kProbe).all +
    BoundsOf(GuestKind::kShort).all + BoundsOf(GuestKind::kOther).all;

class Guests {
 public:
  // Takes in a connection from `address`, or what an undecided one turns out to be. It is shut down
  // after `close_at_ms` (BoottimeMs), but not before Settle. False: there is no room for it.
  bool Admit(int fd, GuestKind kind, const std::string& address, int64_t close_at_ms);
  // Whoever closes the connection has it now.
  void Settle(int fd);
  void Expect(int fd, int64_t close_at_ms);
  // Before it is closed.
  void Leave(int fd);
  // Shuts down those that took too long; who has them closes them.
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

  // The oldest that gives way to a newcomer; -1: nobody need, -2: nobody does.
  int FindWay(GuestKind kind, const std::string& address) const;
  static void ShutDown(int fd, Guest* guest);

  mutable std::mutex mutex_;
  std::map<int, Guest> guests_;  // By descriptor.
  uint64_t arrived_ = 0;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_GUESTS_H_
