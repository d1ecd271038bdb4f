// Core: decides everything, does no I/O. Rules, tokens, sessions and sweep decisions.
//
// Thread: loop. A pure state machine: time comes in with each call (Turn), what must become durable
// goes out as records of the open commit batch. No clock, no I/O, no threads, no globals; the same
// calls give the same records and answers, byte for byte, and nothing depends on hash-map order.
//
// Invariants kept here (src/README.md): 2 nowCalls is the sum of count over live tokens; 3 no
// grant when nowCalls + count > level; 5 a token ends once, with a reason; 6 fences grow, ids never
// repeat.
#ifndef NOWCALLS_CORE_CORE_H_
#define NOWCALLS_CORE_CORE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/deadline_counter.h"
#include "core/fence_order.h"
#include "core/flow_table.h"
#include "core/history.h"
#include "core/mass_expiry_guard.h"
#include "core/request_ids.h"
#include "core/rule_json.h"
#include "core/session_table.h"
#include "core/token_ids.h"
#include "core/token_table.h"
#include "core/wait_queues.h"
#include "ledger/codec.h"
#include "ledger/commit_batch.h"
#include "ledger/entities.h"
#include "ledger/fence_line.h"
#include "ledger/scan.h"
#include "nowcalls/expire_strategy.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

struct CoreOptions {
  Limits limits;
  // Keys the permutation from fences to token ids; the ledger's format record holds it.
  std::array<uint64_t, 2> token_id_key{};
  // How long the sessions and tokens of before a restart are spared, at least. Longer than a
  // Sentinel client's reconnect delay (2 s), with room for a supervisor's restart.
  int64_t restart_grace_ms = 10'000;
  // Sessions that go offline in a mass, and how many times clientOfflineTime they are waited for.
  MassExpiryOptions mass_expiry;
  double mass_expiry_factor = 5;
  // Null: DefaultExpireStrategy with these.
  std::shared_ptr<ExpireStrategy> expire_strategy;
  // A token may be held for resourceTimeout times this without a keep: 2 .. 3.
  double resource_timeout_factor = 2.0;
  // Sentinel's executeRate, executeCount and executeDuration of the expiry task.
  int64_t sweep_interval_ms = 100;
  uint32_t sweep_keys_max = 1000;
  int64_t sweep_budget_us = 20'000;
  // Waiters that one call lets go, or looks at in vain, when it has made room for more; the others
  // follow at OnTime.
  uint32_t grants_per_call_max = 1000;
};

// The moment of a call and where its records go.
struct Turn {
  Instant now;
  ledger::CommitBatch* batch = nullptr;
  // When the batch has records of so many tokens that were due (CommitBatch::due), OnTime and
  // OnScanDone leave the others to later turns.
  uint32_t due_max = UINT32_MAX;

  bool has_room_for_due() const { return batch->due() < due_max; }
};

struct AcquireRequest {
  FlowId flow;
  int64_t count = 1;
  bool prioritized = false;
  // For room, at most; 0: not at all. Unset: as long as the rule says.
  std::optional<int64_t> wait_ms{};
  uint64_t request_id = 0;  // Of the session; 0: none.
};

struct AcquireAnswer {
  TokenStatus status = TokenStatus::kFail;
  RefusedBy refused_by = RefusedBy::kNone;
  TokenId token_id{};
  Fence fence{};
  int64_t now_calls = 0;
  int64_t level = 0;
  int64_t hold_ms = 0;
};

// The answer to an acquire that waited.
struct LateAnswer {
  WaitTicket ticket;
  AcquireAnswer answer;
};

// Who asks for an administrator's action, and why.
struct AdminAct {
  std::string_view by;      // HOST:PORT of the connection, for the log.
  std::string_view reason;  // For the log and the history; at most kReasonBytesMax.
};

// One piece of a reclaim.
struct ReclaimAnswer {
  uint32_t reclaimed = 0;
  bool more = false;  // Tokens are left.
};

struct DrainAnswer {
  TokenStatus status = TokenStatus::kNoRuleExists;  // Or kOk.
  int64_t now_calls = 0;
  uint32_t tokens = 0;
};

struct KeepAnswer {
  TokenStatus status = TokenStatus::kFail;
  int64_t hold_ms = 0;
};

struct HelloAnswer {
  SessionSlot session = kNoSession;
  SessionId session_id;
  uint32_t sessions_online = 0;
  uint64_t resumed_tokens = 0;
};

// One page of a token listing, oldest first.
struct TokenFilter {
  std::optional<FlowId> flow;
  std::optional<std::string> client_id;
  int64_t min_age_ms = 0;
};
struct TokenPage {
  std::vector<TokenSlot> tokens;  // Valid until the next call that changes the core.
  uint64_t next_cursor = 0;       // 0: nothing is left.
};

// The rules that a namespace is to have.
struct RuleSet {
  std::string name_space;
  ParsedRules parsed;
  std::string source = std::string(kRpcRuleSource);  // nowcalls/rule_source.h
};
using RuleSetRefs = std::vector<const RuleSet*>;

// Something an operator wants to read in the log.
struct Notice {
  bool warning = false;
  std::string text;  // Begins with what it is about, as engine::Driver::Log demands.
};

class Core {
 public:
  explicit Core(const CoreOptions& options);

  // --- Recovery, before anything else: namespaces and rules, sessions, history, tokens, then
  // FinishLoad and Begin. ---
  Status LoadNamespace(const ledger::NamespaceEntry& entry);
  Status LoadRule(const ledger::RuleEntry& entry);
  Status LoadSession(const ledger::Session& session);
  Status LoadHistory(ledger::HistoryBlock block);  // By ascending sequence.
  // A hint, before the first token, of how many there are.
  void ExpectTokens(uint64_t tokens);
  Status LoadToken(const ledger::Token& token);
  // The ledger is of an earlier format: the first batch sets this one.
  void SetFormat(const ledger::Format& format) { format_to_set_ = format; }
  // kCorruption when the live tokens are not those the seal was written over. A new ledger has no
  // seal.
  Status FinishLoad(const std::optional<ledger::Seal>& seal);
  // Those below may have been given out, though nothing that was loaded tells of them
  // (ledger/fence_line.h): neither they nor their ids are again. After FinishLoad.
  void SkipFences(uint64_t next) { next_fence_ = first_fence_ = std::max(next_fence_, next); }
  // The server is ready: restart grace counts from now. Last of all, since loading takes its time;
  // again when clients can connect, if that is later.
  void Begin(Instant now);

  // --- Sessions. ---
  // Opens or rejoins the session of (name_space, client_id); without a client id, one that ends
  // with its connection and is shown as `display_id`. REQUIRES: both names pass CheckNamespace
  // and CheckClientId (base/text.h). kResourceExhausted: sessions_max or namespaces_max is
  // reached.
  Result<HelloAnswer> Hello(const Turn& turn, std::string_view name_space,
                            const std::optional<std::string_view>& client_id,
                            std::string_view display_id);
  // One connection of the session is gone, and its waiters, which have this owner, with it.
  void Goodbye(const Turn& turn, SessionSlot slot, uint32_t owner);

  // --- Tokens. ---
  // Nothing when the acquire waits for room: then exactly one LateAnswer with its ticket follows,
  // unless DropWaiters comes first.
  std::optional<AcquireAnswer> Acquire(const Turn& turn, SessionSlot session,
                                       const AcquireRequest& request, WaitTicket ticket);
  // Ends what the request id of the session stands for, token or waiter: kReleaseOk. Whatever it
  // stood for, an acquire with it is refused for cancel_remembered_ms: kAlreadyRelease if
  // nothing.
  TokenStatus Cancel(const Turn& turn, SessionSlot session, uint64_t request_id);
  // Nobody listens any more to the answers with this owner.
  void DropWaiters(const Turn& turn, uint32_t owner);
  // All who wait are answered NOT_AVAILABLE, and from now on nobody waits: the server ends.
  void CloseQueues(const Turn& turn);
  // In the order in which they were decided. To be taken after each call that takes a Turn.
  std::vector<LateAnswer> TakeLateAnswers();
  bool has_late_answers() const { return !late_answers_.empty(); }
  // kReleaseOk, or kAlreadyRelease for a token that is unknown, ended or of another session.
  TokenStatus Release(const Turn& turn, SessionSlot session, TokenId token);
  KeepAnswer Keep(const Turn& turn, SessionSlot session, TokenId token);

  // --- Administrators. ---
  // Takes a token back. kReleaseOk or kAlreadyRelease.
  TokenStatus Reclaim(const Turn& turn, TokenId token, const AdminAct& act);
  // Take back up to `tokens_max` tokens, the oldest first. A client id that begins with '@' names
  // the sessions of connections. kNotFound for a flow without a rule and tokens; Purge is for
  // flows whose rule was removed, and kInvalidArgument for others.
  ReclaimAnswer ReclaimClient(const Turn& turn, std::string_view name_space,
                              std::string_view client_id, uint32_t tokens_max, const AdminAct& act);
  Result<ReclaimAnswer> ReclaimFlow(const Turn& turn, FlowId flow, uint32_t tokens_max,
                                    const AdminAct& act);
  Result<ReclaimAnswer> Purge(const Turn& turn, FlowId flow, uint32_t tokens_max,
                              const AdminAct& act);
  // Stops the grants of a rule, or lets them go on. It holds across restarts and changes of the
  // rule, and ends when the rule is removed. kOk, also when nothing changes; kNoRuleExists.
  // kResourceExhausted as for ReplaceRules while the disk is low.
  Result<DrainAnswer> Drain(const Turn& turn, FlowId flow, bool on, const AdminAct& act);

  // The ledger's disk is nearly full, or has room again. While it is nearly full nothing is
  // granted: kTooManyRequest, also to waiters whose turn comes, and rules that come by RPC and
  // drains may take rule_bytes_while_disk_low_max of it; all that ends or keeps tokens goes on.
  void SetDiskLow(bool low);

  // --- Rules. ---
  // Replaces the whole sets of some namespaces in one step, or changes nothing; a flowId may move
  // from one of them to another. The error names the namespace: kInvalidArgument for a name that is
  // none or a flowId in two sets, kAlreadyExists when a namespace that is not in `sets` owns a
  // flowId or another source owns a namespace, kResourceExhausted for a limit; a set without new
  // flow ids never for flows_max. A set that came by RPC and changes nothing is told by whoever
  // took it, not by TakeNotices.
  Status ReplaceRules(const Turn& turn, const std::vector<RuleSet>& sets);
  Status ReplaceRules(const Turn& turn, const RuleSetRefs& sets);
  // RuleSink::Claim.
  Status ClaimNamespace(const RuleClaim& claim);

  // --- Time. ---
  // Does what has become due, a bounded piece at a time. Call at NextDeadline or later.
  void OnTime(const Turn& turn);
  // `has_room`: whether the batch of the next OnTime takes more due tokens (Turn::due_max).
  Instant NextDeadline(bool has_room = true) const;

  // --- Sweep: at most one scan at a time. What it finds waits for room in a batch. ---
  std::optional<ledger::ScanRequest> BeginScan(Instant now);
  Status OnScanDone(const Turn& turn, const ledger::ScanResult& result);

  // When a batch is to be sealed though nothing has happened: what the machine's clocks say is
  // written each minute, so that the time that a reboot takes can be told from idle time.
  Instant NextMark() const;
  // Ends the batch: a clock mark at most once a second, but in any case when it may be the last one
  // of the process; the watermark, the seal.
  void Seal(const Turn& turn, const ClockSample& clock, bool may_be_last = false);

  // --- Views, for listings and info. ---
  const CoreOptions& options() const { return options_; }
  const FlowTable& flows() const { return flows_; }
  const SessionTable& sessions() const { return sessions_; }
  const TokenTable& tokens() const { return tokens_; }
  const History& history() const { return history_; }
  // For who prepares for a release of the token: see TokenTable::GuessRecent.
  TokenSlot GuessRecent(TokenId id) const {
    return tokens_.GuessRecent(ids_.ToFenceAhead(id).value);
  }
  TokenId IdOf(const TokenEntry& entry) const { return ids_.FromFence(Fence{entry.fence}); }
  int64_t LevelOf(const Flow& flow) const;
  // Goes on behind `cursor`, or begins with 0. Each page has a cursor of its own, good for one call
  // of the owner it was given to (a connection), so that no page is lost to a call that is repeated
  // or to somebody else. kNotFound for any other, and when it was forgotten: listings between two
  // pages are few (listings_max; listings_per_connection_max of an owner) and short-lived
  // (listing_idle_ms).
  Result<TokenPage> ListTokens(Instant now, uint32_t owner, const TokenFilter& filter,
                               uint32_t limit, uint64_t cursor);
  std::vector<Notice> TakeNotices();
  uint64_t next_fence() const { return next_fence_; }
  uint64_t batch_number() const { return batch_number_; }
  uint64_t live_count_sum() const { return live_count_sum_; }
  // How many sets of rules were put in force that changed something.
  uint64_t set_changes() const { return set_changes_; }
  // Of all flows, also of those that are gone.
  const FlowCounters& totals() const { return totals_; }
  size_t waiters() const { return waiters_.size(); }
  const WaitQueues& wait_queues() const { return waiters_; }
  // Request ids that are remembered as cancelled.
  size_t cancelled() const { return requests_.cancelled(); }
  // Since the server started: how often sessions went offline in a mass, and how many.
  uint64_t mass_expiries() const { return mass_expiries_; }
  uint64_t mass_sessions() const { return mass_sessions_; }
  const Waiter& waiter(WaiterSlot slot) const { return waiters_.at(slot); }
  int64_t oldest_issued_ms() const;

 private:
  struct Listing {
    uint64_t id = 0;  // Its cursor.
    uint32_t owner = 0;
    TokenFilter filter;
    TokenCursor cursor;
    int64_t used_ms = 0;
  };

  // At the end of its scope those who wait are given the room that was made in it, unless others
  // are before them. Each call that may make room begins with one.
  class Waking {
   public:
    Waking(Core* core, const Turn& turn) : core_(core), turn_(turn) {}
    ~Waking() { core_->GrantWaiters(turn_); }
    Waking(const Waking&) = delete;
    Waking& operator=(const Waking&) = delete;

   private:
    Core* const core_;
    const Turn& turn_;
  };

  // Admission.
  bool AnswerByRequestId(const Turn& turn, SessionSlot session, const AcquireRequest& request,
                         WaitTicket ticket, std::optional<AcquireAnswer>* answer);
  AcquireAnswer AnswerOfToken(const Turn& turn, const AcquireRequest& request, TokenSlot token);
  RefusedBy ServerLimit() const;
  RefusedBy LimitOf(const Flow& flow, SessionSlot session, int64_t count) const;
  int64_t CapOf(const Flow& flow) const;
  int64_t CapLeft(const Flow& flow, SessionSlot session) const;
  WaiterSlot FirstInLine(Flow* flow, size_t queue_class);
  bool WaitersAhead(Flow* flow, bool prioritized);
  void ReturnToLine(Flow* flow, SessionSlot session);
  int64_t WaitOf(const Flow& flow, const AcquireRequest& request) const;
  bool QueueIsFull(const Flow& flow, WaitTicket ticket) const;
  void Enqueue(const Turn& turn, SessionSlot session, FlowSlot slot, const AcquireRequest& request,
               int64_t wait_ms, WaitTicket ticket);
  AcquireAnswer Grant(const Turn& turn, SessionSlot session, FlowSlot slot, uint32_t count,
                      uint64_t request_id);
  AcquireAnswer Refuse(FlowSlot slot, TokenStatus status, RefusedBy limit);
  AcquireAnswer RefuseIfKnown(FlowSlot slot, TokenStatus status, RefusedBy limit);
  void AnswerLate(const Turn& turn, WaiterSlot slot, const AcquireAnswer& answer);
  void RemoveWaiter(WaiterSlot slot);
  void RemoveWaitersOf(uint32_t owner);
  void RefuseWaiters(const Turn& turn, FlowSlot flow, TokenStatus status, RefusedBy limit);
  void ExpireWaiters(const Turn& turn, uint32_t waiters_max);
  void TrackWaiting(const Flow& flow);
  void Wake(FlowSlot slot);
  void WakeNamespace(NamespaceSlot slot);
  void GrantWaiters(const Turn& turn);
  void GrantSomeWaiters(const Turn& turn);
  uint32_t GrantWaitersIn(const Turn& turn, NamespaceSlot slot, uint32_t cost_max);
  uint32_t GrantWaitersOf(const Turn& turn, FlowSlot slot, uint32_t cost_max);
  bool LevelHasChanged(const Flow& flow) const;
  void RestoreLine(Flow* flow);
  bool GrantWaiter(const Turn& turn, WaiterSlot slot);
  void TrackSessions(Flow* flow);

  // Tokens.
  TokenSlot IssueToken(const Turn& turn, SessionSlot session, FlowSlot flow, uint32_t count,
                       uint64_t request_id);
  // `note` is what the history keeps as the administrator's reason.
  void EndToken(const Turn& turn, TokenSlot slot, EndReason reason, std::string_view note = {});
  void MoveToken(const Turn& turn, TokenSlot slot, int64_t deadline_ms, int64_t hold_ms);
  TokenSlot FindOwned(SessionSlot session, TokenId token) const;
  bool IsLate(const TokenEntry& entry, Instant now) const;
  int64_t HoldOf(const TokenEntry& entry) const;
  ledger::TokenKey KeyOf(const TokenEntry& entry) const;
  ledger::Token LedgerToken(TokenSlot slot) const;
  Status CheckLoadedIds();
  Status IndexLoaded(const PopulatedVector<FenceAndSlot>& by_fence);
  void CountIn(const TokenEntry& entry);

  // History and administrators.
  Status CheckHistory(uint64_t next_fence) const;
  Status CheckEnded(const ledger::HistoryEntry& entry, uint64_t next_fence) const;
  void RecordEnd(const Turn& turn, const TokenEntry& entry, EndReason reason,
                 std::string_view note);
  ReclaimAnswer EndTokensOf(const Turn& turn, FlowSlot slot, uint32_t tokens_max, EndReason reason,
                            std::string_view note);
  void NoteAct(const AdminAct& act, const std::string& text);

  // Sessions.
  void SetOnline(SessionSlot slot);
  void SetOffline(SessionSlot slot, int64_t since_ms);
  void RetireIfUnused(const Turn& turn, SessionSlot slot);

  // Absence.
  void ArmOfflineCheck(SessionSlot slot);
  void DisarmOfflineCheck(SessionSlot slot);
  void BeginOfflineWalk(const Turn& turn, SessionSlot slot);
  uint32_t StepOfflineWalk(const Turn& turn, uint32_t tokens_max);
  bool WalkHasMore();
  TokenSlot NextDueInWalk();
  bool EndOrSpareOffline(const Turn& turn, TokenSlot slot);
  void EndOfflineWalk();
  int64_t OfflineDueMs(SessionSlot session, FlowSlot flow) const;
  int64_t NextCheckMs(const SessionState& session) const;
  void LowerOfflineTime(int64_t client_offline_time_ms);
  bool CanBeMass(const SessionState& session) const;
  int64_t JudgeDueMs(const SessionState& session) const;
  void JudgeMass(const Turn& turn, SessionSlot slot, int64_t window_ms);
  uint64_t HoldersOnline(int64_t now_ms, uint64_t sessions_max);

  // Rules.
  // `wanted`: the flow ids of all sets.
  Status CheckRuleLimits(const RuleSetRefs& sets, const absl::flat_hash_set<int64_t>& wanted) const;
  Status CheckFlowLimit(const RuleSetRefs& sets, const absl::flat_hash_set<int64_t>& wanted,
                        size_t rules) const;
  uint64_t RoomForRules(const RuleSetRefs& sets) const;
  Status CheckRoomForRules(uint64_t bytes) const;
  Status CheckFlowOwners(const RuleSetRefs& sets) const;
  size_t RemoveRulesNotIn(const Turn& turn, const RuleSet& set,
                          const absl::flat_hash_set<int64_t>& wanted);
  // Whether anything changed. A clientOfflineTime that became shorter, for tokens that are out,
  // lowers *lowered_ms to it.
  bool InstallRule(const Turn& turn, NamespaceSlot name_space, const Rule& rule,
                   int64_t* lowered_ms);
  void RemoveRule(const Turn& turn, FlowSlot slot);
  void RecordRule(const Turn& turn, const Flow& flow);
  void ForgetRule(const Turn& turn, const Flow& flow) const;
  void EraseFlow(const Turn& turn, FlowSlot slot);

  // Sources of rules.
  Status CheckSources(const RuleSetRefs& sets) const;
  Status CheckNamespacesHaveRules() const;
  std::string SourceOf(std::string_view name_space) const;
  bool RecordSource(const Turn& turn, const RuleSet& set, const std::string& before);

  // Sweep.
  static constexpr uint32_t kDuePerStep = 1000;  // What a call looks at of due tokens.
  size_t found_left() const { return sweep_.found.size() - sweep_.found_next; }
  void StepFound(const Turn& turn, uint32_t tokens_max);
  void NoteSweep();
  bool MayScan() const;
  void EndOrSpare(const Turn& turn, TokenSlot slot);
  ExpireDecision Decide(const Turn& turn, TokenSlot slot, ExpireCause cause);

  // Listings.
  Result<Listing*> FindListing(uint64_t id, uint32_t owner);
  Listing* OpenListing(uint32_t owner, const TokenFilter& filter);
  int64_t ListingsOf(uint32_t owner) const;
  void CloseOldestListing(const std::function<bool(uint32_t owner)>& among);
  void CloseListing(Listing* listing);
  bool Matches(const Listing& listing, const TokenEntry& entry) const;

  // For what costs a ledger record, a set of rules that changes at least, or happens once in a
  // while. The work of a turn bounds how many there are, and the server how many it logs.
  void Note(bool warning, std::string text);
  // For what may come by the thousand, or costs nothing.
  void NoteIfRoom(bool warning, std::string text);
  void NoteSet(const RuleSet& set, size_t changed, size_t removed);
  // Changes the flow's counters, and the totals likewise.
  template <typename Change>
  void Count(Flow* flow, Change change) {
    change(&flow->counters);
    change(&totals_);
  }

  const CoreOptions options_;
  const TokenIds ids_;
  WaitQueues waiters_;
  bool queues_closed_ = false;
  bool disk_low_ = false;
  uint64_t rule_bytes_while_low_ = 0;  // JSON of rules by RPC, and of drains, since it is.
  RequestIds requests_;
  // Whose waiters are to be looked at: those of a flow, or of all flows of a namespace that wait
  // for sessions.
  struct ToWake {
    FlowSlot flow = kNoFlow;
    NamespaceSlot name_space = kNoNamespace;
  };
  std::deque<ToWake> to_wake_;
  bool grants_behind_ = false;  // A call has left some of them to OnTime.
  std::vector<LateAnswer> late_answers_;
  FlowTable flows_;
  SessionTable sessions_;
  TokenTable tokens_;
  DeadlineCounter deadlines_;
  History history_;

  // Until FinishLoad: the tokens, those of them whose ids were not looked at yet, and the sessions
  // by id.
  std::unique_ptr<FenceOrder> loaded_ = std::make_unique<FenceOrder>();
  std::vector<std::pair<TokenId, TokenSlot>> loaded_ids_;
  absl::flat_hash_map<uint64_t, SessionSlot> loaded_sessions_;

  uint64_t next_fence_ = 1;
  uint64_t first_fence_ = 1;  // The least given out since the server started.
  uint64_t batch_number_ = 0;
  std::optional<ledger::Format> format_to_set_;
  uint64_t live_count_sum_ = 0;
  uint64_t live_fence_sum_ = 0;
  Instant ready_{};

  std::shared_ptr<ExpireStrategy> expire_strategy_;
  MassExpiryGuard guard_;
  // Counted for the guard. Good for a moment, and until somebody comes or goes.
  struct HolderCount {
    std::optional<int64_t> since_ms;
    SessionSlot next = 0;  // Those below it were looked at.
    uint64_t sessions = 0;
  } holders_online_;
  uint64_t mass_expiries_ = 0;
  uint64_t mass_sessions_ = 0;
  int64_t mass_told_until_ms_ = 0;  // Who went offline before belongs to the mass last told.
  static constexpr int64_t kMassNotesApartMs = 1'000;
  int64_t mass_noted_ms_ = -kMassNotesApartMs;

  // Offline sessions by the moment they must be looked at.
  absl::btree_set<std::pair<int64_t, SessionSlot>> offline_checks_;
  // The session whose tokens are being looked at, a bounded piece at each OnTime: first those that
  // were never due, then those that were spared for long enough.
  struct OfflineWalk {
    SessionSlot session = kNoSession;
    int64_t began_ms = 0;  // What was due then is asked about.
    TokenCursor cursor;
    absl::flat_hash_map<FlowSlot, int64_t> due_ms;  // Of the flows met; the same for all of a flow.
    std::vector<uint64_t> spared;                   // Fences.
    size_t spared_next = 0;
    uint64_t reclaimed = 0;
  } walk_;

  struct Sweep {
    bool in_flight = false;
    bool resume = false;  // The last step left something behind `after`.
    ledger::TokenKey after;
    int64_t lower_ms = 0;
    int64_t upper_ms = 0;
    Instant next{};  // Not before this, unless it resumes.
    // What steps have found and was not looked at yet, from `found_next` on.
    std::vector<ledger::TokenKey> found;
    size_t found_next = 0;
    uint64_t reclaimed = 0;
    uint64_t spared = 0;
  } sweep_;

  // Last written by this process.
  std::optional<int64_t> clock_marked_ms_;
  std::optional<int64_t> watermark_ms_;

  std::vector<std::unique_ptr<Listing>> listings_;
  uint64_t next_listing_ = 1;
  std::vector<Notice> notices_;
  size_t notices_of_many_ = 0;  // Those among them that NoteIfRoom let in.
  uint64_t notices_dropped_ = 0;
  uint64_t set_changes_ = 0;
  FlowCounters totals_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_CORE_H_
