// Checker: decides from outside whether a killed server kept its promises.
//
// It knows what clients logged (history.h) and what the ledger holds after the kill, nothing else:
// ordered maps and linear scans, no code of the server. An operation without an answer counts as
// either done or not. The invariants, by the numbers that violations start with:
//
//   I1 a token acknowledged, not released and not past its deadline is in the ledger
//   I2 a token whose release was acknowledged, or that was seen gone, is absent for ever
//   I3 no token is in the ledger that nobody asked for, and none differs from what was acknowledged
//   I4 the ledger's nowCalls per flow = sum of the dumped counts = what the server reports
//   I5 at every instant the tokens definitely held are within the level; where levels move, each
//      grant names a level that may have been in force, and counts all that was definitely held
//   I6 fences grow strictly in the order of acknowledgement, ids and fences never repeat
//   I10 a request id never has tokens of two grants at once, and while all of one are live those
//       are the answer
//   I11 what a request id stood for is gone when its cancel is answered, and it is not granted on
//       the same connection afterwards
//   I13 a grant tells the hold that was asked for, as far as its rule allows; a token that is told
//       lost is its client's, was not released, was not told before its time, and is gone for ever
//   I12 nothing is granted under a drain, from its acknowledgement until its end is asked for
//   I14 a group that was not answered is in the ledger whole or not at all, but for tokens that may
//       have ended since. So is a group in a backup that was answered meanwhile
//
// What an operator takes back is released: gone if it was answered, either way if not. Of many
// tokens at once it is those of the flow or client that were surely held all the while, if the
// answer says that none are left; which others ended nobody knows.
//
// A backup that was made meanwhile is held to I1 .. I5 as the ledger is, for some moment between
// the request for it and the end of the cycle.
//
// Thread: one at a time. Times are microseconds of CLOCK_BOOTTIME on the machine of the run.
#ifndef NOWCALLS_CRASH_CHECKER_H_
#define NOWCALLS_CRASH_CHECKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "crash/history.h"

namespace nowcalls::crash {

struct FlowFacts {
  int64_t flow_id = 0;
  // The highest that it has. 0: depends on the sessions online; then I5 is not checked for it.
  int64_t level = 0;
  int64_t resource_timeout_ms = 0;
  int64_t client_offline_ms = 0;
  int64_t max_hold_ms = 0;  // Of a token with all its keeps; 0: no bound.
};

struct DumpedToken {
  uint64_t token_id = 0;
  int64_t flow_id = 0;
  std::string client_id;  // As OwnerOf names it.
  int64_t count = 0;
  uint64_t fence = 0;
  int64_t issued_ms = 0;
  int64_t deadline_ms = 0;
};

using CountByFlow = std::map<int64_t, int64_t>;

// The ledger after a kill, as nowcalls-admin dump and stat print it.
struct LedgerView {
  std::vector<DumpedToken> tokens;
  CountByFlow now_calls;
  CountByFlow token_counts;
};

// A level that a flow may have had.
struct LevelChange {
  int64_t flow_id = 0;
  int64_t level = 0;
  int64_t from_us = 0;   // May be in force from here on,
  int64_t since_us = 0;  // and is, in place of those before it, from here on.
};

// What was restored from a backup that was made in a cycle.
struct LedgerCopy {
  int64_t asked_us = 0;
  LedgerView ledger;
};

// One life of the server. A cycle in which no client connected has an empty history.
struct Cycle {
  int64_t started_us = 0;  // Before the process was started.
  int64_t dead_us = 0;     // After it was gone.
  History history;
  LedgerView ledger;
  std::vector<LevelChange> levels;   // Of the flows whose levels move, in order.
  std::optional<LedgerCopy> backup;  // If one was finished.
};

using Violations = std::vector<std::string>;

// How often a run did what the checker judges.
struct CheckerCounts {
  int64_t acknowledged = 0;    // Requests with a definite answer,
  int64_t unknown = 0;         // and without.
  int64_t adopted = 0;         // Tokens of unanswered acquires found in a ledger,
  int64_t adopted_groups = 0;  // and groups that have such.
  int64_t told_lost = 0;
  int64_t asked_again = 0;         // Acquires answered with the token that was known,
  int64_t groups_asked_again = 0;  // and groups with theirs.
};

class Checker {
 public:
  Checker(const std::vector<FlowFacts>& flows, int64_t restart_grace_ms);

  // Checks one cycle; cycles come in order. Each violation names the invariant, the token and what
  // its clients saw of it.
  Violations CheckCycle(const Cycle& cycle);

  // I4 against what a server that has just been started reports, before clients connect. `due_us`:
  // when the report was there; flows whose tokens may have ended by then are compared as a bound.
  Violations CheckReported(const CountByFlow& reported, int64_t started_us, int64_t due_us) const;

  const CheckerCounts& counts() const { return counts_; }

 private:
  // What is known about one token that is not surely gone.
  struct Token {
    std::string client;
    int64_t flow_id = 0;
    int64_t count = 0;
    uint64_t fence = 0;  // 0: frames do not tell; then that of the first dump.
    int64_t asked_us = 0;
    int64_t issued_from_us = 0;   // Not granted before.
    int64_t held_from_us = 0;     // Definitely held from here on,
    int64_t deadline_us = 0;      // not expired before this,
    int64_t offline_us = 0;       // not reclaimed with its session before this,
    int64_t release_us = 0;       // and not released before this.
    bool gone = false;            // Acknowledged released, or answered gone,
    int64_t gone_us = INT64_MAX;  // by when a client knew,
    std::string gone_by;          // and which one.
    bool released = false;        // By an answer to a release or reclaim of this token.
    uint64_t request_id = 0;      // Its own; 0: none, or not known, then it is
    std::set<uint64_t> requests;  // one of these or none.
    std::vector<uint64_t> grant;  // The tokens of its grant, ascending; empty: not told.
    std::vector<std::string> trail;

    int64_t MayEndUs() const;
    bool IsOf(const Operation& request) const;  // Of its client and, surely, its request id.
  };
  using Tokens = std::map<uint64_t, Token>;

  using AskedByToken = std::map<uint64_t, int64_t>;
  using Request = std::pair<std::string, uint64_t>;        // Client, request id.
  using Wish = std::tuple<std::string, int64_t, int64_t>;  // Client, flow, count.

  void Report(const std::string& what, uint64_t token_id);
  void BeginCycle(int64_t started_us);
  void AddGrants(const History& history);
  void AddAnswer(Items items);
  void AddGrant(const Operation& operation);
  bool IsKnownGrant(const Operation& operation);
  void AddOfflineGaps(const Cycle& cycle);
  void ApplyRequests(const History& history);
  void IndexRequests();
  std::vector<uint64_t> TokensOf(const Operation& operation) const;
  void MayEnd(const Operation& operation);
  void ApplyToToken(const Operation& operation);
  void ApplyToMany(const Operation& operation);
  bool MayHaveEnded(const Cycle& cycle, const Operation& item);
  void MarkGone(const Operation& operation, Token* token) const;
  void CheckRequestIds(const Cycle& cycle);
  void CheckOneGrant(const Request& request, const std::vector<uint64_t>& ids);
  void CheckAskedAgain(Items items, const std::vector<uint64_t>& ids);
  void CheckCancels(const History& history);
  void CheckToldHold(const Operation& operation);
  void CheckLost(const History& history);
  void CheckLostToken(const LostEvent& lost, Token* token);
  void CheckDrains(const Cycle& cycle);
  void CheckLevels(int64_t started_us);
  void CheckMovingLevels(const Cycle& cycle);
  void CheckDump(const Cycle& cycle, AskedByToken* adopted);
  void CheckPresent(const DumpedToken& dumped, Token* known);
  std::vector<Items> Unanswered(const History& history) const;
  void Adopt(const Cycle& cycle, std::vector<DumpedToken> strangers, AskedByToken* adopted);
  void AdoptOne(const Cycle& cycle, const DumpedToken& row,
                const std::vector<const Operation*>& asked);
  void CheckGroupsWhole(const Cycle& cycle, const std::vector<Items>& unanswered,
                        const std::vector<DumpedToken>& rows);
  void CheckFenceOrder(const History& history, const AskedByToken& adopted);
  CountByFlow CheckSums(const LedgerView& ledger, const std::string& where);
  void CheckBackup(const Cycle& cycle, const AskedByToken& adopted);
  void CheckInBackup(const DumpedToken& row, int64_t asked_us, std::vector<DumpedToken>* strangers);
  void EndCycle(const LedgerView& ledger);

  std::map<int64_t, FlowFacts> flows_;
  int64_t restart_grace_ms_;
  Tokens tokens_;
  std::map<uint64_t, std::string> ended_;        // By id: how it ended. Never forgotten.
  std::map<uint64_t, std::string> reclaimed_;    // Likewise, in this cycle, and granted to nobody.
  std::map<Request, int64_t> first_asked_;       // In this cycle.
  std::map<Request, int64_t> cancelled_;         // In this cycle: when that was answered last.
  std::multimap<Request, uint64_t> by_request_;  // The tokens that are, or may be, of a request.
  std::map<int64_t, int64_t> drained_;           // Flows under an acknowledged drain, since when.
  std::set<uint64_t> fences_;
  uint64_t last_fence_ = 0;  // The greatest one acknowledged in earlier cycles.
  CountByFlow last_sums_;
  int cycle_ = 0;
  CheckerCounts counts_;
  Violations violations_;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CHECKER_H_
