#include "web/guests.h"

#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace nowcalls::web {
namespace {

constexpr int kNobodyNeed = -1;
constexpr int kNobodyDoes = -2;

}  // namespace

bool Guests::Admit(int fd, GuestKind kind, const std::string& address, int64_t close_at_ms) {
  const std::lock_guard lock(mutex_);
  return Place(fd, kind, address, close_at_ms, /*settled=*/false);
}

bool Guests::Decide(int fd, GuestKind kind, const std::string& address, int64_t close_at_ms) {
  const std::lock_guard lock(mutex_);
  const auto found = guests_.find(fd);
  if (found != guests_.end() && found->second.kind != GuestKind::kUndecided) return true;
  return Place(fd, kind, address, close_at_ms, /*settled=*/true);
}

bool Guests::Place(int fd, GuestKind kind, const std::string& address, int64_t close_at_ms,
                   bool settled) {
  // An undecided guest comes again once its kind is known, and gives up its first place.
  guests_.erase(fd);
  const int way = FindWay(kind, address);
  if (way == kNobodyDoes) return false;
  if (way != kNobodyNeed) ShutDown(way, &guests_.at(way));
  guests_[fd] = {kind, address, ++arrived_, close_at_ms, settled};
  return true;
}

int Guests::FindWay(GuestKind kind, const std::string& address) const {
  // By address: how many of the kind there are, and the oldest that may be shut down. A guest that
  // is being handed over is not settled, and belongs to neither owner: it is counted and spared.
  struct Crowd {
    unsigned count = 0;
    int oldest = kNobodyDoes;  // Of those that may be shut down.
    uint64_t number = UINT64_MAX;
  };
  std::map<std::string_view, Crowd> crowds;
  unsigned all = 0;
  for (const auto& [fd, guest] : guests_) {
    if (guest.kind != kind || guest.leaving) continue;
    ++all;
    Crowd& crowd = crowds[guest.address];
    ++crowd.count;
    if (!guest.settled || guest.number > crowd.number) continue;
    crowd.number = guest.number;
    crowd.oldest = fd;
  }
  const GuestBounds bounds = BoundsOf(kind);
  const Crowd own = crowds[address];
  const bool crowded = own.count >= bounds.of_one_address;
  if (!crowded && all < bounds.all) return kNobodyNeed;
  if (!bounds.oldest_gives_way) return kNobodyDoes;
  // An address beyond its own bound pays itself, so that it cannot push others out.
  if (crowded) return own.oldest;
  // The kind is full: the address with most connections pays.
  const auto largest = std::max_element(
      crowds.begin(), crowds.end(),
      [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
  return largest->second.oldest;
}

void Guests::ShutDown(int fd, Guest* guest) {
  // Not closed here: its owner still uses the descriptor, sees the end and closes it.
  guest->leaving = true;
  shutdown(fd, SHUT_RDWR);
}

void Guests::Settle(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = guests_.find(fd);
  if (found != guests_.end()) found->second.settled = true;
}

void Guests::Expect(int fd, int64_t close_at_ms) {
  const std::lock_guard lock(mutex_);
  const auto found = guests_.find(fd);
  if (found != guests_.end()) found->second.close_at_ms = close_at_ms;
}

void Guests::Leave(int fd) {
  const std::lock_guard lock(mutex_);
  guests_.erase(fd);
}

void Guests::CloseSlow(int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  for (auto& [fd, guest] : guests_) {
    if (guest.settled && guest.close_at_ms <= now_ms) ShutDown(fd, &guest);
  }
}

}  // namespace nowcalls::web
