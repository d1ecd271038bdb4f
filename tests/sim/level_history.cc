#include "sim/level_history.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace nowcalls::sim {

void LevelHistory::Asked(uint64_t at, const std::map<int64_t, Change>& changes) {
  pending_.clear();
  for (const auto& [flow, change] : changes) {
    std::vector<Possible>& possible = possible_[flow];
    if (possible.empty()) possible.push_back({.setting = {}, .from = 0});
    Pending pending;
    pending.flow = flow;
    std::vector<size_t> open;
    for (size_t i = 0; i < possible.size(); ++i) {
      if (possible[i].until == kStill) open.push_back(i);
    }
    std::set<size_t> stay;  // Possible before the change and after it.
    for (const size_t i : open) {
      const LevelSetting changed = change(possible[i].setting);
      const auto same = std::find_if(open.begin(), open.end(), [&](size_t other) {
        return possible[other].setting == changed;
      });
      if (same != open.end()) {
        stay.insert(*same);
      } else {
        pending.after.push_back(possible.size());
        possible.push_back({.setting = changed, .from = at});
      }
    }
    for (const size_t i : open) {
      if (!stay.contains(i)) pending.before.push_back(i);
    }
    pending_.push_back(std::move(pending));
  }
}

void LevelHistory::Answered(uint64_t at, bool applied) {
  for (const Pending& pending : pending_) {
    for (const size_t i : applied ? pending.before : pending.after) {
      possible_[pending.flow][i].until = at;
    }
  }
  pending_.clear();
}

void LevelHistory::SessionMayOpen(uint64_t at, LinkId link, const std::string& owner) {
  presences_.try_emplace(link, Presence{.owner = owner, .from = at});
}

void LevelHistory::SessionSettled(uint64_t at, LinkId link) {
  const auto presence = presences_.find(link);
  if (presence != presences_.end()) presence->second.until = at;
}

int64_t LevelHistory::Sessions(const std::string& name_space, uint64_t from, uint64_t until) const {
  std::set<std::string> owners;
  for (const auto& [link, presence] : presences_) {
    if (presence.from > until || presence.until < from) continue;
    if (presence.owner.starts_with(name_space + "/")) owners.insert(presence.owner);
  }
  return static_cast<int64_t>(owners.size());
}

int64_t LevelHistory::Highest(int64_t flow, uint64_t from, uint64_t until) const {
  const auto possible = possible_.find(flow);
  if (possible == possible_.end()) return 0;
  int64_t highest = 0;
  for (const Possible& at : possible->second) {
    if (at.from > until || at.until < from || !at.setting.in_force || at.setting.draining) continue;
    const int64_t sessions =
        at.setting.for_each_session ? Sessions(at.setting.name_space, from, until) : 1;
    const double level = std::floor(at.setting.count * static_cast<double>(sessions));
    highest = std::max(highest, static_cast<int64_t>(level));
  }
  return highest;
}

}  // namespace nowcalls::sim
