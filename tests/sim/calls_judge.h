// CallsJudge: the part of the oracle that judges calls a second.
//
//   S4 No more calls pass than the window of the rule, or of a value, allows, and no more requests
//      than the guard of the namespace. Windows in the ledger hold across restarts. An orderly end
//      forgets nothing. A crash forgets what was not yet due.
//   S5 A request is blocked only if its window may have been full, and refused only for a reason.
//
// Of a call the judge knows when it was asked for and when the answer came; it was counted in
// between. A window of some buckets surely sees all calls of a span that is one bucket shorter.
//
// Thread: one at a time. Milliseconds are those of the timeline; events are numbered by the oracle.
#ifndef NOWCALLS_SIM_CALLS_JUDGE_H_
#define NOWCALLS_SIM_CALLS_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nowcalls/types.h"
#include "sim/clock_gap.h"
#include "sim/hindrances.h"
#include "sim/level_history.h"
#include "sim/timeline.h"

namespace nowcalls::sim {

using CallsId = uint64_t;

// The window of a lane (lanes.h).
struct WindowFacts {
  int64_t interval_ms = 1'000;
  int64_t samples = 10;
  bool in_ledger = false;
  bool shadow = false;  // Nothing is limited.
  std::string name_space{};

  int64_t bucket_ms() const { return (interval_ms + samples - 1) / samples; }
};

// Calls that one request asks for, by lane.
struct CallsAsked {
  std::map<int64_t, int64_t> calls;
  // The flow id has no rule of the request's kind, with or without a value, but one of the other.
  bool misfit = false;
};

class CallsJudge {
 public:
  using Accuse = std::function<void(const std::string&)>;

  CallsJudge(const Timeline* timeline, const LevelHistory* levels, const Hindrances* hindrances,
             Accuse accuse)
      : timeline_(timeline), levels_(levels), hindrances_(hindrances), accuse_(std::move(accuse)) {}

  void AddLane(int64_t lane, const WindowFacts& facts) { lanes_[lane].facts = facts; }
  // The most requests a second of a namespace that pass, or are blocked by a rule.
  void SetGuard(int64_t requests_max) { guard_max_ = requests_max; }
  // A call is surely durable so long after it passed, if nothing hinders the server.
  void SetSaveMs(int64_t save_ms) { save_ms_ = save_ms; }

  // `at`: the number of the event.
  CallsId Asked(uint64_t at, CallsAsked asked);
  // Of a server that leads no more: nothing is said of the answer.
  CallsId AskedInVain() { return ++last_id_; }
  void Answered(uint64_t at, CallsId id, TokenStatus status, int64_t wait_ms);
  // The calls are part of a group that was refused for another reason: none has passed, though the
  // guard may have counted the request.
  void GroupRefused(CallsId id);
  // They are part of a group that was granted, perhaps as a repeat, which takes no calls anew.
  void MayHavePassed(CallsId id);

  // All that is in the ledger outlives the machine.
  void Synced() { synced_ms_ = timeline_->now_ms(); }
  // Batches since the last sync are lost; Died follows.
  void BatchesLost() { losing_ = true; }
  void Died(bool orderly);
  void Ready(ClockGap gap);

 private:
  struct Request {
    CallsAsked asked;
    uint64_t at = 0;
    int64_t at_ms = 0;
  };
  struct Passed {
    int64_t count = 0;
    uint64_t asked = 0;
    int64_t asked_ms = 0;
    int64_t done_ms = 0;
    bool sure = true;  // The server counts it, in a bucket between the two moments.
  };
  struct Lane {
    WindowFacts facts;
    std::vector<Passed> passed;
  };

  // Calls that were surely counted within the time from when `first` was asked for; *from: the
  // event with which the first of them was.
  static int64_t SureCalls(const std::vector<Passed>& passed, const Passed& first, int64_t span_ms,
                           uint64_t* from);
  // Calls that a window may have had in it when the request was carried out.
  int64_t CallsWithin(const std::vector<Passed>& passed, const WindowFacts& window,
                      const Request& request) const;
  void Note(std::vector<Passed>* passed, const WindowFacts& window, const Request& request,
            int64_t count, bool sure) const;
  const std::string& NamespaceOf(const Request& request) const;
  void Count(const Request& request, bool sure);
  void CheckGuard(const Request& request) const;
  void CheckTooMany(const Request& request) const;
  void Pass(const Request& request, bool sure);
  void CheckWindow(int64_t number, const Lane& lane, const Request& request, uint64_t now) const;
  void CheckBlocked(const Request& request, uint64_t now);
  void CheckNoRule(const Request& request, uint64_t now) const;
  bool MayBeFull(int64_t number, const Request& request, uint64_t now) const;
  bool IsSaved(const Passed& passed, bool orderly) const;
  std::string Text(const Request& request) const;

  const Timeline* const timeline_;
  const LevelHistory* const levels_;
  const Hindrances* const hindrances_;
  const Accuse accuse_;
  int64_t guard_max_ = INT64_MAX;
  int64_t save_ms_ = 1'000;
  std::map<int64_t, Lane> lanes_;
  std::map<std::string, std::vector<Passed>> guards_;  // Requests, by namespace.
  CallsId last_id_ = 0;
  std::map<CallsId, Request> open_;  // Of this life of the server, not answered.
  int64_t synced_ms_ = 0;
  bool losing_ = false;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_CALLS_JUDGE_H_
