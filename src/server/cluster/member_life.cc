#include "server/cluster/member_life.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/counted.h"
#include "base/hex.h"
#include "base/time.h"
#include "ledger/codec.h"
#include "nowcalls_version.h"
#include "recovery/recovery.h"
#include "server/cluster/copy_taker.h"
#include "server/cluster/standby_signals.h"
#include "server/config/cluster_settings.h"
#include "server/etcd/etcd_module.h"
#include "server/log/logging.h"
#include "server/rules/rule_files.h"
#include "server/service_manager.h"
#include "store/disk/file_copy.h"
#include "store/disk/ledger_files.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kPollMs = 50;
constexpr int64_t kSyncEveryMs = 1'000;
constexpr int64_t kCopyPauseMs = 1'000;
constexpr int64_t kCopyAgainMs = 5'000;
constexpr char kDropped[] = "dropped";  // A ledger on its way out.
// The lease must survive a request that hangs, and another one.
constexpr int64_t kClaimAnswerMsMax = 400;
constexpr int64_t kAnswerMsMax = 1'000;
constexpr int kResignAttempts = 2;
// Behind a handover another member claims within a look, or it does not at all.
constexpr int64_t kHoldOffMs = 3'000;

Status RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? Status::IoError("cannot remove " + path + ": " + error.message()) : Status::Ok();
}

// Whether it may help to ask etcd again.
bool MayPass(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kOutcomeUnknown:
    case StatusCode::kResourceExhausted:
    case StatusCode::kPermissionDenied:
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound: return true;
    default: return false;
  }
}

}  // namespace

MemberLife::MemberLife(const ServerConfig* config, const ConfigAgain* again,
                       const ServeOptions* options, Premises* premises, OpenLedger open)
    : config_(config),
      again_(again),
      options_(options),
      premises_(premises),
      open_(std::move(open)),
      address_(AdvertisedAddress(*config)),
      roster_(config->cluster.prefix, premises->board(), [this] { return Record(); }) {
  premises->board()->cluster_log_bytes_max = config->cluster.log_bytes_max;
}

MemberLife::~MemberLife() = default;

Status MemberLife::Run(std::unique_ptr<store::LedgerLock> lock,
                       const std::function<void()>& ready) {
  signals_.emplace();
  // What a crash in the middle of a copy left.
  for (const char* const left : {kDropped, "incoming", "copies"}) {
    NOWCALLS_RETURN_IF_ERROR(RemoveAll(config_->data_dir + "/" + left));
  }
  NOWCALLS_RETURN_IF_ERROR(Connect());
  NOWCALLS_RETURN_IF_ERROR(AwaitEtcd());
  if (StandbySignals::end_asked()) return {};
  NOWCALLS_RETURN_IF_ERROR(OpenTables(std::move(lock)));
  presence_.emplace(etcd_of_presence_.get(), &log_->txns().keys(),
                    member::Presence::Calls{.record = [this] { return Record(); },
                                            .members = [this](const auto& all) { Hear(all); }});
  ready();
  while (!end_asked_) {
    const Result<std::optional<member::FreshClaim>> claim = StandBy();
    if (!claim.ok()) return claim.status();
    if (!claim->has_value()) break;
    NOWCALLS_RETURN_IF_ERROR(TakeOver(**claim));
  }
  presence_.reset();
  follower_.reset();
  return local_->Close();
}

Status MemberLife::Connect() {
  const Result<ConnectEtcd> connect = LoadEtcdModule();
  if (!connect.ok()) return connect.status();
  Result<cluster::EtcdOptions> etcd = ReadEtcdOptions(config_->cluster);
  if (!etcd.ok()) return etcd.status();
  etcd->endpoints = config_->cluster.endpoints;
  etcd->tls = config_->cluster.tls;
  etcd->answer_ms_max = kAnswerMsMax;
  etcd_ = (*connect)(*etcd);
  etcd_of_presence_ = (*connect)(*etcd);
  etcd->answer_ms_max = kClaimAnswerMsMax;
  etcd_of_claim_ = (*connect)(*etcd);
  Result<cluster::Keys> keys = cluster::Keys::Under(config_->cluster.prefix);
  if (!keys.ok()) return keys.status();
  log_.emplace(etcd_.get(), *std::move(keys), config_->cluster.log_bytes_max,
               [this](const Status& answer) { NoteEtcd(answer); });
  return {};
}

// A new ledger has the format of the cluster's, so etcd is asked before there is one.
Status MemberLife::AwaitEtcd() {
  while (!StandbySignals::end_asked()) {
    const Result<cluster::TxnReply> reply = etcd_->Commit(log_->txns().Look());
    NoteEtcd(reply.status());
    if (reply.ok()) {
      const Result<cluster::LogView> view = log_->txns().ViewOf(*reply);
      if (!view.ok()) return view.status();
      lineage_ = view->lineage;
      return {};
    }
    // Wrong settings do not get better.
    const StatusCode code = reply.status().code();
    if (code == StatusCode::kPermissionDenied || code == StatusCode::kInvalidArgument) {
      return Status::InvalidArgument("cluster: " + reply.status().message());
    }
    StandbySignals::Pause(kPollMs);
  }
  return {};
}

Status MemberLife::OpenTables(std::unique_ptr<store::LedgerLock> lock) {
  std::optional<ledger::Format> format;
  if (lineage_) {
    const Result<std::string> bytes = FromHex(lineage_->format);
    if (!bytes.ok()) return Status::Corruption("the cluster's format in etcd is no format");
    const Result<ledger::Format> decoded = ledger::DecodeFormat(*bytes);
    if (!decoded.ok()) return decoded.status().WithContext("the cluster's format in etcd");
    format = *decoded;
  }
  Result<std::unique_ptr<store::RocksStore>> opened = open_(std::move(lock), format);
  if (!opened.ok()) return opened.status();
  local_ = *std::move(opened);
  // The proof of the tables, before a batch is added to them.
  const Result<recovery::RecoveredLedger> ledger = recovery::Recover(local_.get(), config_->core);
  if (!ledger.ok()) return ledger.status();
  NOWCALLS_RETURN_IF_ERROR(local_->Accept());
  format_ = ToHex(ledger::EncodeFormat(ledger->format));
  {
    const std::lock_guard guard(mutex_);
    store_.emplace(&*log_, local_.get());
  }
  LogAt(Severity::kInfo, "the ledger has " + Counted(ledger->tokens, "token") + ", and ends with " +
                             "batch " + std::to_string(local_->applied()));
  return Follow(ledger->seal_ms);
}

Status MemberLife::Follow(int64_t seal_ms) {
  Result<std::optional<member::Identity>> identity = member::ReadIdentity(config_->data_dir);
  if (!identity.ok()) return identity.status();
  follower_.emplace(etcd_.get(), &*log_, &*store_,
                    member::FollowerOptions{.data_dir = config_->data_dir,
                                            .prefix = config_->cluster.prefix,
                                            .address = address_,
                                            .format = format_,
                                            .seal_ms = seal_ms,
                                            .holds_off_until_ms = holds_off_until_ms_},
                    *std::move(identity));
  return {};
}

// Empty tables of another format than the cluster's: this member lost the race for the first claim.
Status MemberLife::MakeTablesAnew() {
  lineage_ = log_->view().lineage;
  NOWCALLS_RETURN_IF_ERROR(CloseTables());
  NOWCALLS_RETURN_IF_ERROR(DropLedger());
  auto lock = store::LedgerLock::Take(config_->data_dir);
  if (!lock.ok()) return lock.status();
  return OpenTables(*std::move(lock));
}

// Ok also if there is none yet.
Status MemberLife::TakeOverCopy() {
  const cluster::LogView view = log_->view();
  if (!view.writer) {
    TellRole("lacks what the log has forgotten, and waits for a writer that makes a copy");
    StandbySignals::Pause(kCopyPauseMs);
    return {};
  }
  TellRole("takes a copy of the ledger from " + view.writer->address);
  // From here on the members hear of this one, and the log keeps what follows the copy.
  const Result<member::Identity> identity =
      member::JoinCluster(config_->data_dir, view.lineage->id, /*joined=*/true);
  if (!identity.ok()) return identity.status();
  promised_ = view.end();
  NoteMember(*identity);
  CopySourceAddress from{.address = view.writer->address};
  from.security.tls.on = !config_->tls.certificate.empty();
  // Without an access file a writer asks nobody, and a secret does not travel in the clear.
  if (!config_->access_file.empty()) from.security.secret = view.lineage->secret;
  from.security.tls.ca = config_->cluster.peer_ca_file;
  ShowPlace();
  const Result<backup::Manifest> taken = TakeCopy(from, config_->data_dir, StandbySignals::Pause);
  TellTrouble(taken.status().code() == StatusCode::kUnavailable ? taken.status() : Status::Ok());
  if (taken.status().code() == StatusCode::kUnavailable) {
    // A writer that fails has read its whole ledger for it.
    StandbySignals::Pause(kCopyAgainMs);
    return {};
  }
  if (!taken.ok()) return taken.status();
  NOWCALLS_RETURN_IF_ERROR(CheckCopy(*taken));
  return ReplaceLedger();
}

Status MemberLife::CheckCopy(const backup::Manifest& manifest) const {
  const std::atomic<bool> stop = false;
  const Result<backup::VerifySummary> summary =
      options_->verify(IncomingDir(config_->data_dir), stop);
  if (!summary.ok()) return summary.status();
  backup::Manifest found = manifest;
  found.SetCounts(*summary);
  if (found == manifest) return {};
  return Status::Corruption("the writer's copy tells of " + manifest.CountsText() + ", and holds " +
                            found.CountsText());
}

// A crash behind the rename leaves no ledger instead of a part of one.
Status MemberLife::DropLedger() {
  const std::string ledger = store::LedgerDir(config_->data_dir);
  const std::string dropped = config_->data_dir + "/" + kDropped;
  NOWCALLS_RETURN_IF_ERROR(RemoveAll(dropped));
  std::error_code error;
  std::filesystem::rename(ledger, dropped, error);
  if (error) return Status::IoError("cannot rename " + ledger + ": " + error.message());
  NOWCALLS_RETURN_IF_ERROR(store::SyncDir(config_->data_dir));
  return RemoveAll(dropped);
}

// The old ledger goes first: should a crash leave none, the next start takes a copy.
Status MemberLife::ReplaceLedger() {
  const std::string incoming = IncomingDir(config_->data_dir);
  const std::string ledger = store::LedgerDir(config_->data_dir);
  NOWCALLS_RETURN_IF_ERROR(CloseTables());
  NOWCALLS_RETURN_IF_ERROR(DropLedger());
  std::error_code error;
  std::filesystem::rename(store::LedgerDir(incoming), ledger, error);
  if (error) return Status::IoError("cannot rename " + incoming + ": " + error.message());
  NOWCALLS_RETURN_IF_ERROR(store::SyncDir(config_->data_dir));
  NOWCALLS_RETURN_IF_ERROR(RemoveAll(incoming));
  auto lock = store::LedgerLock::Take(config_->data_dir);
  if (!lock.ok()) return lock.status();
  return OpenTables(*std::move(lock));
}

Status MemberLife::CloseTables() {
  follower_.reset();
  {
    const std::lock_guard lock(mutex_);
    store_.reset();
  }
  Status closed = local_->Close();
  local_.reset();
  return closed;
}

// nullopt: the end was asked for.
Result<std::optional<member::FreshClaim>> MemberLife::StandBy() {
  web::Board* const board = premises_->board();
  board->cluster_follows = false;
  board->phase.store(web::Board::Phase::kStandby, std::memory_order_release);
  ServiceManager service;
  service.Ready();
  while (!StandbySignals::end_asked()) {
    service.Alive(Instant{BoottimeMs()});
    const uint64_t before = store_->applied();
    Result<std::optional<member::FreshClaim>> claim = follower_->Step();
    if (claim.ok()) {
      NoteEtcd(Status::Ok());
      NoteMember(follower_->identity());
      ShowPlace();
    }
    board->cluster_follows = claim.ok();
    if (claim.ok()) {
      if (*claim) return claim;
      TellWriter();
    } else if (follower_->needs() == member::Part::kEnter) {
      NOWCALLS_RETURN_IF_ERROR(MakeTablesAnew());
      continue;
    } else if (follower_->needs() == member::Part::kCopy) {
      NOWCALLS_RETURN_IF_ERROR(TakeOverCopy());
      continue;
    } else if (!MayPass(claim.status())) {
      return claim.status();
    } else {
      NoteEtcd(claim.status());
    }
    NOWCALLS_RETURN_IF_ERROR(SyncSometimes());
    const bool goes_on = claim.ok() && follower_->lag() > 0 && store_->applied() > before;
    if (!goes_on) StandbySignals::Pause(kPollMs);
  }
  service.Stopping();
  return std::optional<member::FreshClaim>();
}

// Ok also when another member was quicker.
Status MemberLife::TakeOver(const member::FreshClaim& claim) {
  premises_->board()->phase.store(web::Board::Phase::kLoading, std::memory_order_release);
  premises_->board()->cluster_term.store(claim.held.claim.term, std::memory_order_relaxed);
  const std::string term = std::to_string(claim.held.claim.term);
  TellRole("takes over in term " + term + ": " + claim.why);
  const member::ClaimKeeper keeper(
      etcd_of_claim_.get(), claim.lease, claim.asked_ms, [this](const std::string& why) {
        LogAt(Severity::kWarn, why + ": this server may not be the writer any more");
        options_->additions->Post([] {});  // Wakes the loop, which looks at the claim.
      });
  const Result<bool> leads = Settle(keeper);
  if (!leads.ok()) return leads.status();
  if (*leads) return Lead(claim, keeper);
  TellRole("is deposed in term " + term + " before it served: " +
           (keeper.over() ? "its lease may have ended" : "another member has the claim"));
  return Follow(/*seal_ms=*/0);
}

// True: this member has read the whole log, and has the claim.
Result<bool> MemberLife::Settle(const member::ClaimKeeper& keeper) {
  while (!keeper.over()) {
    const Result<cluster::Fate> fate = follower_->Settle();
    if (!fate.ok() && !MayPass(fate.status())) return fate.status();
    NoteEtcd(fate.status());
    if (!fate.ok()) {
      StandbySignals::Pause(kPollMs);
    } else if (*fate != cluster::Fate::kBehind) {
      return *fate == cluster::Fate::kDone;
    }
  }
  return false;
}

Status MemberLife::Lead(const member::FreshClaim& claim, const member::ClaimKeeper& keeper) {
  const int64_t began_ms = BoottimeMs();
  core::CoreOptions core = config_->core;
  core.term = claim.held.claim.term;
  Result<recovery::RecoveredLedger> ledger =
      recovery::Recover(&*store_, core, {.observed = follower_->observed()});
  if (!ledger.ok()) {
    Resign(claim.held);
    if (!MayPass(ledger.status())) return ledger.status();
    TellTrouble(ledger.status());
    TellRole("gives its claim of term " + std::to_string(core.term) +
             " back: it could not read the ledger");
    return Follow(/*seal_ms=*/0);
  }
  follower_.reset();
  leads_ = true;
  Result<Ended> ended = premises_->Serve(
      {.ledger = &*ledger,
       .store = &*store_,
       .local = local_.get(),
       .close =
           [&] {
             Resign(claim.held);
             return Status::Ok();
           },
       .rules = ReadRuleFiles(config_->rules, config_->rules_strict),
       .again = *again_,
       .claim = {.over = [&] { return keeper.over(); },
                 .give_up = [this] { log_->GiveUp(); },
                 .secret = log_->view().lineage ? log_->view().lineage->secret : std::string(),
                 .describe = [this] { return roster_.Describe(); },
                 .may_hand_over = [this] { return roster_.MayHandOver(); }},
       .serving =
           [&] {
             TellRole("serves in term " + std::to_string(core.term));
             roster_.SetWriter(log_->view().lineage ? log_->view().lineage->id : "", address_);
             // It came before the loop had its own handler.
             if (StandbySignals::end_asked()) raise(SIGTERM);
           },
       .began_ms = began_ms});
  leads_ = false;
  roster_.SetWriter(log_->view().lineage ? log_->view().lineage->id : "", "");
  signals_.emplace();
  // Also a deposed writer may still have its claim, if etcd has lost a batch.
  if (!ended.ok() || !ended->deposed || !keeper.over()) Resign(claim.held);
  if (!ended.ok()) return ended.status();
  TellLeft(*ended, core.term, keeper.over());
  end_asked_ = ended->end_asked;
  holds_off_until_ms_ = ended->deposed || ended->end_asked ? 0 : BoottimeMs() + kHoldOffMs;
  return Follow(/*seal_ms=*/0);
}

void MemberLife::TellLeft(const Ended& ended, uint64_t term, bool lease_over) {
  const std::string in_term = "in term " + std::to_string(term) + ": ";
  if (!ended.deposed) return TellRole("hands over " + in_term + ended.why);
  TellRole("is deposed " + in_term +
           (lease_over ? "etcd did not renew its lease in time"
                       : "etcd refused its batch: another member has the claim, or etcd has lost "
                         "a batch"));
}

// Standbys need not wait for the lease to end. If etcd does not answer, it will.
void MemberLife::Resign(const cluster::HeldClaim& held) {
  for (int i = 0; i < kResignAttempts; ++i) {
    if (etcd_->Commit(log_->txns().Resign(held)).ok()) return;
  }
}

Status MemberLife::SyncSometimes() {
  const int64_t now_ms = BoottimeMs();
  if (now_ms - synced_ms_ < kSyncEveryMs) return {};
  synced_ms_ = now_ms;
  NOWCALLS_RETURN_IF_ERROR(store_->CheckPlace());
  return store_->Sync();
}

void MemberLife::NoteMember(const std::optional<member::Identity>& identity) {
  const std::lock_guard lock(mutex_);
  member_ = identity && identity->joined ? identity->member : std::string();
}

void MemberLife::TellWriter() {
  const std::optional<cluster::Claim>& writer = follower_->writer();
  const std::optional<cluster::Lineage>& lineage = log_->view().lineage;
  roster_.SetWriter(lineage ? lineage->id : "", writer ? writer->address : "");
  if (!writer) {
    return TellRole("stands by, and nobody writes since term " +
                    std::to_string(lineage ? lineage->term : 0));
  }
  TellRole("stands by: " + writer->address + " writes in term " + std::to_string(writer->term));
}

// On the board, for HTTP.
void MemberLife::ShowPlace() {
  web::Board* const board = premises_->board();
  const std::optional<cluster::Lineage>& lineage = log_->view().lineage;
  board->cluster_term.store(lineage ? lineage->term : 0, std::memory_order_relaxed);
  board->cluster_lag.store(follower_->lag(), std::memory_order_relaxed);
  board->cluster_log_bytes.store(0, std::memory_order_relaxed);
}

// Once for each role.
void MemberLife::TellRole(const std::string& role) {
  if (role_ == role) return;
  role_ = role;
  LogAt(Severity::kInfo, "cluster " + config_->cluster.prefix + ": " + address_ + " " + role);
}

// Of the thread that commits, or stands by; as is the next one.
void MemberLife::NoteEtcd(const Status& answer) {
  if (!answer.ok()) {
    premises_->board()->cluster_etcd_failures.fetch_add(1, std::memory_order_relaxed);
  }
  TellTrouble(answer);
}

void MemberLife::TellTrouble(const Status& trouble) {
  if (trouble.ok() == !troubled_) return;
  troubled_ = !trouble.ok();
  if (troubled_) {
    LogAt(Severity::kWarn, trouble.message() + "; this is tried again until it is answered");
  } else {
    LogAt(Severity::kInfo, "etcd answers again");
  }
}

std::optional<cluster::MemberRecord> MemberLife::Record() const {
  const std::lock_guard lock(mutex_);
  if (member_.empty()) return std::nullopt;
  return cluster::MemberRecord{
      .member = member_,
      .address = address_,
      .version = NOWCALLS_VERSION,
      .leads = leads_,
      .applied = store_ ? store_->last() : 0,
      .synced = std::max<uint64_t>(promised_, store_ ? store_->synced() : 0),
      .lag = leads_ ? 0 : premises_->board()->cluster_lag.load(std::memory_order_relaxed)};
}

// The log may forget what all have on disk.
void MemberLife::Hear(const std::vector<member::HeardMember>& members) {
  if (leads_) premises_->board()->cluster_log_bytes = log_->bytes();
  roster_.Hear(members);
  if (!leads_ || members.empty()) return;
  uint64_t synced = UINT64_MAX;
  for (const auto& [record, silent_ms] : members) synced = std::min(synced, record.synced);
  (void)log_->Trim(synced).ok();
}

}  // namespace nowcalls::server
