// SimClient: a client that acquires, keeps and releases tokens, and tells the oracle of all that it
// asks and hears.
//
// Thread: one at a time. It does what it is told and decides nothing; whoever tells it is
// client_life.h or a scenario.
#ifndef NOWCALLS_SIM_SIM_CLIENT_H_
#define NOWCALLS_SIM_SIM_CLIENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/oracle.h"
#include "sim/rpc_caller.h"
#include "sim/trace.h"

namespace nowcalls::sim {

struct ClientIdentity {
  std::string name;  // In the trace.
  std::string name_space = "default";
  std::string client_id{};  // Empty: a session of the connection.
  bool says_hello = true;
  bool listens = false;   // Asks to be told of tokens that are taken back.
  uint64_t instance = 0;  // Of the client id.
  // Each connection is another process, with an instance of its own from `instance` on, that knows
  // nothing of the one before.
  bool restarts = false;
};

class SimClient : public RpcCaller {
 public:
  struct Wanted {
    int64_t flow = 0;
    int64_t count = 1;
    std::optional<uint64_t> wait_ms{};
    bool prioritized = false;
    uint64_t request_id = 0;
    uint64_t hold_ms = 0;       // 0: as long as the rule allows.
    std::vector<Item> all{};    // What an acquire_all asks for, instead of flow and count.
    std::vector<Item> rates{};  // Calls a second that it asks for with these, behind them.
  };
  struct Held {
    uint64_t token = 0;
    Wanted wanted;
    bool releasing = false;  // Asked for, and not answered.
  };

  SimClient(ClientIdentity identity, std::string host, Network* network, Oracle* oracle,
            Trace* trace)
      : RpcCaller(identity.name, network, std::move(host)),
        identity_(std::move(identity)),
        oracle_(oracle),
        trace_(trace) {}

  // Connects, and says hello if it does that at all.
  void Open(bool steady);
  // By acquire, or by acquire_all.
  void Acquire(const Wanted& wanted);
  // Calls a second, of a flow or of the keys of lanes, where a lane may come twice. `misfit`: the
  // rule wants the other.
  void Request(int64_t flow, int64_t count, bool prioritized, bool misfit);
  void RequestValues(const std::vector<int64_t>& lanes, int64_t count, bool misfit);
  void Release(uint64_t token);
  void Keep(uint64_t token);
  void Cancel(uint64_t request_id);
  void Ping();
  void ListFlows();
  void ListWaiters();

  bool named() const { return !identity_.client_id.empty(); }
  // The session, as OwnerText names it.
  std::string owner() const;

  // Granted, and neither released nor known to be gone. Of a session that nobody can come back to
  // they are forgotten with the connection.
  const std::vector<Held>& held() const { return held_; }
  // Acquires with a request id that were not answered: on a connection that broke, or still open.
  const std::map<uint64_t, Wanted>& unsettled() const { return unsettled_; }
  // Tokens that are over, for those who release twice.
  const std::vector<uint64_t>& past() const { return past_; }
  uint64_t granted() const { return granted_; }

 private:
  void Left() override;
  void Lost(const wire::LostNotice& notice) override;
  void Misunderstood(const std::string& what) override;
  void AcquireOne(const Wanted& wanted);
  void AcquireAll(const Wanted& wanted);
  struct AskedAll {
    std::vector<OpId> ops{};       // Of Wanted::all.
    std::vector<CallsId> calls{};  // Of Wanted::rates.
  };
  void AllAnswered(const Wanted& wanted, const AskedAll& asked, LinkId at,
                   const wire::AcquireAllReply& reply);
  void RatesGranted(const Wanted& wanted, const AskedAll& asked,
                    const wire::AcquireAllReply& reply);
  void RatesRefused(const Wanted& wanted, const AskedAll& asked,
                    const wire::AcquireAllReply& reply);
  void Granted(const Wanted& wanted, const wire::AcquireReply& reply);
  void Hold(const Wanted& wanted, uint64_t token);
  void Forget(uint64_t token);
  Answer AfterCalls(CallsId calls);
  void Say(std::string_view what) { trace_->Add(name(), ": ", what); }

  ClientIdentity identity_;
  Oracle* const oracle_;
  Trace* const trace_;
  std::vector<Held> held_;
  std::map<uint64_t, Wanted> unsettled_;
  std::vector<uint64_t> past_;
  uint64_t granted_ = 0;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_CLIENT_H_
