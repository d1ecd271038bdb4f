// SessionClient: a process with the client library, of which the session is real and the rest is
// simulated: socket, clock and program.
//
// Thread: one at a time. It does what it is told (session_life.h). The session is ticked whenever
// it wants to be, and its callers are told at once. A judge of its own hears everything.
#ifndef NOWCALLS_SIM_SESSION_CLIENT_H_
#define NOWCALLS_SIM_SESSION_CLIENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/session.h"
#include "sim/caller.h"
#include "sim/session_judge.h"
#include "sim/session_saboteur.h"
#include "sim/session_tap.h"
#include "sim/timeline.h"
#include "wire/splitter.h"

namespace nowcalls::sim {

struct SessionIdentity {
  std::string name;  // In the trace.
  std::string name_space = "default";
  std::string client_id{};
  bool exclusive = false;
  int64_t timeout_ms = 5'000;
  Fallback fallback = Fallback::kFail;
  std::map<FlowId, uint64_t> shares{};
};

class SessionClient : public Caller {
 public:
  struct Wish {
    std::vector<int64_t> lanes{};  // One, or several together.
    int64_t count = 1;
    std::optional<int64_t> wait_ms{};
    bool prioritized = false;
    int64_t hold_ms = 0;  // 0: as long as the rule allows.
    std::optional<int64_t> timeout_ms{};
    KeepMode keep = KeepMode::kByRule;
  };
  struct World {
    Timeline* timeline = nullptr;
    SessionTap::World tapped{};
    uint64_t cancels_max = 0;
    Sabotage sabotage = Sabotage::kNone;
  };

  SessionClient(SessionIdentity identity, std::string host, const World& world, uint64_t seed);

  // A process begins. REQUIRES: !runs().
  void Start();
  // It is killed.
  void Kill();
  // It ends in order: when what it has asked is settled.
  void Close();
  bool runs() const { return session_.has_value(); }
  bool closing() const { return closing_; }

  // REQUIRES: runs().
  void Acquire(const Wish& wish);
  void Request(int64_t flow, const std::vector<int64_t>& lanes, int64_t count, bool prioritized);
  void Release(size_t permit);
  void Keep(size_t permit);
  void Adopt(const Grant& grant);
  // From now on each permit is released when it comes.
  void ReleaseAll();

  const std::vector<client::HeldPtr>& permits() const { return permits_; }
  // The permits of the process before, when it was killed.
  const std::vector<Grant>& orphans() const { return orphans_; }
  std::string owner() const { return identity_.name_space + "/" + identity_.client_id; }
  uint64_t granted() const { return tap_.granted(); }
  SessionJudge& judge() { return judge_; }

  size_t unanswered() const override;

 private:
  void Connected() override {}
  void Received(std::string_view bytes) override;
  void Disconnected() override;
  void Misunderstood(const std::string& what) override;

  int64_t now_ms() const { return world_.timeline->now_ms(); }
  // Does all that is due, and comes again when something is.
  void Pump();
  void Dial();
  void Flush();
  void Tell();
  void WakeAt(int64_t at_ms);
  void HangupFor(const Status& reason);
  void AcquireTold(CallNumber number, const Wish& wish, const Answer& answer,
                   const std::vector<client::HeldPtr>& held);
  void ReleaseHeld(const client::HeldPtr& held);
  void Say(std::string_view what) { world_.tapped.trace->Add(name(), ": ", what); }

  const SessionIdentity identity_;
  const World world_;
  Prng prng_;
  SessionJudge judge_;
  SessionTap tap_;
  SessionSaboteur saboteur_;
  std::optional<client::ClientSession> session_;
  std::vector<client::HeldPtr> permits_;
  std::vector<Grant> orphans_;
  bool closing_ = false;
  bool releases_all_ = false;
  bool pumping_ = false;
  bool dialled_ = false;  // The connection stands, as far as the client knows.
  std::string why_down_ = "the connection broke";
  int64_t wakes_ms_ = INT64_MAX;
  std::string input_;  // Of the tap.
  wire::MessageSplitter splitter_{kReplyBytesMax};
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SESSION_CLIENT_H_
