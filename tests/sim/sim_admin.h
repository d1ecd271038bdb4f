// SimAdmin: an operator on a connection that no fault touches, one request at a time; the oracle is
// told of all.
//
// Thread: one at a time. What a death of the server leaves unanswered may have been done or not.
#ifndef NOWCALLS_SIM_SIM_ADMIN_H_
#define NOWCALLS_SIM_SIM_ADMIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nowcalls/flow_kind.h"
#include "sim/oracle.h"
#include "sim/rpc_caller.h"
#include "sim/sim_rules.h"
#include "sim/trace.h"

namespace nowcalls::sim {

class SimAdmin : public RpcCaller {
 public:
  SimAdmin(Network* network, Oracle* oracle, Trace* trace)
      : RpcCaller("admin", network, "127.0.0.1"), oracle_(oracle), trace_(trace) {}

  // Connects if it is not, and has nothing to wait for.
  bool Ready();
  bool last_was_answered() const { return answered_; }

  // REQUIRES: Ready().
  void LoadRules(const std::vector<SimRule>& rules, const std::string& name_space);
  // Without a kind both rules of the flow id.
  void Drain(int64_t flow, std::optional<FlowKind> kind, bool on);
  void Reclaim(uint64_t token);
  // `kind`: of the flow's rules; none: both.
  void ReclaimFlow(int64_t flow, std::optional<FlowKind> kind, uint32_t limit);
  // Of one instance, or of all.
  void ReclaimClient(const std::string& name_space, const std::string& client_id,
                     std::optional<uint64_t> instance, uint32_t limit);
  void Purge(int64_t flow, FlowKind kind);

 private:
  void Misunderstood(const std::string& what) override;
  Answer AfterReclaim(OpId op);

  Oracle* const oracle_;
  Trace* const trace_;
  bool answered_ = true;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_ADMIN_H_
