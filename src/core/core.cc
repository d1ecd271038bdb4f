#include "core/core.h"

#include <algorithm>

#include "base/check.h"
#include "core/books.h"
#include "core/expiry/absence.h"
#include "core/expiry/expire_judge.h"
#include "core/expiry/mass_expiry.h"
#include "core/expiry/sweep.h"
#include "core/grants/admission.h"
#include "core/grants/groups.h"
#include "core/grants/room.h"
#include "core/grants/waiting.h"
#include "core/holding.h"
#include "core/listings.h"
#include "core/loading.h"
#include "core/other_kind.h"
#include "core/presence.h"
#include "core/rates/rates.h"
#include "core/reclaims.h"
#include "core/rule_book.h"
#include "core/seals.h"

namespace nowcalls::core {
namespace {

// What one OnTime does of work that may be long.
constexpr size_t kHistoryPerTimeStep = 1000;
constexpr uint32_t kWaitersPerTimeStep = 1000;
constexpr uint32_t kCancelsPerTimeStep = 1000;
constexpr size_t kRateRecordsPerTimeStep = 1000;

// Grants waiters the room that was made in its scope. Each call that may make room begins with one.
// The parts that make room do not know Admission: they only put lanes into the wake list of Books.
class GrantsAtEnd {
 public:
  GrantsAtEnd(Admission* admission, const Step& step) : admission_(admission), step_(step) {}
  ~GrantsAtEnd() { admission_->GrantWaiters(step_); }
  GrantsAtEnd(const GrantsAtEnd&) = delete;
  GrantsAtEnd& operator=(const GrantsAtEnd&) = delete;

 private:
  Admission* const admission_;
  const Step& step_;
};

}  // namespace

// In the order of construction: each part reaches only parts above it.
struct Core::Parts {
  explicit Parts(const CoreOptions& options) : books(options) {}

  Notices notices;
  OpenBooks books;
  // What parts read of it, and what they change.
  const Limits* const limits = &books.options().limits;
  const TokenIds* const ids = &books.ids();
  FlowTable* const flows = books.flows();
  SessionTable* const sessions = books.sessions();
  TokenTable* const tokens = books.tokens();
  RequestIds* const request_ids = books.request_ids();
  WakeList* const wake_list = books.wake_list();
  RateTable* const rate_table = books.rates();
  History* const history = books.history();
  uint64_t* const looks = &books.looks();

  MassExpiry mass_expiry{books.options(), sessions, &notices};
  ExpireJudge judge{books.options(), flows, sessions, tokens, ids, &mass_expiry};
  Absence absence{&books, sessions, tokens, &mass_expiry, &judge, &notices};
  Sweep sweep{&books, &absence, &judge, &notices};
  Reclaims reclaims{flows, sessions, tokens, ids, looks, &absence, &notices};
  Waiting waiting{limits, flows, sessions, request_ids, wake_list, looks};
  Holding holding{&books, flows, tokens, request_ids, &waiting, &absence};
  Presence presence{&books, flows, sessions, wake_list, &absence, &waiting, &notices};
  OtherKind other_kind{flows, &notices};
  Room room{limits, flows, tokens};
  Rates rates{flows, rate_table, &other_kind};
  Groups groups{&books, flows, wake_list, &waiting, &other_kind, &room, &rates};
  Admission admission{&books, flows, wake_list, &waiting, &other_kind, &room, &groups};
  RuleBook rule_book{&books, flows, rate_table, &waiting, &absence, &notices};
  Listings listings{limits, flows, sessions, tokens, looks};
  Seals seals{&books, history};
  // Null after FinishLoad.
  std::unique_ptr<Loading> loading =
      std::make_unique<Loading>(&books, flows, sessions, tokens, rate_table, history);
};

Core::Core(const CoreOptions& options) : parts_(std::make_unique<Parts>(options)) {}

Core::~Core() = default;

Loading& Core::loading() {
  NOWCALLS_CHECK(parts_->loading != nullptr);
  return *parts_->loading;
}

Status Core::FinishLoad(const std::optional<ledger::Seal>& seal) {
  NOWCALLS_RETURN_IF_ERROR(loading().Finish(seal));
  // An older format's conversion is recorded with the first seal.
  parts_->seals.SetFirst(parts_->loading->first_records());
  parts_->listings.Begin(parts_->books.batch_number());
  parts_->loading.reset();  // Frees the tables of the load; later uses fail in loading().
  return {};
}

void Core::Begin(Instant now, uint64_t fences_from) {
  if (fences_from > 0) parts_->books.SkipFences(fences_from);
  parts_->judge.Begin(now, parts_->books.first_fence());
  parts_->absence.Begin(now);
}

Result<HelloAnswer> Core::Hello(const Step& step, const HelloRequest& request) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->presence.Hello(step, request);
}

void Core::Heard(SessionSlot session, Instant now) {
  parts_->sessions->at(session).last_message_ms = now.ms;
}

void Core::Goodbye(const Step& step, SessionSlot slot, uint32_t owner,
                   std::string_view display_id) {
  const GrantsAtEnd grants(&parts_->admission, step);
  parts_->presence.Goodbye(step, slot, owner, display_id);
}

std::optional<AcquireAnswer> Core::Acquire(const Step& step, SessionSlot session,
                                           const AcquireRequest& request, WaitTicket ticket) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->admission.Acquire(step, session, request, ticket);
}

std::optional<AcquireAllAnswer> Core::AcquireAll(const Step& step, SessionSlot session,
                                                 const AcquireAllRequest& request,
                                                 WaitTicket ticket) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->groups.Acquire(step, session, request, ticket);
}

TokenStatus Core::Cancel(const Step& step, SessionSlot session, uint64_t request_id) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->holding.Cancel(step, session, request_id);
}

void Core::DropWaiters(const Step& step, uint32_t owner) {
  const GrantsAtEnd grants(&parts_->admission, step);
  parts_->waiting.RemoveAllOf(owner);
}

// Without GrantsAtEnd: every waiter is answered, so no room can be granted to one.
void Core::CloseQueues(const Step& step) {
  parts_->waiting.Close(step);
  parts_->rate_table->SaveAll(step.now.ms, step.batch);
}

std::vector<LateAnswer> Core::TakeLateAnswers() { return parts_->waiting.TakeLateAnswers(); }

std::vector<Loss> Core::TakeLosses() { return parts_->sessions->TakeLosses(); }

bool Core::has_late_answers() const { return parts_->waiting.has_late_answers(); }

TokenStatus Core::Release(const Step& step, SessionSlot session, TokenId token, TokenScope scope,
                          CallOutcome outcome) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->holding.Release(step, session, token, scope, outcome);
}

KeepAnswer Core::Keep(const Step& step, SessionSlot session, TokenId token, TokenScope scope) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->holding.Keep(step, session, token, scope);
}

// Without GrantsAtEnd: calls a second make no room, so callers use the part itself.
Rates& Core::rates() { return parts_->rates; }

TokenStatus Core::Reclaim(const Step& step, TokenId token, const AdminAct& act) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->reclaims.Reclaim(step, token, act);
}

ReclaimAnswer Core::ReclaimClient(const Step& step, const ClientChoice& client, uint32_t tokens_max,
                                  const AdminAct& act, const Sight& sight) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->reclaims.ReclaimClient(step, client, tokens_max, act, sight);
}

Result<ReclaimAnswer> Core::ReclaimFlow(const Step& step, const FlowChoice& choice,
                                        uint32_t tokens_max, const AdminAct& act) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->reclaims.ReclaimFlow(step, choice, tokens_max, act);
}

Result<ReclaimAnswer> Core::Purge(const Step& step, const FlowChoice& choice, uint32_t tokens_max,
                                  const AdminAct& act) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->reclaims.Purge(step, choice, tokens_max, act);
}

Result<DrainAnswer> Core::Drain(const Step& step, const FlowChoice& choice, bool on,
                                const AdminAct& act) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->rule_book.Drain(step, choice, on, act);
}

ReclaimPage Core::ReclaimNamespace(const Step& step, const NamespacePiece& piece,
                                   const AdminAct& act) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->reclaims.ReclaimNamespace(step, piece, act);
}

Result<DrainPage> Core::DrainNamespace(const Step& step, const NamespacePiece& piece, bool on,
                                       const AdminAct& act) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->rule_book.DrainNamespace(step, piece, on, act);
}

void Core::SetDiskLow(bool low) {
  parts_->room.SetDiskLow(low);
  parts_->rule_book.SetDiskLow(low);
  parts_->rate_table->SetDiskLow(low);
}

Status Core::ReplaceRules(const Step& step, const std::vector<const RuleSet*>& sets) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->rule_book.Replace(step, sets);
}

void Core::SetOptions(const CoreOptions& options) { parts_->books.SetOptions(options); }

void Core::OnTime(const Step& step) {
  // The room that the steps below make is granted at the end.
  const GrantsAtEnd grants(&parts_->admission, step);
  // Waiters: grants left by earlier calls come before time-outs.
  parts_->admission.OnTime(step);
  parts_->waiting.Expire(step, kWaitersPerTimeStep);
  parts_->request_ids->ForgetCancelled(step.now.ms, kCancelsPerTimeStep);
  // Due tokens. Both parts share the batch's room for them (Step::due_max).
  parts_->sweep.OnTime(step);
  parts_->absence.OnTime(step);
  // Tables that are trimmed or saved piece by piece.
  parts_->history->DropSurplus(kHistoryPerTimeStep, step.batch);
  parts_->listings.ForgetIdle(step.now);
  parts_->rate_table->SaveDue(step.now.ms, kRateRecordsPerTimeStep, step.batch);
}

Instant Core::NextDeadline(bool has_room) const {
  const Books& books = parts_->books;
  // Instant{0}: a piece was left over, so the next OnTime is due at once.
  if (parts_->admission.is_behind() || books.history().has_surplus()) return Instant{0};
  Instant next{std::min({parts_->waiting.queues().earliest_deadline_ms(),
                         books.request_ids().forget_ms(), books.rates().next_save_ms()})};
  // Without room for due tokens their moments would wake the loop in vain.
  if (has_room) {
    if (parts_->sweep.has_finds()) return Instant{0};
    next = std::min(next, parts_->absence.NextDeadline());
  }
  return std::min({next, parts_->sweep.NextScan(), parts_->listings.NextIdle()});
}

std::optional<ledger::ScanRequest> Core::BeginScan(Instant now) {
  return parts_->sweep.BeginScan(now);
}

Status Core::OnScanDone(const Step& step, const ledger::ScanResult& result) {
  const GrantsAtEnd grants(&parts_->admission, step);
  return parts_->sweep.OnScanDone(step, result);
}

// The mark of an idle server lets a start tell the time of a reboot from idle time.
Instant Core::NextMark() const { return parts_->seals.NextMark(); }

void Core::Seal(const Step& step, const ClockSample& clock, bool may_be_last) {
  parts_->seals.Seal(step, clock, may_be_last);
}

// A cursor is its owner's, and for one call: neither a repeated call nor a stranger loses a page.
Result<TokenPage> Core::ListTokens(Instant now, uint32_t owner, const TokenFilter& filter,
                                   uint32_t limit, uint64_t cursor, const Sight& sight) {
  return parts_->listings.Page(now, owner, filter, limit, cursor, sight);
}

std::vector<Notice> Core::TakeNotices() { return parts_->notices.Take(); }

const FlowTable& Core::flows() const { return books().flows(); }

const Books& Core::books() const { return parts_->books; }

const WaitQueues& Core::wait_queues() const { return parts_->waiting.queues(); }

const MassExpiry& Core::mass_expiry() const { return parts_->mass_expiry; }

// For claims and refused sets, which change no limit, and so need no GrantsAtEnd.
RuleBook& Core::rule_book() { return parts_->rule_book; }

}  // namespace nowcalls::core
