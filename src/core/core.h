// Core: decides everything, does no I/O. Rules, tokens, sessions and sweep decisions.
//
// Thread: loop. A pure state machine: time comes in with each call (Step), what must become durable
// leaves as records of the open commit batch. No clock, no I/O, no threads, no globals; the same
// calls give the same records and answers, byte for byte, and nothing depends on hash-map order.
//
// Core is the front of its parts. Each part owns its members and knows only parts above it here:
//
//   Books        tables, sums, fences; the only way in which a token begins, moves and ends
//   MassExpiry   which offline sessions went offline in a mass
//   ExpireJudge  what becomes of a token whose time is over     > Books, MassExpiry
//   Absence      offline sessions: when their tokens are due    > Books, MassExpiry, ExpireJudge
//   Sweep        expired tokens: scans, and what they find      > Books, Absence, ExpireJudge
//   Holding      release, keep                                  > Books, Absence
//   Reclaims     administrators take tokens back                > Books, Absence
//   Waiting      queues, late answers                           > Books
//   Presence     hello, goodbye                                 > Books, Absence, Waiting
//   OtherKind    rules asked for what they do not say           > Books
//   Room         which limit is in the way of a grant           > Books
//   Rates        calls a second                                 > Books, OtherKind
//   Groups       acquire_all              > Books, Waiting, OtherKind, Room, Rates
//   Admission    acquire, cancel, grants         > Books, Absence, Waiting, OtherKind, Room, Groups
//   RuleBook     rules in force, their sources, drains          > Books, Absence, Waiting
//   Listings     pages of tokens                                > Books
//   Seals        the end of each batch                          > Books
//   Loading      recovery; gone after FinishLoad                > Books
//
// A part that makes room does not know Admission: it puts lanes into the wake list of Books, and
// Core ends each such call with Admission::GrantWaiters.
//
// Invariants kept here (src/README.md): 2 nowCalls is the sum of count over live tokens (Books);
// 3 no grant when nowCalls + count > level (Room); 5 a token ends once, with a reason (Books);
// 6 fences grow, ids never repeat (Books).
#ifndef NOWCALLS_CORE_CORE_H_
#define NOWCALLS_CORE_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/time.h"
#include "core/answers.h"
#include "core/notices.h"
#include "core/options.h"
#include "core/slot.h"
#include "core/step.h"
#include "ledger/entities.h"
#include "ledger/scan.h"
#include "nowcalls/call_outcome.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Books;
class FlowTable;
class Loading;
class MassExpiry;
class Rates;
class RuleBook;
class WaitQueues;
struct RuleSet;

class Core {
 public:
  explicit Core(const CoreOptions& options);
  ~Core();

  // --- Recovery, before anything else. ---
  // Takes the ledger's entities (core/loading.h). REQUIRES: before FinishLoad.
  Loading& loading();
  // Loading::Finish. The core is usable only if this returns ok.
  Status FinishLoad(const std::optional<ledger::Seal>& seal);
  // The server is ready: restart grace counts from now. Last of all, since loading takes its time;
  // again when clients can connect, if that is later. Fences below `fences_from` may have been
  // given out, though nothing that was loaded shows it (ledger/fence_line.h): neither they nor
  // their ids are given out again. 0: all that was given out was loaded.
  void Begin(Instant now, uint64_t fences_from = 0);

  // --- Sessions. ---
  // Opens or rejoins the session of the instance of the client id in its namespace; without a
  // client id, a session that is shown as `display_id`. REQUIRES: both names pass CheckNamespace
  // and CheckClientId (base/text.h). kResourceExhausted: sessions_max or namespaces_max is reached.
  // kAlreadyExists: the call is `exclusive`, and the client id is online as another instance, or as
  // instance 0 from another host. Nothing has changed then.
  Result<HelloAnswer> Hello(const Step& step, const HelloRequest& request);
  // Messages of the session have come.
  void Heard(SessionSlot session, Instant now);
  // One connection of the session is gone, and with it its waiters, which have this owner.
  // `display_id`: as in its Hello.
  void Goodbye(const Step& step, SessionSlot slot, uint32_t owner, std::string_view display_id);

  // --- Tokens. ---
  // Nothing when the acquire waits for room: then exactly one LateAnswer with its ticket follows,
  // unless DropWaiters comes first.
  std::optional<AcquireAnswer> Acquire(const Step& step, SessionSlot session,
                                       const AcquireRequest& request, WaitTicket ticket);
  // All tokens of the request, in one batch, or none (core/groups.h). Nothing when it waits, as
  // Acquire.
  std::optional<AcquireAllAnswer> AcquireAll(const Step& step, SessionSlot session,
                                             const AcquireAllRequest& request, WaitTicket ticket);
  // Ends what the request id of the session stands for, tokens or waiter: kReleaseOk; else
  // kAlreadyRelease. In any case an acquire with it is refused for cancel_remembered_ms.
  TokenStatus Cancel(const Step& step, SessionSlot session, uint64_t request_id);
  // Nobody listens any more to the answers with this owner.
  void DropWaiters(const Step& step, uint32_t owner);
  // Answers all waiters NOT_AVAILABLE, and from now on no request waits: the server ends. Records
  // the windows of calls a second that survive it.
  void CloseQueues(const Step& step);
  // In the order in which they were decided. To be taken after each call that takes a Step.
  std::vector<LateAnswer> TakeLateAnswers();
  // Tokens taken back from sessions online, since the last call. The record of each is in the batch
  // of the call that took it.
  std::vector<Loss> TakeLosses();
  bool has_late_answers() const;
  // kReleaseOk, or kAlreadyRelease for a token that is unknown, ended or out of scope.
  TokenStatus Release(const Step& step, SessionSlot session, TokenId token,
                      TokenScope scope = TokenScope::kSession,
                      CallOutcome outcome = CallOutcome::kOk);
  // Calls a second: they make no room, so their part is asked itself.
  Rates& rates();
  // Renews a token: its hold begins anew. Behind the longest hold it ends the token.
  KeepAnswer Keep(const Step& step, SessionSlot session, TokenId token,
                  TokenScope scope = TokenScope::kSession);

  // --- Administrators. ---
  // Takes a token back. kReleaseOk or kAlreadyRelease.
  TokenStatus Reclaim(const Step& step, TokenId token, const AdminAct& act);
  // Take back up to `tokens_max` tokens, the oldest first. Of a client id those of all instances,
  // one session after the other, or of the one that is given. A client id that begins with '@'
  // names the sessions of connections. Of both kinds of a flow id, those of the rule of the flow
  // come first. kNotFound for a flow without a rule and tokens; Purge is for flows whose rule was
  // removed, and kInvalidArgument if none of the chosen is such a one.
  ReclaimAnswer ReclaimClient(const Step& step, const ClientChoice& client, uint32_t tokens_max,
                              const AdminAct& act);
  Result<ReclaimAnswer> ReclaimFlow(const Step& step, const FlowChoice& choice, uint32_t tokens_max,
                                    const AdminAct& act);
  Result<ReclaimAnswer> Purge(const Step& step, const FlowChoice& choice, uint32_t tokens_max,
                              const AdminAct& act);
  // Stops the grants of a rule, or lets them go on. It holds across restarts and changes of the
  // rule, and ends when the rule is removed. kOk, also when nothing changes, with the sums of the
  // chosen rules; kNoRuleExists.
  // kResourceExhausted as for ReplaceRules while the disk is low.
  Result<DrainAnswer> Drain(const Step& step, const FlowChoice& choice, bool on,
                            const AdminAct& act);
  // Both act on all of a namespace, in pieces by flow id. The first takes the tokens of its rules'
  // flows, in force or removed; the second drains the rules that it has in force, as Drain. A
  // namespace that is not known has neither.
  ReclaimPage ReclaimNamespace(const Step& step, const NamespacePiece& piece, const AdminAct& act);
  Result<DrainPage> DrainNamespace(const Step& step, const NamespacePiece& piece, bool on,
                                   const AdminAct& act);

  // The ledger's disk is nearly full, or has room again. While it is nearly full nothing is
  // granted: kTooManyRequest, also to waiters whose turn comes, and rules that come by RPC and
  // drains may take rule_bytes_while_disk_low_max of it; all that ends or keeps tokens goes on.
  void SetDiskLow(bool low);

  // --- Rules. ---
  // Replaces the whole sets of some namespaces in one step, or changes nothing; a flowId may move
  // from one of them to another. The error names the namespace: kInvalidArgument for an invalid
  // name or a flowId in two sets, kAlreadyExists when a namespace that is not in `sets` owns a
  // flowId or another source owns a namespace, kResourceExhausted for a limit; a set without new
  // flow ids never for flows_max. TakeNotices reports the sets, but for a set that came by RPC and
  // changes nothing: that its caller reports. See RuleSetRefs (core/rules/rule_set.h).
  Status ReplaceRules(const Step& step, const std::vector<const RuleSet*>& sets);
  // Claims and refused sets change no limit, so their part is asked itself.
  RuleBook& rule_book();

  // --- Options. ---
  // Books::SetOptions.
  void SetOptions(const CoreOptions& options);

  // --- Time. ---
  // Does what has become due, a bounded piece at a time. Call at NextDeadline or later.
  void OnTime(const Step& step);
  // `has_room`: whether the batch of the next OnTime takes more due tokens (Step::due_max).
  Instant NextDeadline(bool has_room = true) const;

  // --- Sweep: at most one scan at a time. Its finds wait for room in a batch. ---
  std::optional<ledger::ScanRequest> BeginScan(Instant now);
  Status OnScanDone(const Step& step, const ledger::ScanResult& result);

  // --- Seals. ---
  // When a batch is to be sealed though nothing has happened: the machine's clocks are written each
  // minute, so that the time that a reboot takes can be told from idle time.
  Instant NextMark() const;
  // Ends the batch: a clock mark at most once a second, but in any case when it may be the last one
  // of the process; the watermark, the seal.
  void Seal(const Step& step, const ClockSample& clock, bool may_be_last = false);

  // --- Views. ---
  // Goes on behind `cursor`, or begins with 0. Each page has a cursor of its own, good for one call
  // of the owner it was given to (a connection), so that no page is lost to a call that is repeated
  // or to somebody else. kNotFound for any other, and when it was forgotten: listings between two
  // pages are few (listings_max; listings_per_connection_max of an owner) and short-lived
  // (listing_idle_ms).
  Result<TokenPage> ListTokens(Instant now, uint32_t owner, const TokenFilter& filter,
                               uint32_t limit, uint64_t cursor);
  std::vector<Notice> TakeNotices();
  // The table of the books that most callers ask for.
  const FlowTable& flows() const;
  const Books& books() const;
  const WaitQueues& wait_queues() const;
  const MassExpiry& mass_expiry() const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_CORE_H_
