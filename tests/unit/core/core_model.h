// CoreModel: what the core must hold, kept the simplest way: maps and linear scans, no timers, no
// lists, no sums. It shares no code with the core.
//
// Thread: one at a time. A plain value: a copy is what survives a crash. Expiry by resource timeout
// has a window, since the core may sweep a little late; everything else is exact.
#ifndef NOWCALLS_UNIT_CORE_CORE_MODEL_H_
#define NOWCALLS_UNIT_CORE_CORE_MODEL_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace nowcalls::testing {

struct ModelToken {
  uint64_t fence = 0;
  int64_t flow = 0;
  std::string client;  // NAMESPACE/NAME
  int64_t count = 0;
  int64_t issued_ms = 0;
  int64_t deadline_ms = 0;
  int64_t held_since_ms = 0;
  bool old = false;  // Issued before the last restart.
};

// An end that the history has to tell of.
struct ModelEnd {
  uint64_t token = 0;
  ModelToken was;
  std::set<std::string> reasons;  // One of them.
};

struct ModelRule {
  bool present = false;
  bool draining = false;
  std::string name_space;
  double count = 0;
  bool avg_local = false;
  int64_t hold_ms = 0;
  int64_t max_hold_ms = 0;  // 0: no bound.
  int64_t client_offline_ms = 0;
};

struct ModelClient {
  int connections = 0;
  int64_t offline_since_ms = 0;
  bool old = false;  // Not back since the last restart.
};

struct CoreModel {
  static constexpr int64_t kGraceMs = 10'000;
  // A span of the deadline counter and an interval between sweeps, twice: a spared token is swept
  // again.
  static constexpr int64_t kSweepLateMs = 2 * (64 + 100) + 20;

  std::map<uint64_t, ModelToken> tokens;  // By token id.
  std::map<int64_t, ModelRule> rules;     // By flow; also those removed.
  std::map<std::string, ModelClient> clients;
  std::set<uint64_t> issued;   // Ids ever given out.
  std::vector<ModelEnd> ends;  // In the order of their numbers in the history, from 1.
  uint64_t newest_fence = 0;
  int64_t ready_ms = 0;

  int64_t NowCalls(int64_t flow) const;
  int64_t TokensOf(const std::string& client) const;
  int64_t Online(const std::string& name_space) const;
  double Level(int64_t flow) const;

  // When the longest hold of the token is over; INT64_MAX without a bound.
  int64_t HoldEndMs(const ModelToken& token) const;
  // When the token of an absent client is due; INT64_MAX while the client is online.
  int64_t OfflineDueMs(const ModelToken& token) const;
  // The sweep may take the token from the first moment on, and must have by the second.
  int64_t ExpiryMs(const ModelToken& token) const;
  int64_t SweptByMs(const ModelToken& token) const;

  // "released", "released_late", or either for a token whose deadline the sweep may have moved.
  std::set<std::string> ReleaseReasons(const ModelToken& token, int64_t now_ms) const;

  void EraseToken(uint64_t id);
  void Goodbye(const std::string& name, int64_t now_ms);
  void Restart(int64_t now_ms);
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_UNIT_CORE_CORE_MODEL_H_
