#include "server/bootstrap.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "backup/backup.h"
#include "backup/verify_process.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/exit_codes.h"
#include "base/file_limit.h"
#include "core/core.h"
#include "member/identity.h"
#include "nowcalls_version.h"
#include "recovery/recovery.h"
#include "server/cluster/member_life.h"
#include "server/log/logging.h"
#include "server/premises.h"
#include "server/server.h"
#include "server/service_manager.h"
#include "server/system.h"
#include "store/disk/data_dir.h"
#include "store/disk/ledger_files.h"
#include "store/disk/ledger_lock.h"
#include "store/rocks/rocks_store.h"
#include "web/http_server.h"
#include "web/web.h"

namespace nowcalls::server {
namespace {

// Files that connections of HTTP may take, beside those of the ledger.
uint64_t FilesOfWeb(const ServerConfig& config) {
  const int listeners = (config.http ? 1 : 0) + (config.sentinel.dashboard.host.empty() ? 0 : 1);
  return static_cast<uint64_t>(listeners) * web::HttpServer::kConnectionsMax;
}

// etcd makes batches durable; the tables of this machine follow.
void AdaptToCluster(ServerConfig* config) {
  constexpr size_t kBatchBytesMax = 128 * 1024;
  constexpr int64_t kSyncMs = 1'000;
  config->durability = {
      .mode = store::Durability::kInterval, .interval_ms = kSyncMs, .inline_records_max = 0};
  size_t& bytes_max = config->core.limits.batch_bytes_max;
  bytes_max = std::min(bytes_max, kBatchBytesMax);
}

Status PrepareProcess(ServerConfig* config) {
  // Files first: the store's and HTTP's must fit, and connections get the rest.
  IgnoreSignals();
  const uint64_t file_limit = RaiseFileLimit();
  spdlog::debug("{} files may be open", file_limit);
  const uint64_t of_web = FilesOfWeb(*config);
  if (file_limit < kFileLimitMin + of_web) {
    return Status::IoError("only " + std::to_string(file_limit) + " files may be open, and " +
                           std::to_string(kFileLimitMin + of_web) +
                           " are needed at least: raise the limit (ulimit -n, or LimitNOFILE= of "
                           "the service)");
  }
  uint32_t& wanted = config->core.limits.connections_max;
  const uint32_t fit = ConnectionsThatFit(wanted, file_limit - of_web);
  if (fit < wanted) {
    spdlog::warn(
        "connections-max lowered from {} to {}: only {} files may be open (ulimit -n, or "
        "LimitNOFILE= of the service)",
        wanted, fit, file_limit);
    wanted = fit;
  }
  std::error_code ignored;  // Then it is shown as the operator wrote it.
  const auto absolute = std::filesystem::absolute(config->data_dir, ignored).lexically_normal();
  if (!ignored) config->data_dir = absolute.string();
  if (config->cluster.on()) AdaptToCluster(config);
  return Status::Ok();
}

class Stopwatch {
 public:
  int64_t Ms() const { return BoottimeMs() - began_ms_; }
  int64_t began_ms() const { return began_ms_; }

 private:
  const int64_t began_ms_ = BoottimeMs();
};

Result<std::unique_ptr<store::RocksStore>> OpenStore(std::unique_ptr<store::LedgerLock> lock,
                                                     const ServerConfig& config,
                                                     store::RocksStoreOptions options) {
  options.durability = config.durability.mode;
  // A copy keeps this free, so that a backup does not end the grants.
  options.copy_leaves_bytes = config.core.limits.disk_free_high();
  options.nearly_full_bytes = config.core.limits.disk_free_high();
  options.on_background_error = [](const Status& failure) {
    DieOfIoError("ledger upkeep", failure);
  };
  auto store = store::RocksStore::Open(std::move(lock), options);
  // A new ledger is news: an operator may have named the wrong directory.
  if (store.ok() && (*store)->formatted_now()) {
    spdlog::info("formatted a new ledger in {}", config.data_dir);
  }
  if (store.ok()) {
    for (const std::string& note : (*store)->notes()) spdlog::warn("{}", note);
  }
  return store;
}

void LogRecovered(const recovery::RecoveredLedger& ledger, int64_t took_ms) {
  // The first batch raises the format; there is no way back to an older server.
  if (ledger.format.version < ledger::kFormatVersion) {
    spdlog::info(
        "the ledger has format version {} and gets {} now: versions of nowcalls that wrote {} do "
        "not open it any more",
        ledger.format.version, ledger::kFormatVersion, ledger.format.version);
  }
  if (!ledger.future.empty()) LogAt(Severity::kWarn, ledger.future);
  if (!ledger.time.has_value()) return;
  const ledger::RecoveredTime& time = *ledger.time;
  // Wall time counts across a boot only within bounds: a wrong clock could expire all tokens.
  if (time.clamped) {
    spdlog::warn(
        "the machine was started anew and its wall clock differs by {} ms from the last mark in "
        "the ledger; of that, {} ms are counted",
        time.wall_gap_ms, time.wall_gap_ms < 0 ? 0 : ledger::kRebootGapMsMax);
  } else if (!time.same_boot) {
    spdlog::info("the machine was started anew; {} ms passed by the wall clock", time.wall_gap_ms);
  }
  spdlog::info("recovered {} of {} and {} in {} ms, {} MiB resident",
               Counted(ledger.tokens, "token"), Counted(ledger.sessions, "session"),
               Counted(ledger.rules, "rule"), took_ms, ResidentBytes() >> 20);
}

// All that the ledger holds is served; only additions are refused.
void WarnIfBeyondLimits(const recovery::RecoveredLedger& ledger, const Limits& limits) {
  const auto warn = [](const char* setting, uint64_t max, uint64_t held, const char* what,
                       const char* refused) {
    if (held <= max) return;
    spdlog::warn("{} is {}, and the ledger holds {} {}: {} until enough of them have ended",
                 setting, max, held, what, refused);
  };
  warn("tokens-max", limits.tokens_max, ledger.tokens, "tokens", "nothing is granted");
  warn("sessions-max", limits.sessions_max, ledger.sessions, "sessions",
       "no new client is admitted");
}

void LogRuleFiles(const std::vector<LoadedRuleFile>& files) {
  for (const auto& [file, problem, parsed, fingerprint] : files) {
    if (!problem.ok()) continue;
    spdlog::debug("rule file {}: {} for namespace '{}', {} skipped", file.path,
                  Counted(parsed.rules.size(), "rule"), file.name_space, parsed.skipped.count());
  }
}

void LogBeginning(const ServerConfig& config, const std::vector<LoadedRuleFile>& rules) {
  spdlog::info("nowcalls-server {} (process {}), ledger in {}, durability {}", NOWCALLS_VERSION,
               getpid(), config.data_dir,
               config.cluster.on() ? "cluster" : config.durability.ToString());
  LogRuleFiles(rules);
}

// Loads the opened store and proves it complete.
Result<recovery::RecoveredLedger> RecoverFrom(store::RocksStore* store,
                                              const ServerConfig& config) {
  Result<recovery::RecoveredLedger> ledger = recovery::Recover(store, config.core);
  if (ledger.status().code() != StatusCode::kCorruption) return ledger;
  return Status::Corruption(ledger.status().message() + "; `nowcalls-admin verify --data-dir " +
                            config.data_dir + "` lists all that is wrong");
}

// A lost ledger must not be taken for a new one: tokens that are out would be granted again.
Status CheckRequiredLedger(const ServerConfig& config) {
  NOWCALLS_RETURN_IF_ERROR(SampleClocks().status());  // Without it no ledger can be begun.
  const Status present = store::CheckLedgerPresent(store::LedgerDir(config.data_dir));
  if (!config.require_ledger || present.code() != StatusCode::kNotFound) return {};
  // Remains of a ledger explain more than its absence.
  NOWCALLS_RETURN_IF_ERROR(store::CheckMayServe(config.data_dir));
  return Status::InvalidArgument(
      present.message() +
      ", and require-ledger says that there must be one: is data-dir right, and its volume "
      "mounted? To begin with an empty ledger, start once without require-ledger");
}

// Beside the cluster that goes on, a member would grant the same once more.
Status CheckIsNoMember(const ServerConfig& config) {
  const Result<std::optional<member::Identity>> identity = member::ReadIdentity(config.data_dir);
  if (!identity.ok()) return identity.status();
  if (!identity->has_value()) return Status::Ok();
  return Status::FailedPrecondition(
      "the ledger in " + config.data_dir + " is of cluster " + (*identity)->cluster +
      ": start with --cluster. To make a single server of it, end all members, and remove " +
      member::kIdentityFile + " from the data directory of the one that wrote last");
}

Status RunMember(const ServerConfig& config, const ConfigAgain& again, const ServeOptions& options,
                 Premises* premises, std::unique_ptr<store::LedgerLock> lock,
                 const std::function<void()>& ready) {
  MemberLife life(&config, &again, &options, premises,
                  [&](std::unique_ptr<store::LedgerLock> of_ledger,
                      const std::optional<ledger::Format>& format) {
                    store::RocksStoreOptions with = options.store;
                    with.format = format;
                    return OpenStore(std::move(of_ledger), config, with);
                  });
  Status ended = life.Run(std::move(lock), ready);
  if (ended.ok()) spdlog::info("closed in good order");
  return ended;
}

Status Run(const ServerConfig& config, ConfigAgain again, std::vector<LoadedRuleFile> rules,
           const ServeOptions& options) {
  const Stopwatch watch;
  std::optional<LongStart> starting(std::in_place);
  LogBeginning(config, rules);
  // 1. Before the ledger is touched: all mistakes that can be found so early.
  NOWCALLS_RETURN_IF_ERROR(CheckRequiredLedger(config));
  Premises premises(&config, &options);
  Result<std::unique_ptr<store::LedgerLock>> lock = premises.Enter();
  if (!lock.ok()) return lock.status();
  if (config.cluster.on()) {
    return RunMember(config, again, options, &premises, *std::move(lock),
                     [&] { starting.reset(); });
  }
  NOWCALLS_RETURN_IF_ERROR(CheckIsNoMember(config));
  // 2. Open, load, prove. Accept is the first call that may change an older ledger.
  auto store = OpenStore(*std::move(lock), config, options.store);
  if (!store.ok()) return store.status();
  spdlog::debug("the ledger is open after {} ms", watch.Ms());
  Result<recovery::RecoveredLedger> ledger = RecoverFrom(store->get(), config);
  if (!ledger.ok()) return ledger.status();
  NOWCALLS_RETURN_IF_ERROR((*store)->Accept());
  LogRecovered(*ledger, watch.Ms());
  WarnIfBeyondLimits(*ledger, config.core.limits);
  // 3. Serve until the end.
  const Result<Ended> ended = premises.Serve({.ledger = &*ledger,
                                              .store = store->get(),
                                              .local = store->get(),
                                              .close = [&] { return (*store)->Close(); },
                                              .rules = std::move(rules),
                                              .again = std::move(again),
                                              .serving = [&] { starting.reset(); },
                                              .began_ms = watch.began_ms()});
  if (!ended.ok()) return ended.status();
  spdlog::info("closed in good order");
  return Status::Ok();
}

}  // namespace

int Serve(ServerConfig config, std::function<Result<Invocation>()> read_again,
          std::vector<LoadedRuleFile> rules, const ServeOptions& options) {
  options.additions->ApplyTo(&config);
  // Copied before PrepareProcess lowers limits and makes paths absolute: changes compare with it.
  ConfigAgain again{.at_start = config};
  again.read = [read = std::move(read_again), additions = options.additions] {
    Result<Invocation> found = read();
    if (found.ok()) additions->ApplyTo(&found->config);
    return found;
  };
  Status status = PrepareProcess(&config);
  if (status.ok()) status = Run(config, std::move(again), std::move(rules), options);
  if (status.ok()) return kExitOk;
  LogAt(Severity::kError, status.message());
  return ExitCodeOf(status);
}

Result<backup::VerifySummary> VerifyInChild(const std::string& data_dir,
                                            const std::atomic<bool>& stop) {
  return backup::VerifyInProcess(backup::kThisProgram, data_dir, stop);
}

int ExitCodeOf(const Status& failure) {
  switch (failure.code()) {
    case StatusCode::kOk: return kExitOk;
    case StatusCode::kInvalidArgument: return kExitUsage;
    case StatusCode::kCorruption:
    case StatusCode::kFailedPrecondition: return kExitCorruption;
    default: return kExitIoError;
  }
}

}  // namespace nowcalls::server
