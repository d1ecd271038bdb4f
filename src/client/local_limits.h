// LocalLimits: decides new calls while no server is reached.
//
// Thread: the session's. By flow and value: calls in progress, with server tokens; local calls of
// the window.
#ifndef NOWCALLS_CLIENT_LOCAL_LIMITS_H_
#define NOWCALLS_CLIENT_LOCAL_LIMITS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "client/call.h"
#include "client/rule_view.h"
#include "nowcalls/client.h"

namespace nowcalls::client {

class LocalLimits {
 public:
  // `rules` outlives it.
  LocalLimits(Fallback mode, std::map<FlowId, uint64_t> levels, const RuleViews* rules)
      : mode_(mode), levels_(std::move(levels)), rules_(rules) {}

  bool active() const { return mode_ != Fallback::kFail; }

  // Sets answer and tokens. False: no fallback for the flow. `sessions`: online at the last
  // connect.
  bool Decide(AcquireCall* call, uint64_t sessions, int64_t now_ms);
  bool Decide(RateCall* call, uint64_t sessions, int64_t now_ms);
  // Counts a server token until Leave.
  void Enter(const Held& held);
  void Leave(const Held& held) { Leave(held.grant.flow, held.param, held.grant.count); }

  uint64_t granted() const { return granted_; }
  uint64_t refused() const { return refused_; }
  uint64_t passed() const { return passed_; }

 private:
  using Key = std::pair<FlowId, Value>;
  struct Verdict {
    bool admitted = false;
    uint64_t now_calls = 0;
    uint64_t level = 0;  // 0: they pass, whatever is in progress.
  };
  struct Window {
    int64_t begin_ms = 0;
    uint64_t calls = 0;
  };
  static constexpr size_t kWindowsMax = 10'000;

  enum class Of { kLevel, kWindow };
  // Outer none: no fallback. Inner none: let pass.
  std::optional<std::optional<uint64_t>> Share(Of of, FlowId flow, const Value& param,
                                               uint64_t sessions) const;
  int64_t WindowMs(FlowId flow, const Value& param) const;
  // Counts admitted calls. None: no fallback.
  std::optional<Verdict> Enter(const FlowDemand& demand, uint64_t sessions);
  void Leave(FlowId flow, const Value& param, uint32_t count);
  std::optional<Verdict> Pass(FlowId flow, const Value& param, uint32_t count, uint64_t sessions,
                              int64_t now_ms);
  void Uncount(FlowId flow, const Value& param, uint32_t count);
  Verdict Judge(uint64_t before, uint32_t count, std::optional<uint64_t> share);

  bool counts() const { return mode_ != Fallback::kFail; }

  const Fallback mode_;
  const std::map<FlowId, uint64_t> levels_;
  const RuleViews* const rules_;
  std::map<Key, uint64_t> in_progress_;
  std::map<Key, Window> windows_;
  uint64_t granted_ = 0;
  uint64_t refused_ = 0;
  uint64_t passed_ = 0;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_LOCAL_LIMITS_H_
