// SimSentinel: a client of Sentinel's frames that takes tokens and asks for calls a second, and
// tells the oracle of all that it asks and hears.
//
// Thread: one at a time. It does what it is told and decides nothing; whoever tells it is
// sentinel_life.h or a scenario. It keeps its tokens when its connection breaks: the next
// connection of its namespace may release them.
#ifndef NOWCALLS_SIM_SIM_SENTINEL_H_
#define NOWCALLS_SIM_SIM_SENTINEL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tables/token_ids.h"
#include "sim/oracle.h"
#include "sim/sentinel_caller.h"
#include "sim/trace.h"

namespace nowcalls::sim {

struct SentinelIdentity {
  std::string name;  // In the trace.
  std::string name_space = "default";
  bool pings = true;        // Else it is in the namespace `default` with its first acquire.
  int64_t wait_ms_max = 0;  // How long its acquires may wait.
};

// Requests that a correct client does not send, and their answers.
enum class Rude : uint8_t {
  kUnknownType,     // FAIL.
  kCutData,         // BAD_REQUEST: the data of its type is cut off.
  kHeadOnly,        // BAD_REQUEST: only the xid.
  kEmpty,           // Nothing.
  kOversized,       // BAD_REQUEST, as soon as its head is there.
  kOtherNamespace,  // FAIL, once it has a session.
};
inline constexpr int kRudeCount = 6;

class SimSentinel : public SentinelCaller {
 public:
  // `ids`: what tells the fence of a token, which no answer does.
  SimSentinel(SentinelIdentity identity, std::string host, const core::TokenIds* ids,
              Network* network, Oracle* oracle, Trace* trace)
      : SentinelCaller(identity.name, network, std::move(host)),
        identity_(std::move(identity)),
        ids_(ids),
        oracle_(oracle),
        trace_(trace) {}

  // Connects, and sends a PING if it does that at all.
  void Open(bool steady);
  void Ping();
  // `misfit`: the rule has a parameter, of which this type of request knows nothing.
  void Acquire(int64_t flow, int64_t count, bool prioritized, bool misfit = false);
  void Release(uint64_t token);
  void Keep(uint64_t token);
  // FLOW, or PARAM_FLOW of the keys of the lanes, where a lane may come twice.
  void Request(int64_t flow, int64_t count, bool prioritized, bool misfit);
  void RequestValues(const std::vector<int64_t>& lanes, int64_t count, bool misfit);
  void SendRude(Rude rude);

  // NAMESPACE/CLIENT of the session, as listings show it.
  std::string owner() const;
  // Tokens that were granted, and neither released nor known to be gone.
  const std::vector<uint64_t>& held() const { return held_; }
  // Tokens that are over, for those who release twice.
  const std::vector<uint64_t>& past() const { return past_; }
  uint64_t granted() const { return granted_; }

 private:
  void Left() override { Say("is disconnected"); }
  void Misunderstood(const std::string& what) override;
  void AskForSession();
  void AnswerCalls(CallsId calls, const wire::sentinel::Response& response);
  void Granted(OpId op, LinkId at, uint64_t token);
  void Forget(uint64_t token);
  void Expect(TokenStatus wanted, const wire::sentinel::Response* response);
  void Say(std::string_view what) { trace_->Add(name(), ": ", what); }

  const SentinelIdentity identity_;
  const core::TokenIds* const ids_;
  Oracle* const oracle_;
  Trace* const trace_;
  std::vector<uint64_t> held_;
  std::vector<uint64_t> past_;
  uint64_t granted_ = 0;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_SENTINEL_H_
