// SessionJudge: judges whether a client session kept its promises to its callers.
//
// It hears from the callers' side (what was asked and told) and from the wire (what was sent and
// answered), and it sees the ledger. Of the session it knows nothing else. A violation begins with
// the number of its promise.
//
//   C1 each call is told once, and not later than its deadline.
//   C2 a grant is one that the server gave to this call; a local one comes only while the server is
//      out of reach or silent, and within the share.
//   C3 no token stands behind an acquire that was told anything but a grant, or behind a permit
//      that was released, when the cancel or release is answered.
//   C4 what has no answer is asked again once a connection is ready: acquires that are open,
//      releases, and cancels of acquires that were given up.
//   C5 a permit that the session keeps has a keep under way from a third of its hold on.
//   C6 a permit is lost when the server says so, and else only if its token has ended or by the
//      session's own clock.
//   C7 a session that has done all that is due sleeps (session_client.h).
//   C8 a token that the server takes for its time is lost by its holder's own clock before.
//
// Thread: one at a time. Milliseconds are those of the timeline.
#ifndef NOWCALLS_SIM_SESSION_JUDGE_H_
#define NOWCALLS_SIM_SESSION_JUDGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/call.h"
#include "nowcalls/client.h"
#include "sim/oracle.h"

namespace nowcalls::sim {

using CallNumber = uint64_t;

class SessionJudge {
 public:
  // `cancels_max`: those that the server remembers of a session. Violations go to `oracle`.
  SessionJudge(std::string name, std::string owner, uint64_t cancels_max, const Timeline* timeline,
               Oracle* oracle)
      : name_(std::move(name)),
        owner_(std::move(owner)),
        cancels_max_(cancels_max),
        timeline_(timeline),
        oracle_(oracle) {}

  // A process begins, and knows nothing of the one before.
  void Begin(Fallback fallback, std::map<FlowId, uint64_t> shares);

  // --- Callers. ---
  CallNumber Asked(int64_t deadline_ms);
  CallNumber AcquireAsked(int64_t deadline_ms, uint64_t request_id);
  void Told(CallNumber number);
  void AcquireTold(CallNumber number, const Answer& answer,
                   const std::vector<client::HeldPtr>& held, KeepMode keep);
  void Adopted(const client::HeldPtr& held, KeepMode keep);
  // Of a permit that is not local: its release is told as done, or will be.
  void ReleaseAsked(const client::HeldPtr& held);
  void LocalReleased(const Grant& grant, int64_t lane) { local_[lane] -= grant.count; }

  // --- The wire. ---
  void Ready();
  void Down();
  void AcquireSent(uint64_t request_id);
  // `tokens`: of a grant.
  void AcquireAnswered(uint64_t request_id, const std::vector<uint64_t>& tokens);
  void CancelSent(uint64_t request_id);
  void CancelAnswered(uint64_t request_id);
  void ReleaseSent(uint64_t token);
  void ReleaseAnswered(uint64_t token);
  void KeepSent(uint64_t token);
  // `hold_ms`: none: the token has ended.
  void KeepAnswered(uint64_t token, std::optional<int64_t> hold_ms);
  void KeepFailed(uint64_t token);
  // That the token has ended, by a writer whose lease ended early: it knows no token of the next.
  void ToldInVain(uint64_t token);
  void LostNoticed(uint64_t token, std::string_view reason);

  // --- What stands. ---
  // Whenever the session has done all that was due.
  void Check(bool closed);
  void Audit(const std::vector<SeenToken>& ledger);
  // Of what was answered, anything may be undone.
  void BatchesLost();

 private:
  struct Open {
    int64_t deadline_ms = 0;
    uint64_t request_id = 0;  // Of an acquire.
  };
  // What a request id stands for.
  struct Stand {
    bool told = false;
    bool by_server = false;  // It was told of a grant of the server.
    bool sent = false;
    bool in_flight = false;  // On this connection.
    bool settled = false;    // The last time that it was sent, it was answered.
    bool owes_cancel = false;
    bool cancel_in_flight = false;
    bool cancel_answered = false;
    uint64_t cancel = 0;  // The number of its last cancel.
    std::set<uint64_t> granted{};
    bool forgiven = false;
  };
  struct Permit {
    client::HeldPtr held{};
    uint64_t request_id = 0;  // 0: not known.
    KeepMode keep = KeepMode::kOff;
    int64_t touched_ms = 0;  // It was asked for, or its keep.
    int64_t hold_ms = 0;
    std::set<int64_t> keeps{};  // Under way: when they were sent.
    bool noticed = false;       // The server has said that it ended.
    bool releasing = false;
    bool release_in_flight = false;
    bool release_answered = false;
    bool forgiven = false;
  };

  // Whether the server may have forgotten the cancel for newer ones.
  bool IsForgotten(const Stand& stand) const {
    return cancels_ - stand.cancel + stray_cancels_ >= cancels_max_;
  }
  static bool IsLost(const Permit& permit) { return permit.held->lost.load(); }
  void CheckLocal(const Open& open, const Stand& stand, const std::vector<client::HeldPtr>& held);
  // False: there is nothing more to check.
  bool CheckStand(uint64_t request_id);
  bool CheckPermit(const Permit& permit, bool closed);
  void AuditToken(const SeenToken& seen);
  void Violation(const std::string& what) { oracle_->Violation(what + " (" + name_ + ")"); }

  const std::string name_;
  const std::string owner_;
  const uint64_t cancels_max_;
  const Timeline* const timeline_;
  Oracle* const oracle_;
  Fallback fallback_ = Fallback::kFail;
  std::map<FlowId, uint64_t> shares_;

  CallNumber last_call_ = 0;
  std::map<CallNumber, Open> open_;
  std::map<uint64_t, Stand> stands_;     // By request id.
  std::map<uint64_t, Permit> permits_;   // By token, also those that are over.
  std::set<uint64_t> stirring_;          // Request ids that may still be asked for,
  std::set<uint64_t> held_;              // and tokens of permits that may be kept or released.
  std::map<int64_t, int64_t> local_;     // Local calls in progress, by lane.
  std::map<uint64_t, int64_t> sent_ms_;  // Acquires that have no answer, by request id.
  uint64_t cancels_ = 0;
  uint64_t stray_cancels_ = 0;       // Left on broken connections: they may come at any time.
  std::optional<int64_t> ready_ms_;  // Since then a connection is ready.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SESSION_JUDGE_H_
