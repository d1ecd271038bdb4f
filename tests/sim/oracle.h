// Oracle: judges from outside whether a server kept its promises.
//
// It hears what clients asked and were told, when connections broke, and what the ledger holds. Of
// the server it knows nothing. It shares no code with it, but has ordered maps and linear scans.
// What was asked and not answered may have been done or not. A violation begins with its invariant:
//
//   I1 a token acknowledged, not released and not past its deadline is in the ledger, and is its
//      holder's
//   I2 a token that was released, or seen gone, is gone for ever; nothing is granted to a request
//      id whose cancel was answered, while that is remembered
//   I3 no token is in the ledger that nobody asked for, none twice for one request id, and none
//      differs from what was acknowledged; of an acquire_all all tokens are there, or none
//   I4 the counts of the ledger's tokens are what the server reports, and the nowCalls and level of
//      an answer are some that the flow may have had
//   I5 no grant beyond the level, the client's cap, a drain or the end of a rule
//   I6 fences grow in the order of acknowledgement, ids and fences never repeat
//   I7 (a part of it) a token ends, and an acquire is answered, when its time is over
//   S1 who is refused was in the way of a limit, and it may have been the one that is named
//   S2 who waits is not overtaken by who came later and may not
//   S3 the history tells of every token that was taken back
//   S4, S5 are about calls a second: see calls_judge.h
//   S6 a grant tells the hold that was asked for, a keep that of the rule, as the rule bounds them.
//   S7 a token that is told lost was taken back, for the reason told; its session is told, once.
//   S8 a listing of waiters shows acquires that wait, in the order in which they are granted.
//   S9 nothing is answered that was asked when the lease of a server's claim was over
//
// Of a cluster several servers may serve. The last one that was ready leads. What is asked of
// another is asked in vain: what it refuses may be out of date, and nothing else is acknowledged.
//
// Batches that a machine loses take what was answered since the last sync, and nothing else; I6
// holds all the same.
//
// Thread: one at a time. Milliseconds are those of the timeline. Where only the order of two events
// counts, events are numbered: what has the lower number came first.
#ifndef NOWCALLS_SIM_ORACLE_H_
#define NOWCALLS_SIM_ORACLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nowcalls/flow_kind.h"
#include "sim/calls_judge.h"
#include "sim/clock_gap.h"
#include "sim/hindrances.h"
#include "sim/level_history.h"
#include "sim/network.h"
#include "sim/owners.h"
#include "sim/timeline.h"

namespace nowcalls::sim {

using OpId = uint64_t;

// What of a rule stays as it is for a whole run.
struct FlowFacts {
  int64_t hold_ms = 0;
  int64_t max_hold_ms = 0;  // Of a token with all its keeps; 0: no bound.
  int64_t client_offline_ms = 0;
  int64_t client_cap = 0;  // 0: none.
  bool shadow = false;
};

// The server's own limits, as far as they are reasons to refuse.
struct ServerLimits {
  uint64_t tokens_max = UINT64_MAX;
  uint64_t waiters_max = UINT64_MAX;  // The least of those on waiters.
  uint64_t cancels_max = UINT64_MAX;  // That are remembered of a session.
  int64_t cancel_remembered_ms = 60'000;
};

// How long things may take when nothing hinders the server.
struct Promptness {
  int64_t sweep_ms = 5'000;     // From a token's end to its absence from the ledger,
  int64_t sweep_each_ms = 100;  // and for each that a sweep may walk over before.
  int64_t network_ms = 1'000;   // From a client to the server and back, with all stalls.
  int64_t save_ms = 1'000;      // From a call in a window of the ledger until it is there.
  double mass_factor = 1;       // Of clientOfflineTime, when many are gone.
};

inline constexpr LinkId kNoLink = UINT32_MAX;

// How an acquire is asked, besides what for.
struct AcquireTerms {
  LinkId link = kNoLink;  // Judged as prompt, and by the order on it, if it is given.
  bool prioritized = false;
  int64_t wait_ms = 0;  // The longest that it may wait.
  int64_t hold_ms = 0;  // The hold that it asks for; 0: that of the rule.
};

// What of an administrator ends many tokens.
enum class TakeBack : uint8_t { kReclaim, kPurge };

// What a client has been told of a token that was taken back.
struct LostNotice {
  uint64_t token = 0;
  int64_t flow = 0;
  std::string reason;
};

// A listing of waiters: when it was asked for.
struct WaitersLook {
  uint64_t asked = 0;
  uint64_t life = 0;
};
// One row of it.
struct SeenWaiter {
  std::string owner;  // Or AllInstances (owners.h).
  int64_t flow = 0;
  int64_t count = 0;
  bool prioritized = false;
  int64_t place = 0;
};

// Whose tokens a request may end or keep.
enum class Reach : uint8_t {
  kSession,   // Of its session, or, if that is empty, all.
  kSentinel,  // Of all sessions in the namespace of its session that speak Sentinel's frames.
};

// What an answer tells of its flow.
struct Figures {
  int64_t now_calls = 0;
  int64_t level = 0;
};

// What a refusal is judged by. A request that is told of the other kind of rule of its flow id has
// found none of its own kind.
inline std::string RefusalWord(TokenStatus status, RefusedBy refused_by) {
  const bool is_of_other_kind =
      status == TokenStatus::kBadRequest && refused_by == RefusedBy::kParam;
  return std::string(refused_by == RefusedBy::kNone || is_of_other_kind
                         ? TokenStatusName(status)
                         : RefusedByName(refused_by));
}

struct Refusal {
  std::string word;  // `refused_by`, or the name of the status if there is none.
  Figures figures;
};

// A token as the ledger has it, or as an answer tells of it.
struct SeenToken {
  uint64_t id = 0;
  uint64_t fence = 0;
  std::string owner;  // NAMESPACE/CLIENT of its session.
  int64_t flow = 0;
  int64_t count = 0;
  uint64_t request_id = 0;
};

// Of an acquire_all.
struct Item {
  int64_t flow = 0;
  int64_t count = 1;
};

class Oracle {
 public:
  // `grace_ms`: what a restart spares its tokens and sessions at least; 0: nothing.
  Oracle(const Timeline* timeline, int64_t grace_ms, const ServerLimits& limits = {})
      : timeline_(timeline),
        grace_ms_(grace_ms),
        limits_(limits),
        calls_(timeline, &levels_, &hindrances_,
               [this](const std::string& what) { Violation(what); }) {}

  void AddFlow(int64_t flow, const FlowFacts& facts) { flows_[flow] = facts; }
  LevelHistory& levels() { return levels_; }
  CallsJudge& calls() { return calls_; }
  void SetPromptness(const Promptness& promptness) {
    promptness_ = promptness;
    calls_.SetSaveMs(promptness.save_ms);
  }
  // Numbers the event that happens now.
  uint64_t Tick() { return ++order_; }
  // What is asked next is asked on this connection.
  Oracle& On(LinkId link) {
    in_vain_ = settled_.contains(link);
    return *this;
  }

  // --- Connections and sessions. ---
  // The session shown so is of a connection that speaks Sentinel's frames.
  void SpeaksFrames(const std::string& owner) { frame_owners_.insert(owner); }
  // The session of `owner` is asked for on this connection: it may be online from now on.
  void SessionAsked(LinkId link, const std::string& owner);
  // The server has answered for it: it was online by then.
  void SessionSeen(LinkId link, const std::string& owner);
  // The server has said how many sessions are online, asked at the event `asked`.
  void OnlineTold(LinkId link, const std::string& name_space, int64_t sessions, uint64_t asked);
  // From now on the server may find the connection gone.
  void LinkBroken(LinkId link);
  // The server knows, or leads no more; nothing that was sent on it is carried out any more.
  void LinkSettled(LinkId link);
  // The server cannot do what is due until then.
  void ServerHindered(int64_t until_ms);
  // The boot clock was set back: the server's clock stands still for so long.
  void ClockSetBack(int64_t by_ms, int64_t stands_ms);

  // --- What clients ask. An operation that is never answered stays open. ---
  OpId AcquireAsked(const std::string& owner, int64_t flow, int64_t count, uint64_t request_id,
                    const AcquireTerms& terms = {});
  // An acquire_all: the operation of each item, which is an acquire of its flow and count. They are
  // answered one by one, all in the same way. Flows must differ.
  std::vector<OpId> AcquireAllAsked(const std::string& owner, const std::vector<Item>& items,
                                    uint64_t request_id, const AcquireTerms& terms);
  // Nothing is judged of figures, or of a refusal, that are not given. A time to hold that the
  // answer does not tell is that of the rule.
  void AcquireGranted(OpId op_id, LinkId link, uint64_t token_id, uint64_t fence,
                      std::optional<int64_t> told_hold_ms,
                      const std::optional<Figures>& figures = {});
  void AcquireRefused(OpId op_id, const std::optional<Refusal>& refusal = {});
  // By its owner, by a stranger, or, with an empty `owner`, by an administrator.
  OpId ReleaseAsked(const std::string& owner, uint64_t token_id, Reach reach = Reach::kSession);
  void ReleaseAnswered(OpId op_id, bool released);
  OpId KeepAsked(const std::string& owner, uint64_t token_id, LinkId link = kNoLink,
                 Reach reach = Reach::kSession);
  void KeepAnswered(OpId op_id, bool kept, std::optional<int64_t> told_hold_ms);
  OpId CancelAsked(const std::string& owner, uint64_t request_id, LinkId link = kNoLink);
  void CancelAnswered(OpId op_id, bool ended);
  // Of all tokens of a flow, or of an owner or AllInstances (owners.h); the other is 0 or empty.
  // `kind`: of the flow's rules; none: both.
  OpId ReclaimAllAsked(int64_t flow, const std::string& owner, TakeBack by = TakeBack::kReclaim,
                       std::optional<FlowKind> kind = {});
  void ReclaimAllAnswered(OpId op_id, bool carried_out, bool more);
  CallsId CallsAsked(sim::CallsAsked asked);
  // False: in vain, and its answer does not count.
  bool LevelsAsked(const std::map<int64_t, LevelHistory::Change>& changes);
  bool IsInVain(OpId op) const { return operations_.at(op).life == kNoLife; }

  // --- Tokens that are told lost. ---
  // The session is told of its losses on this connection, for which SessionSeen came before.
  // `prompt`: how soon is judged, too.
  void ListenerSeen(LinkId link, const std::string& owner, bool prompt);
  void LostTold(LinkId link, const LostNotice& notice);

  // --- Listings of waiters. ---
  WaitersLook WaitersAsked() { return {Tick(), AskedLife()}; }
  // All that wait, by lane and place.
  void WaitersTold(const WaitersLook& look, const std::vector<SeenWaiter>& waiters);

  // --- The ledger and the server. ---
  // `history`: the tokens that it tells of, if it is long enough to tell of all.
  void Audit(const std::vector<SeenToken>& ledger, const std::set<uint64_t>* history = nullptr);
  void LedgerSynced();
  // Some of what was answered since then is not in the ledger any more; ServerDied follows.
  void BatchesLost();
  // `orderly`: it ended by itself, when it was asked to.
  void ServerDied(const std::vector<SeenToken>& ledger, bool orderly = false);
  // The same in two steps, where the ledger may still get what was under way.
  void ServerStopped(const std::vector<SeenToken>& ledger, bool orderly);
  void LedgerLeft(const std::vector<SeenToken>& ledger);
  // `reported`: nowCalls by flow; those that are 0 are left out.
  void ServerReady(ClockGap gap, const std::vector<SeenToken>& ledger,
                   const std::map<int64_t, int64_t>& reported);

  void Violation(const std::string& what);
  // From now on Violation counts no more, but this does.
  void Rest() { rests_ = true; }
  void Accuse(const std::string& what);
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  enum class Kind : uint8_t { kAcquire, kRelease, kKeep, kCancel, kReclaimAll };

  struct Operation {
    Kind kind = Kind::kAcquire;
    std::string owner;
    Reach reach = Reach::kSession;
    int64_t flow = 0;
    int64_t count = 0;
    uint64_t request_id = 0;
    OpId group = 0;  // The first of its acquire_all; 0: it is no part of one.
    size_t group_size = 1;
    AcquireTerms terms;
    LinkId link = kNoLink;
    uint64_t sure = kOpen;  // Since this event it has surely arrived.
    uint64_t fence = 0;     // Of what it was granted; 0: nothing that is surely its own.
    uint64_t token = 0;
    uint64_t asked = 0;          // Number of the event,
    int64_t asked_ms = 0;        // and its time.
    uint64_t answered = kOpen;   // Until then it may be carried out.
    uint64_t life = 0;           // Of the server, in which it was asked.
    bool may_end_tokens = true;  // Not those that were surely not carried out.
    TakeBack by = TakeBack::kReclaim;
    std::optional<FlowKind> of_kind{};  // Of kReclaimAll: of the flow's rules; none: both.
    std::vector<OpId> behind;           // Waiters that a listing has shown before it.
  };

  struct Token {
    SeenToken seen;
    uint64_t asked = 0;          // It was granted after this event,
    uint64_t answered = kOpen;   // and before this one.
    int64_t deadline_ms = 0;     // Not timed out before,
    int64_t offline_ms = 0;      // nor reclaimed with its session before,
    std::set<OpId> enders;       // unless by one of these.
    int64_t touched_ms = 0;      // Neither granted nor kept later than then,
    std::set<OpId> keeps;        // unless by one of these.
    int64_t kept_ms = 0;         // What keeps alone have put its deadline off to.
    uint64_t gone = 0;           // Since this event it is known to be gone; 0: it is not.
    bool released = false;       // A release, or a reclaim, was answered RELEASE_OK.
    bool by_holder = false;      // It was a release.
    int64_t issued_from_ms = 0;  // It was granted between these.
    int64_t issued_to_ms = 0;
    int64_t hold_ms = 0;     // How long its last hold is at most.
    uint64_t seen_live = 0;  // It was there at some moment after this event.
    bool told_lost = false;
  };

  // A connection that wants to be told of losses.
  struct Listener {
    std::string owner;
    uint64_t life = 0;
    uint64_t since = 0;  // It was heard by this event.
    bool awaits = true;  // It stands, and whether it is told soon is judged.
    std::set<uint64_t> told;
    std::map<uint64_t, int64_t> awaited;  // Tokens, by when they were found to be gone.
  };

  struct Owner {
    std::set<LinkId> links;  // On which the server has answered for it, and not broken.
    int64_t offline_since_ms = 0;
    bool since_restart = false;
    std::vector<std::pair<int64_t, int64_t>> absences;  // That are over: from when until when.
    // It may have been back since, on a connection that broke then without an answer.
    std::optional<int64_t> left_again_ms;
    std::set<LinkId> unsettled;  // It may be online on these.
    int64_t settled_ms = 0;      // When one of them last ceased to be.
  };

  struct Held {
    int64_t calls = 0;
    uint64_t tokens = 0;
  };

  // What acquires of one kind ask for: any of them may have got a token of it.
  using Wish = std::tuple<std::string, int64_t, int64_t, uint64_t>;
  static Wish WishOf(const SeenToken& seen);
  static bool IsSame(const SeenToken& one, const SeenToken& other);

  static constexpr uint64_t kOpen = UINT64_MAX;
  static constexpr int64_t kNeverMs = INT64_MAX;
  static constexpr uint64_t kNoLife = UINT64_MAX;  // Of what is asked in vain.

  uint64_t AskedLife() const { return in_vain_ ? kNoLife : life_; }
  void AcknowledgedInVain(OpId op_id, const std::string& what);
  void GrantedInVain(OpId op_id, const SeenToken& seen);
  Operation& Ask(Kind kind, const std::string& owner);
  bool IsLive(const Token& token, OpId but_for = 0) const;
  bool IsUndone(const Operation& op) const;
  bool IsTakenBack(const Token& token) const;
  // Whether the kReclaimAll takes back tokens of the lane.
  static bool IsOfReclaim(const Operation& op, int64_t lane);
  bool MayHaveAsked(OpId op) const;
  int64_t OfflineDueMs(const std::string& owner, int64_t flow);
  // For long enough, in an absence that was over after that moment.
  bool WasAbsent(const std::string& owner, int64_t flow, int64_t after_ms);
  void ForgetUnanswered();
  void SetGone(Token* token);
  Token* Find(uint64_t id);
  bool IsOwners(const Operation& op, const Token& token) const;
  OpId FirstAsked(const Wish& wish, OpId first) const;
  void CloseAcquire(const Wish& wish, OpId op);
  void AddEnders(Token* token);
  Token* AddToken(const SeenToken& seen, OpId first);
  int64_t HoldOf(int64_t flow, int64_t wanted_ms) const;
  // The moment at which its longest hold may be over, and that at which it is.
  int64_t HoldMayEndMs(const Token& token) const;
  int64_t HoldEndsMs(const Token& token) const;
  bool IsHeld(const Token& token) const;
  void CheckToldHold(const Operation& acquire, int64_t told_ms);
  void CheckKeptHold(const Operation& keep, const Token& token, int64_t told_ms);
  void NoteTimes(const Operation& acquire, std::optional<int64_t> told_ms, Token* token);
  void NoteLostBefore(Token* token);
  void AwaitNotices(const Token& token);
  void CheckNotices();
  void LostToldLate(const Listener& listener, const LostNotice& notice);
  void LostToldOfUnknown(const Listener& listener, const LostNotice& notice);
  bool MayBeTakenBack(const Token& token, const std::string& reason) const;
  std::vector<OpId> WaitersLike(const SeenWaiter& waiter, uint64_t since) const;
  void CheckListedOrder(OpId granted_id);
  void CheckLateGrant(const Operation& acquire, LinkId link, int64_t hold_ms, Token* token);
  void CheckRequestId(const Token& token);
  bool MayBeOfOneGroup(const SeenToken& one, const SeenToken& other) const;
  void CheckWhole(const SeenToken& seen, const std::vector<SeenToken>& ledger);
  bool MayHaveEnded(const Operation& item);
  void CheckLevel(int64_t flow);
  void CheckCap(const Token& token);
  Held MostHeld(int64_t flow, const std::string& owner, uint64_t from) const;
  int64_t LeastHeld(int64_t flow, uint64_t from, uint64_t but_for) const;
  uint64_t Waiters(const Operation& acquire, bool of_flow) const;
  bool WasCancelled(const Operation& acquire) const;
  bool SharesRequestId(const Operation& acquire) const;
  bool HadNoRoom(const Operation& acquire) const;
  bool WasAtCap(const Operation& acquire) const;
  bool IsOverCap(const Operation& acquire) const;
  void CheckFigures(const Operation& acquire, const Figures& figures, uint64_t granted);
  void CheckRefusal(const Operation& acquire, const Refusal& refusal);
  bool HasReason(const Operation& acquire, const Refusal& refusal) const;
  void NoteArrivals(OpId answered);
  void CheckOrder(OpId granted_id, const Token& token);
  bool Overtakes(const Operation& later, const Operation& waiter) const;
  bool Remembers(const Operation& cancel) const;
  std::vector<OpId> OfRequest(Kind kind, const std::string& owner, uint64_t request_id) const;
  void CheckCancelled(const SeenToken& seen);
  void CheckCancelledBefore(const Operation& acquire, const SeenToken& seen);
  int64_t EndDueMs(const Token& token) const;
  int64_t SetBackMs(int64_t since_ms) const;
  int64_t UnhinderedMs(int64_t due_ms, int64_t since_ms) const;
  void CheckLateEnds();
  void NotePresent();
  int64_t SweepMs(int64_t due_ms) const;
  void CheckLateAnswer(const Operation& acquire);
  void Adopt(const SeenToken& seen);
  void CheckLedgerLevels(const std::vector<SeenToken>& ledger);

  const Timeline* const timeline_;
  const int64_t grace_ms_;
  const ServerLimits limits_;
  std::map<int64_t, FlowFacts> flows_;
  LevelHistory levels_;
  uint64_t order_ = 0;
  OpId last_op_ = 0;
  std::map<OpId, Operation> operations_;  // Also those that are answered.
  std::vector<OpId> ender_ops_;           // Those that may end tokens they do not name.
  std::set<std::string> frame_owners_;
  // The first operations of acquire_alls, by owner and request id.
  std::map<std::pair<std::string, uint64_t>, std::vector<OpId>> groups_;
  // Acquires and cancels, by owner and request id.
  std::map<std::pair<std::string, uint64_t>, std::vector<OpId>> requests_;
  std::map<Wish, std::set<OpId>> open_acquires_;
  std::map<int64_t, std::set<OpId>> open_of_flow_;  // Those of this life of the server.
  std::map<Wish, std::set<uint64_t>> adopted_;  // Tokens in the ledger that no answer told of yet.
  std::map<uint64_t, Token> tokens_;            // By id, also those that are gone.
  std::set<uint64_t> present_;                  // Those that are not.
  std::set<std::pair<uint64_t, uint64_t>> ends_;  // Events and the tokens that were gone with them.
  std::map<int64_t, size_t> were_present_;        // How many were, by time.
  std::map<uint64_t, uint64_t> fences_;           // Their tokens.
  std::map<uint64_t, uint64_t> acknowledged_;     // The highest fence, by event.
  std::map<std::string, Owner> owners_;
  std::map<LinkId, std::string> link_owners_;
  std::map<LinkId, uint64_t> link_lives_;  // In which the session was asked for.
  std::map<LinkId, int64_t> broken_ms_;
  std::map<LinkId, Listener> listeners_;
  std::map<uint64_t, uint64_t> lost_unseen_;  // Tokens told lost before anything else, by event.
  std::set<LinkId> settled_;
  bool in_vain_ = false;
  std::map<LinkId, std::set<OpId>> on_their_way_;  // Acquires that have not surely arrived.
  std::vector<OpId> granted_;                      // Acquires with fences of their own.
  Hindrances hindrances_;
  std::map<int64_t, int64_t> set_back_;  // See ClockSetBack, by when the clock goes on.
  CallsJudge calls_;
  Promptness promptness_;
  int64_t ready_ms_ = 0;
  std::set<uint64_t> taken_back_;  // Tokens that the history must tell of at the next look.
  uint64_t synced_ = 0;            // The event of the last sync, and the server's life then.
  uint64_t synced_life_ = 0;
  std::set<uint64_t> lost_lives_;  // Of which batches were lost.
  bool losing_ = false;            // What is shown next lacks some.

  uint64_t life_ = 0;
  std::map<uint64_t, int64_t> died_ms_;  // By life.
  bool runs_ = false;
  bool rests_ = false;
  std::vector<std::string> violations_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_ORACLE_H_
