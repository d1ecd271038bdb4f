// Core: decides everything, does no I/O. src/core/README.md lists its parts.
//
// Thread: loop. The same calls give the same records and answers.
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
#include "core/sight.h"
#include "core/step.h"
#include "core/tables/slot.h"
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
  // REQUIRES: before FinishLoad.
  Loading& loading();
  // Loading::Finish. Unless ok, the core is unusable.
  Status FinishLoad(const std::optional<ledger::Seal>& seal);
  // Starts the restart grace. Call last, and again if clients can connect only later. Fences begin
  // at `fences_from` at least (ledger/fence_line.h).
  void Begin(Instant now, uint64_t fences_from = 0);

  // --- Sessions. ---
  // Opens or rejoins a session. An error changes nothing. kResourceExhausted: sessions_max or
  // namespaces_max. kAlreadyExists: `exclusive`, while the client id is online as another instance,
  // or as instance 0 from another host. REQUIRES: CheckNamespace and CheckClientId (base/text.h)
  // pass the names.
  Result<HelloAnswer> Hello(const Step& step, const HelloRequest& request);
  void Heard(SessionSlot session, Instant now);
  // One connection is gone: drops the waiters of `owner`. `display_id`: as in Hello.
  void Goodbye(const Step& step, SessionSlot slot, uint32_t owner, std::string_view display_id);

  // --- Tokens. ---
  // No value: it waits. Its LateAnswer follows, unless DropWaiters or Goodbye comes first.
  std::optional<AcquireAnswer> Acquire(const Step& step, SessionSlot session,
                                       const AcquireRequest& request, WaitTicket ticket);
  // All items or none (core/grants/groups.h). No value: as Acquire.
  std::optional<AcquireAllAnswer> AcquireAll(const Step& step, SessionSlot session,
                                             const AcquireAllRequest& request, WaitTicket ticket);
  // Ends the id's tokens or waiter: kReleaseOk, else kAlreadyRelease. Refuses its acquires for
  // cancel_remembered_ms.
  TokenStatus Cancel(const Step& step, SessionSlot session, uint64_t request_id);
  void DropWaiters(const Step& step, uint32_t owner);
  // The server ends: answers waiters NOT_AVAILABLE, lets no request wait, records windows that
  // survive a restart.
  void CloseQueues(const Step& step);
  // In the order of decision. Call after each call that takes a Step.
  std::vector<LateAnswer> TakeLateAnswers();
  // Tokens taken back from online sessions since the last call; recorded in that step's batch.
  std::vector<Loss> TakeLosses();
  bool has_late_answers() const;
  // kAlreadyRelease: unknown, ended or out of scope.
  TokenStatus Release(const Step& step, SessionSlot session, TokenId token,
                      TokenScope scope = TokenScope::kSession,
                      CallOutcome outcome = CallOutcome::kOk);
  Rates& rates();
  // Begins the hold anew. Behind maxHoldMs it ends the token: kAlreadyRelease.
  KeepAnswer Keep(const Step& step, SessionSlot session, TokenId token,
                  TokenScope scope = TokenScope::kSession);

  // --- Administrators. ---
  // kReleaseOk or kAlreadyRelease.
  TokenStatus Reclaim(const Step& step, TokenId token, const AdminAct& act);
  // Take back up to `tokens_max` tokens, the oldest first: session by session, or the rule of the
  // flow before that by value. Tokens of flows out of sight stay. kNotFound: neither a rule nor
  // tokens. Purge is for removed rules; kInvalidArgument: none of the chosen is.
  ReclaimAnswer ReclaimClient(const Step& step, const ClientChoice& client, uint32_t tokens_max,
                              const AdminAct& act, const Sight& sight = {});
  Result<ReclaimAnswer> ReclaimFlow(const Step& step, const FlowChoice& choice, uint32_t tokens_max,
                                    const AdminAct& act);
  Result<ReclaimAnswer> Purge(const Step& step, const FlowChoice& choice, uint32_t tokens_max,
                              const AdminAct& act);
  // Stops or resumes grants of a rule, across restarts and changes, until its removal. Answers the
  // sums of the chosen rules, also without a change. kResourceExhausted: see SetDiskLow.
  Result<DrainAnswer> Drain(const Step& step, const FlowChoice& choice, bool on,
                            const AdminAct& act);
  // In pieces by flow id: tokens of flows, also of removed rules; rules in force, as Drain. An
  // unknown namespace has neither.
  ReclaimPage ReclaimNamespace(const Step& step, const NamespacePiece& piece, const AdminAct& act);
  Result<DrainPage> DrainNamespace(const Step& step, const NamespacePiece& piece, bool on,
                                   const AdminAct& act);

  // While low, grants, also to waiters, are refused: kTooManyRequest. Rules by RPC and drains may
  // take rule_bytes_while_disk_low_max. Ends and keeps go on.
  void SetDiskLow(bool low);

  // Replaces the sets of some namespaces, or changes nothing. A flowId may move between these. The
  // error names the namespace.
  //   kInvalidArgument: an invalid name, or a flowId in two sets;
  //   kAlreadyExists: a namespace outside `sets` owns a flowId, or another source the namespace;
  //   kResourceExhausted: a limit, but never flows_max for a set without new flow ids.
  // TakeNotices reports each set, except an RPC set without changes, which its caller reports.
  Status ReplaceRules(const Step& step, const std::vector<const RuleSet*>& sets);
  RuleBook& rule_book();

  void SetOptions(const CoreOptions& options);

  // Does a bounded piece of due work. Call at NextDeadline or later.
  void OnTime(const Step& step);
  // `has_room`: the batch of the next OnTime takes more due tokens (Step::due_max).
  Instant NextDeadline(bool has_room = true) const;

  // --- Sweep: one scan at a time. ---
  std::optional<ledger::ScanRequest> BeginScan(Instant now);
  Status OnScanDone(const Step& step, const ledger::ScanResult& result);

  // Of an idle server, each minute.
  Instant NextMark() const;
  // Ends the batch. One that `may_be_last` of the process gets a clock mark.
  void Seal(const Step& step, const ClockSample& clock, bool may_be_last = false);

  // --- Views. ---
  // Continues behind `cursor`; 0: begins. A cursor serves one call of its owner (a connection).
  // kNotFound: any other, or a forgotten one (listings_max, listings_per_connection_max,
  // listing_idle_ms). Shows tokens whose flow and session are in sight.
  Result<TokenPage> ListTokens(Instant now, uint32_t owner, const TokenFilter& filter,
                               uint32_t limit, uint64_t cursor, const Sight& sight = {});
  std::vector<Notice> TakeNotices();
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
