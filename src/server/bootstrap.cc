#include "server/bootstrap.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
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
#include "core/tables/flow_table.h"
#include "engine/figures.h"
#include "net/address.h"
#include "net/endpoint.h"
#include "nowcalls_version.h"
#include "recovery/machine_clock.h"
#include "recovery/recovery.h"
#include "server/config/files.h"
#include "server/log/logging.h"
#include "server/loop/address_hold.h"
#include "server/loop/listener.h"
#include "server/port_file.h"
#include "server/security/access_file_watch.h"
#include "server/security/tls_port.h"
#include "server/server.h"
#include "server/service_manager.h"
#include "server/system.h"
#include "store/disk/data_dir.h"
#include "store/disk/ledger_files.h"
#include "store/disk/ledger_lock.h"
#include "store/rocks/rocks_store.h"
#include "web/board.h"
#include "web/http_server.h"
#include "web/web.h"

namespace nowcalls::server {
namespace {

// Files that connections of HTTP may take, beside those of the ledger.
uint64_t FilesOfWeb(const ServerConfig& config) {
  const int listeners = (config.http ? 1 : 0) + (config.sentinel.dashboard.host.empty() ? 0 : 1);
  return static_cast<uint64_t>(listeners) * web::HttpServer::kConnectionsMax;
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
  return Status::Ok();
}

class Stopwatch {
 public:
  int64_t Ms() const { return BoottimeMs() - began_ms_; }

 private:
  const int64_t began_ms_ = BoottimeMs();
};

// A name may have several addresses, and clients may try one that the server did not take.
void WarnOfOtherAddresses(const HostPort& listen) {
  const Result<std::vector<net::SocketAddress>> addresses = net::ResolveAll(listen);
  if (!addresses.ok() || addresses->size() < 2) return;
  std::string others;
  for (size_t i = 1; i < addresses->size(); ++i) {
    others += (i > 1 ? ", " : "") + net::ToHostPort((*addresses)[i]).ToString();
  }
  spdlog::warn("{} has several addresses: listening on {} alone, not on {}; name each in digits",
               listen.ToString(), net::ToHostPort(addresses->front()).ToString(), others);
}

// A wrong address must be known before a ledger is formatted.
Status TakeAddresses(const std::vector<HostPort>& listen, std::vector<AddressHold>* holds) {
  for (const HostPort& address : listen) {
    Result<AddressHold> taken = AddressHold::Take(address);
    if (!taken.ok()) return taken.status();
    holds->push_back(*std::move(taken));
    spdlog::debug("the address {} is free", address.ToString());
  }
  for (const HostPort& address : listen) WarnOfOtherAddresses(address);
  return Status::Ok();
}

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
  if (ledger.format_version < ledger::kFormatVersion) {
    spdlog::info(
        "the ledger has format version {} and gets {} now: versions of nowcalls that wrote {} do "
        "not open it any more",
        ledger.format_version, ledger::kFormatVersion, ledger.format_version);
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
               getpid(), config.data_dir, config.durability.ToString());
  LogRuleFiles(rules);
}

// A first start without rules serves, but limits nothing.
void WarnWithoutRules(const core::Core& core, const ServerConfig& config) {
  if (core.flows().rules() > 0) return;
  std::error_code ignored;  // Then the directory is named as the operator wrote it.
  const auto absolute = std::filesystem::absolute(config.data_dir, ignored);
  const std::string data_dir = ignored ? config.data_dir : absolute.lexically_normal().string();
  LogAt(Severity::kWarn,
        "no rules are in force, so nothing is limited: every acquire answers NO_RULE_EXISTS, for "
        "which Sentinel's clients let calls pass. Load some with --rules NS=FILE, or while the "
        "server runs with `nowcalls-admin rules load FILE --namespace NS`. The data directory is " +
            data_dir);
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

std::string OwnSocket(const ServerConfig& config) {
  return config.data_dir + "/" + std::string(net::kServerSocketName);
}

// A client's backup must not take a name that the next start, or a change of rules, needs.
Status CheckBackupName(const std::string& to, const ServerConfig& config,
                       const PortFile& port_file) {
  NOWCALLS_RETURN_IF_ERROR(port_file.CheckIsNot(to));
  std::vector<std::string> needed = {config.config_file, config.access_file, OwnSocket(config)};
  for (const RuleFile& file : config.rules) needed.push_back(file.path);
  for (const std::string& name : needed) {
    if (!IsSameName(to, name)) continue;
    return Status::InvalidArgument(to + " would be in the way of the server's file " + name +
                                   ": choose another name");
  }
  return {};
}

// HTTPS shows the certificate of the token port, and believes the same clients.
web::Https HttpsOf(const ServerConfig& config, const net::TlsServer& tls) {
  net::TlsServer::Pem pem = tls.pem();
  return {.certificate = std::move(pem.certificate),
          .key = std::move(pem.key),
          .client_ca = std::move(pem.client_ca),
          .clients = config.tls.clients,
          .version = config.tls.version};
}

// HTTP shows the certificate and asks the principals of the token port. `web` may be null; `config`
// outlives the server.
void LetFollow(const ServerConfig& config, Server* server, web::Web* web) {
  if (web == nullptr) return;
  server->WhenCertificateReplaced([&config, web](const net::TlsServer& tls) {
    const Status replaced = web->SetCertificate(HttpsOf(config, tls));
    if (!replaced.ok()) LogAt(Severity::kWarn, replaced.message() + "; HTTPS shows that of before");
  });
  server->WhenAccessReplaced([web](const AccessListPtr& list) {
    if (list != nullptr) web->SetAccess(access::Gate(list));
  });
}

// HTTP answers from here on, also while the ledger is being loaded. `config` outlives it.
Status StartWeb(const ServerConfig& config, std::span<const wire::FigureInfo> figures,
                const TlsContext& tls, const AccessListPtr& access, const web::Board& board,
                std::unique_ptr<web::Web>* web) {
  if (!config.http && config.sentinel.dashboard.host.empty()) return Status::Ok();
  const web::WebOptions options{
      .listen = config.http,
      .hosts = config.http_hosts,
      .figures = figures,
      .sentinel = config.sentinel,
      .tls = tls == nullptr ? std::nullopt : std::optional(HttpsOf(config, *tls)),
      .takes_plain = [&config](const net::Peer& peer) { return MayBePlain(config, peer); },
      .gate = access::Gate(access),
      .metrics_open = config.http_metrics_open,
      .log =
          [](bool problem, const std::string& line) {
            LogAt(problem ? Severity::kWarn : Severity::kInfo, line);
          }};
  auto started = web::Web::Start(options, &board);
  if (!started.ok()) return started.status();
  *web = *std::move(started);
  if (!config.http) return Status::Ok();
  std::string addresses;
  for (const HostPort& address : (*web)->addresses()) {
    addresses += std::string(addresses.empty() ? "" : " and ") + (*web)->scheme() + "://" +
                 address.ToString() + "/";
  }
  spdlog::info("page, metrics and health on {}", addresses);
  return Status::Ok();
}

// The addresses of the settings, in their order; then the server's own socket, by which its page
// and the machine's tools ask. A file system that knows no sockets must not stop a server.
Result<std::vector<std::unique_ptr<Listener>>> BindAll(const ServerConfig& config) {
  std::vector<std::unique_ptr<Listener>> listeners;
  for (const HostPort& address : config.listen) {
    auto bound = Listener::Bind(net::Endpoint::Tcp(address));
    if (!bound.ok()) return bound.status();
    listeners.push_back(*std::move(bound));
  }
  auto own = Listener::Bind(net::Endpoint::Unix(OwnSocket(config)));
  if (own.ok()) {
    listeners.push_back(*std::move(own));
  } else {
    LogAt(Severity::kWarn, own.status().message());
  }
  return listeners;
}

std::string AddressesOf(std::span<const std::unique_ptr<Listener>> listeners, bool tls) {
  std::string addresses;
  for (const auto& listener : listeners) {
    addresses += (addresses.empty() ? "" : " and ") + listener->address().ToString();
    if (tls && !listener->address().is_unix()) addresses += " (TLS)";
  }
  return addresses;
}

// How this machine reaches the server: by its own socket, if there is one.
std::vector<std::string> OwnAddresses(std::span<const std::unique_ptr<Listener>> listeners) {
  std::vector<std::string> addresses;
  for (const auto& listener : listeners) {
    net::Endpoint address = listener->address();
    if (address.tcp.host == "0.0.0.0") address.tcp.host = "127.0.0.1";
    if (address.tcp.host == "::") address.tcp.host = "::1";
    addresses.insert(addresses.begin(), address.ToString());
  }
  return addresses;
}

// All of them outlive what it returns, which runs on the backup thread.
BackupThread::Make MakerOfBackups(store::RocksStore* store, const ServerConfig* config,
                                  const PortFile* port_file, const backup::CopyVerifier& verify) {
  return [=](const std::string& to, const std::atomic<bool>& stop,
             const std::function<void()>& begun) -> Result<backup::Manifest> {
    NOWCALLS_RETURN_IF_ERROR(CheckBackupName(to, *config, *port_file));
    return backup::MakeBackup(*store, config->data_dir, to,
                              std::string("nowcalls-server ") + NOWCALLS_VERSION, verify, stop,
                              begun);
  };
}

// Once the server serves.
void WritePortFile(const std::string& path, PortFile* port_file, uint16_t port) {
  const Status written = port_file->Write(port);
  if (!written.ok()) {
    LogAt(Severity::kError, written.message());
    ExitNow(kExitIoError);  // The loop's handles are open; a ledger needs no goodbye.
  }
  if (!path.empty()) spdlog::debug("port {} is in {}", port, path);
}

Status ReadSecurity(const ServerConfig& config, AccessListPtr* access, TlsContext* tls) {
  Result<AccessListPtr> read = ReadAccess(config);
  if (!read.ok()) return read.status();
  *access = *std::move(read);
  Result<TlsContext> loaded = LoadTls(config);
  if (!loaded.ok()) return loaded.status();
  *tls = *std::move(loaded);
  if (*tls != nullptr) LogAt(Severity::kInfo, DescribeTls(**tls));
  const std::string of_key = WarningOfKey(config);
  if (!of_key.empty()) LogAt(Severity::kWarn, of_key);
  return Status::Ok();
}

Status Run(const ServerConfig& config, ConfigAgain again, std::vector<LoadedRuleFile> rules,
           const ServeOptions& options) {
  const Stopwatch watch;
  std::optional<LongStart> starting(std::in_place);
  LogBeginning(config, rules);
  // 1. Before the ledger is touched: all mistakes that can be found so early.
  NOWCALLS_RETURN_IF_ERROR(CheckRequiredLedger(config));
  AccessListPtr access;
  TlsContext tls;
  NOWCALLS_RETURN_IF_ERROR(ReadSecurity(config, &access, &tls));
  // The lock, before the address: a second server of this ledger names the first, and ends.
  auto lock = store::LedgerLock::Take(config.data_dir);
  if (!lock.ok()) return lock.status();
  spdlog::debug("no other server has the ledger in {}", (*lock)->ledger_dir());
  // Bound and not listening: peers are refused until recovery is done.
  std::vector<AddressHold> holds;
  NOWCALLS_RETURN_IF_ERROR(TakeAddresses(config.listen, &holds));
  const std::span<const wire::FigureInfo> figures = engine::FigureInfos();
  web::Board board;
  std::unique_ptr<web::Web> web;
  NOWCALLS_RETURN_IF_ERROR(StartWeb(config, figures, tls, access, board, &web));
  // Only now: a server of another ledger that has the address may own this very file.
  PortFile port_file(config.port_file);
  NOWCALLS_RETURN_IF_ERROR(port_file.Prepare());
  // 2. Open, load, prove. Accept is the first call that may change an older ledger.
  auto store = OpenStore(*std::move(lock), config, options.store);
  if (!store.ok()) return store.status();
  spdlog::debug("the ledger is open after {} ms", watch.Ms());
  Result<recovery::RecoveredLedger> ledger = RecoverFrom(store->get(), config);
  if (!ledger.ok()) return ledger.status();
  NOWCALLS_RETURN_IF_ERROR((*store)->Accept());
  LogRecovered(*ledger, watch.Ms());
  WarnIfBeyondLimits(*ledger, config.core.limits);
  // 3. Make the server, and commit the rule files before anybody connects.
  again.set_nearly_full = [&](uint64_t bytes) { (*store)->SetNearlyFull(bytes); };
  const recovery::MachineClock clock(*ledger);
  Server server(
      config, &*ledger, &clock, store->get(),
      MakerOfBackups(store->get(), &config, &port_file, options.verify),
      [&] {
        // On the commit thread, at the end: first the port file, then the ledger and its lock.
        port_file.Remove();
        return (*store)->Close();
      },
      &board, std::move(again), options.additions, tls);
  LetFollow(config, &server, web.get());
  server.PutAccessInForce(std::move(access));
  NOWCALLS_RETURN_IF_ERROR(server.PutRulesInForce(std::move(rules)));
  WarnWithoutRules(*ledger->core, config);
  spdlog::debug("the rule files are dealt with after {} ms", watch.Ms());
  // 4. Let peers in. The port file comes last: it names a server that answers.
  auto listeners = BindAll(config);
  if (!listeners.ok()) return listeners.status();
  holds.clear();
  const uint16_t port = listeners->front()->address().tcp.port;
  const std::vector<std::string> own_addresses = OwnAddresses(*listeners);
  const std::string addresses = AddressesOf(*listeners, tls != nullptr);
  // Grace counts from here: no client could come back while the disk took the rules.
  ledger->core->Begin(clock.Now());
  server.Start(*std::move(listeners));
  if (web != nullptr) web->Look(own_addresses, port);
  WritePortFile(config.port_file, &port_file, port);
  spdlog::info("serving on {}, {} of {} recovered in {} ms", addresses,
               Counted(ledger->tokens, "token"), Counted(ledger->sessions, "session"), watch.Ms());
  starting.reset();
  // 5. Serve until the end.
  server.Run();
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
