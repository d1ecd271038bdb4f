// RuleSets: the rules of a crash run, which are replaced while it runs, and what a killed server
// may have of them.
//
// Thread: one at a time. There are two namespaces: "default" has its rules from a file, which is
// rewritten, and "moving" gets them by rules_load. Each set has a version, which many rules of it
// tell, so that a ledger with parts of two sets is noticed. Levels of the flows that clients use
// move with the version.
#ifndef NOWCALLS_CRASH_RULE_SETS_H_
#define NOWCALLS_CRASH_RULE_SETS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "crash/checker.h"
#include "crash/lanes.h"
#include "support/admin.h"
#include "support/process.h"
#include "support/rpc_client.h"

namespace nowcalls::crash {

class RuleSets {
 public:
  static constexpr char kMoving[] =
      "moving";  // Its flows are 11 and 12, those of "default" 1 .. 6, kKeyedFlow and kWindowFlow.
  static constexpr int64_t kWindowFlow = 8;  // Its window of calls a second is in the ledger.

  // Its flow has a rule now and then, which is the operator's (operator.h).
  static constexpr char kRetired[] = "retired";
  static constexpr int64_t kRetiredFlow = 21;

  // The lanes (lanes.h) that clients use, with the highest level that each has in any version.
  static std::vector<FlowFacts> Flows();
  static std::vector<int64_t> FlowIds();
  static std::string NameSpaceOf(int64_t flow_id) {
    if (IsKeyLane(flow_id)) return "default";
    return flow_id == kRetiredFlow ? kRetired : flow_id > 10 ? kMoving : "default";
  }

  // Writes the first set for "default" to the file.
  explicit RuleSets(std::string file);

  // A server is about to be started, which will load the file.
  void BeginCycle(int64_t started_us);

  // Whether "moving" has had rules in some ledger.
  bool moving_has_rules() const { return moving_.possible.front() != kNone; }

  // Both have the server load the next set. Throws std::runtime_error when it does not take it.
  void Load(testing::RpcClient* client);
  // Without waiting: asks for the set, or rewrites the file and sends SIGHUP.
  void BeginLoad(testing::RpcClient* client);
  void BeginReload(const testing::Process& server);
  // The file gets the set with the highest levels, for the next start.
  void RewriteForTheEnd();

  // Since BeginCycle, for the checker.
  const std::vector<LevelChange>& changes() const { return changes_; }
  // Of the set that the file has, or that "moving" has at last got.
  int64_t LevelOf(int64_t flow_id) const;

  // What of a ledger is neither the last set that was acknowledged nor one asked for since.
  Violations Check(const testing::Source& source) const;
  // The same, after which the ledger's sets are those that count.
  Violations CheckAndAdopt(const testing::Source& source);
  // It had the newest set of each namespace.
  bool newest_found() const { return newest_found_; }

 private:
  static constexpr int64_t kNone = -1;

  struct NameSpace {
    std::string name;
    int64_t last = kNone;                     // The newest version that was made.
    std::vector<int64_t> possible = {kNone};  // Versions that a ledger may have; the last
                                              // acknowledged first.
  };

  void WriteFile();
  void AddChanges(const NameSpace& space, int64_t version, int64_t from_us, int64_t since_us);
  static std::string WrongIn(const NameSpace& space, const testing::Source& source,
                             int64_t* version);

  std::string file_;
  NameSpace file_space_{.name = "default"};
  NameSpace moving_{.name = kMoving};
  std::vector<LevelChange> changes_;
  bool newest_found_ = false;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_RULE_SETS_H_
