// Connections and sessions: when a session was surely online, and when its tokens may be taken for
// its absence.
#include <algorithm>

#include "sim/oracle.h"

namespace nowcalls::sim {
int64_t Oracle::OfflineDueMs(const std::string& owner, int64_t flow) {
  const Owner& of = owners_[owner];
  if (!of.links.empty()) return kNeverMs;
  const int64_t offline_ms = flows_[flow].client_offline_ms;
  if (!of.since_restart) return of.offline_since_ms + offline_ms;
  const int64_t spared_ms = of.offline_since_ms + std::max(offline_ms, grace_ms_);
  return of.left_again_ms ? std::min(spared_ms, *of.left_again_ms + offline_ms) : spared_ms;
}

bool Oracle::WasAbsent(const std::string& owner, int64_t flow, int64_t after_ms) {
  const int64_t offline_ms = flows_[flow].client_offline_ms;
  const auto& absences = owners_[owner].absences;
  return std::any_of(absences.begin(), absences.end(), [&](const auto& absence) {
    const auto [since_ms, until_ms] = absence;
    return until_ms > after_ms && until_ms - since_ms >= offline_ms;
  });
}

void Oracle::SessionAsked(LinkId link, const std::string& owner) {
  if (settled_.contains(link)) return;
  levels_.SessionMayOpen(Tick(), link, owner);
  link_owners_[link] = owner;
  link_lives_[link] = life_;
  owners_[owner].unsettled.insert(link);
}

void Oracle::SessionSeen(LinkId link, const std::string& owner) {
  if (settled_.contains(link) && !link_owners_.contains(link)) return;  // Asked in vain.
  levels_.SessionSeen(Tick(), link);
  Owner& of = owners_[owner];
  const auto broken = broken_ms_.find(link);
  if (broken != broken_ms_.end()) {
    if (broken->second <= of.offline_since_ms) return;
    of.absences.emplace_back(of.offline_since_ms, broken->second);
    of.offline_since_ms = broken->second;
    of.since_restart = false;
    return;
  }
  if (of.links.empty()) of.absences.emplace_back(of.offline_since_ms, timeline_->now_ms());
  if (!of.links.insert(link).second) return;
  for (const uint64_t id : present_) {
    Token& token = tokens_[id];
    if (token.seen.owner == owner && token.offline_ms > timeline_->now_ms()) {
      token.offline_ms = kNeverMs;
    }
  }
}

void Oracle::LinkBroken(LinkId link) {
  broken_ms_.try_emplace(link, timeline_->now_ms());
  if (const auto listener = listeners_.find(link); listener != listeners_.end()) {
    listener->second.awaits = false;
    listener->second.awaited.clear();
  }
  levels_.LinkBroken(Tick(), link);
  const auto found = link_owners_.find(link);
  if (found == link_owners_.end()) return;
  const std::string& owner = found->second;
  Owner& of = owners_[owner];
  const bool was_seen = of.links.erase(link) > 0;
  if (!of.links.empty()) return;
  if (was_seen) {
    of.offline_since_ms = timeline_->now_ms();
    of.since_restart = false;
  } else if (!of.left_again_ms) {
    of.left_again_ms = timeline_->now_ms();
  }
  for (const uint64_t id : present_) {
    Token& token = tokens_[id];
    if (token.seen.owner != owner) continue;
    token.offline_ms = std::min(token.offline_ms, OfflineDueMs(owner, token.seen.flow));
  }
}

}  // namespace nowcalls::sim
