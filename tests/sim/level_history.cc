#include "sim/level_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace nowcalls::sim {
namespace {

int64_t LevelOf(const LevelSetting& setting, int64_t sessions, int64_t interval_ms) {
  if (!setting.in_force) return 0;
  // In tenths, which are exact, as counts are.
  return std::llround(setting.count * 10) * sessions * interval_ms / (10 * LevelHistory::kLevelMs);
}

}  // namespace

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

void LevelHistory::Undone(uint64_t at, uint64_t since) {
  for (auto& [flow, possible] : possible_) {
    for (size_t i = 0, size = possible.size(); i < size; ++i) {
      if (possible[i].until == kStill || possible[i].until < since) continue;
      possible.push_back({.setting = possible[i].setting, .from = at});
    }
  }
}

void LevelHistory::SessionMayOpen(uint64_t at, LinkId link, const std::string& owner) {
  presences_.try_emplace(link, Presence{.owner = owner, .from = at});
}

void LevelHistory::SessionSettled(uint64_t at, LinkId link) {
  const auto presence = presences_.find(link);
  if (presence != presences_.end()) presence->second.until = at;
}

void LevelHistory::SessionSeen(uint64_t at, LinkId link) {
  const auto presence = presences_.find(link);
  if (presence == presences_.end()) return;
  presence->second.sure_from = std::min(presence->second.sure_from, at);
}

void LevelHistory::LinkBroken(uint64_t at, LinkId link) {
  const auto presence = presences_.find(link);
  if (presence != presences_.end()) presence->second.sure_until = at;
}

int64_t LevelHistory::Sessions(const std::string& name_space, uint64_t from, uint64_t until) const {
  std::set<std::string> owners;
  for (const auto& [link, presence] : presences_) {
    if (presence.from > until || presence.until < from) continue;
    if (presence.owner.starts_with(name_space + "/")) owners.insert(presence.owner);
  }
  return static_cast<int64_t>(owners.size());
}

int64_t LevelHistory::SureSessions(const std::string& name_space, uint64_t from,
                                   uint64_t until) const {
  std::set<std::string> owners;
  for (const auto& [link, presence] : presences_) {
    if (presence.sure_from > from || presence.sure_until <= until) continue;
    if (presence.owner.starts_with(name_space + "/")) owners.insert(presence.owner);
  }
  return static_cast<int64_t>(owners.size());
}

bool LevelHistory::MayBeOnline(const std::string& name_space, int64_t sessions, uint64_t from,
                               uint64_t until) const {
  return SureSessions(name_space, from, until) <= sessions &&
         sessions <= Sessions(name_space, from, until);
}

std::vector<LevelSetting> LevelHistory::Settings(int64_t flow, uint64_t from,
                                                 uint64_t until) const {
  const auto possible = possible_.find(flow);
  if (possible == possible_.end()) return {LevelSetting{}};
  std::vector<LevelSetting> settings;
  for (const Possible& at : possible->second) {
    if (at.from <= until && at.until >= from) settings.push_back(at.setting);
  }
  return settings;
}

int64_t LevelHistory::Highest(int64_t flow, uint64_t from, uint64_t until,
                              int64_t interval_ms) const {
  int64_t highest = 0;
  for (const LevelSetting& setting : Settings(flow, from, until)) {
    if (!setting.in_force || setting.draining) continue;
    const int64_t sessions =
        setting.for_each_session ? Sessions(setting.name_space, from, until) : 1;
    highest = std::max(highest, LevelOf(setting, sessions, interval_ms));
  }
  return highest;
}

int64_t LevelHistory::Lowest(int64_t flow, uint64_t from, uint64_t until,
                             int64_t interval_ms) const {
  int64_t lowest = std::numeric_limits<int64_t>::max();
  for (const LevelSetting& setting : Settings(flow, from, until)) {
    const int64_t sessions =
        setting.for_each_session ? SureSessions(setting.name_space, from, until) : 1;
    lowest = std::min(lowest, LevelOf(setting, sessions, interval_ms));
  }
  return lowest;
}

bool LevelHistory::MayBe(int64_t flow, int64_t level, uint64_t from, uint64_t until) const {
  for (const LevelSetting& setting : Settings(flow, from, until)) {
    const bool each = setting.for_each_session;
    const int64_t least = each ? SureSessions(setting.name_space, from, until) : 1;
    const int64_t most = each ? Sessions(setting.name_space, from, until) : 1;
    for (int64_t sessions = least; sessions <= most; ++sessions) {
      if (LevelOf(setting, sessions, kLevelMs) == level) return true;
    }
  }
  return false;
}

bool LevelHistory::MayDrain(int64_t flow, uint64_t from, uint64_t until) const {
  const std::vector<LevelSetting> settings = Settings(flow, from, until);
  return std::any_of(settings.begin(), settings.end(),
                     [](const LevelSetting& setting) { return setting.draining; });
}

bool LevelHistory::MayBeAbsent(int64_t flow, uint64_t from, uint64_t until) const {
  const std::vector<LevelSetting> settings = Settings(flow, from, until);
  return std::any_of(settings.begin(), settings.end(),
                     [](const LevelSetting& setting) { return !setting.in_force; });
}

}  // namespace nowcalls::sim
