// LocalLimits: what new calls do while no server can be reached.
//
// Thread: the session's. It counts calls in progress by flow and value, those that the process has
// of its server included, and local calls a second in one window that begins anew when it is over.
// Local tokens never reach a server.
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

  // Sets the answer of a call, and the tokens of a grant. False: there is no fallback for its flow.
  // `sessions`: online when the client last connected.
  bool Decide(AcquireCall* call, uint64_t sessions, int64_t now_ms);
  bool Decide(RateCall* call, uint64_t sessions, int64_t now_ms);
  // A token of the server counts, until it leaves.
  void Enter(const Held& held);
  // Gives back what a token stands for.
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

  // What a share is of.
  enum class Of { kLevel, kWindow };
  // The share, or nothing: let pass. Outer none: fail.
  std::optional<std::optional<uint64_t>> Share(Of of, FlowId flow, const Value& param,
                                               uint64_t sessions) const;
  // Of the flow's rate.
  int64_t WindowMs(FlowId flow, const Value& param) const;
  // None: no fallback. Takes the calls of a demand if they are admitted.
  std::optional<Verdict> Enter(const FlowDemand& demand, uint64_t sessions);
  void Leave(FlowId flow, const Value& param, uint32_t count);
  std::optional<Verdict> Pass(FlowId flow, const Value& param, uint32_t count, uint64_t sessions,
                              int64_t now_ms);
  // Takes back what Pass has counted.
  void Uncount(FlowId flow, const Value& param, uint32_t count);
  Verdict Judge(uint64_t before, uint32_t count, std::optional<uint64_t> share);

  bool counts() const { return mode_ == Fallback::kByRule || mode_ == Fallback::kLocal; }

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
