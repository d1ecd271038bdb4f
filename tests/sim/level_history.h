// LevelHistory: how many calls of each flow may have been allowed, and when.
//
// Thread: one at a time. Moments are the oracle's numbers of events. A change that was asked for
// and not answered may be in force or not, so several settings may hold at a moment; one that is
// replaced is possible until the answer. Sessions count, for levels that depend on them, from when
// they may be online until the server surely knows that they are not.
#ifndef NOWCALLS_SIM_LEVEL_HISTORY_H_
#define NOWCALLS_SIM_LEVEL_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/network.h"

namespace nowcalls::sim {

struct LevelSetting {
  bool in_force = false;
  bool draining = false;
  double count = 0;
  bool for_each_session = false;  // Of the namespace.
  std::string name_space{};

  bool operator==(const LevelSetting&) const = default;
};

class LevelHistory {
 public:
  using Change = std::function<LevelSetting(LevelSetting)>;

  // One change at a time; it is over when it is answered, or the server died.
  void Asked(uint64_t at, const std::map<int64_t, Change>& changes);
  void Answered(uint64_t at, bool applied);
  void Lost() { pending_.clear(); }
  // What was answered since then may be undone.
  void Undone(uint64_t at, uint64_t since);

  void SessionMayOpen(uint64_t at, LinkId link, const std::string& owner);
  void SessionSettled(uint64_t at, LinkId link);
  // It was surely online by then; from then on it may not be.
  void SessionSeen(uint64_t at, LinkId link);
  void LinkBroken(uint64_t at, LinkId link);

  // The highest level that the flow may have had at a moment in [from, until], while it granted. Of
  // a count of calls a second the level is what passes in kLevelMs; `interval_ms` asks for another
  // time.
  static constexpr int64_t kLevelMs = 1'000;
  int64_t Highest(int64_t flow, uint64_t from, uint64_t until,
                  int64_t interval_ms = kLevelMs) const;
  // The lowest, draining or not; 0 if it may have had no rule.
  int64_t Lowest(int64_t flow, uint64_t from, uint64_t until, int64_t interval_ms = kLevelMs) const;
  // Whether it may have had this level at such a moment.
  bool MayBe(int64_t flow, int64_t level, uint64_t from, uint64_t until) const;
  bool MayDrain(int64_t flow, uint64_t from, uint64_t until) const;
  bool MayBeAbsent(int64_t flow, uint64_t from, uint64_t until) const;
  // Whether so many sessions of the namespace may have been online.
  bool MayBeOnline(const std::string& name_space, int64_t sessions, uint64_t from,
                   uint64_t until) const;

 private:
  static constexpr uint64_t kStill = UINT64_MAX;

  struct Possible {
    LevelSetting setting;
    uint64_t from = 0;
    uint64_t until = kStill;
  };
  struct Presence {
    std::string owner;  // NAMESPACE/CLIENT
    uint64_t from = 0;
    uint64_t until = kStill;
    uint64_t sure_from = kStill;
    uint64_t sure_until = kStill;
  };
  struct Pending {
    int64_t flow = 0;
    std::vector<size_t> before;  // Places in possible_[flow].
    std::vector<size_t> after;
  };

  int64_t Sessions(const std::string& name_space, uint64_t from, uint64_t until) const;
  int64_t SureSessions(const std::string& name_space, uint64_t from, uint64_t until) const;
  // Of the settings that may have held at a moment in [from, until]; of a flow that nobody has
  // heard of, the one without a rule.
  std::vector<LevelSetting> Settings(int64_t flow, uint64_t from, uint64_t until) const;

  std::map<int64_t, std::vector<Possible>> possible_;
  std::vector<Pending> pending_;
  std::map<LinkId, Presence> presences_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_LEVEL_HISTORY_H_
