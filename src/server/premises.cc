#include "server/premises.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "access/gate.h"
#include "backup/backup.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/exit_codes.h"
#include "core/core.h"
#include "core/tables/flow_table.h"
#include "engine/figures.h"
#include "net/address.h"
#include "net/endpoint.h"
#include "nowcalls_version.h"
#include "recovery/machine_clock.h"
#include "server/cluster/copy_shelf.h"
#include "server/config/files.h"
#include "server/log/logging.h"
#include "server/loop/listener.h"
#include "store/disk/data_dir.h"
#include "web/http_server.h"

namespace nowcalls::server {
namespace {

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
std::vector<std::string> OwnAddresses(const std::vector<net::Endpoint>& listens) {
  std::vector<std::string> addresses;
  for (net::Endpoint address : listens) {
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
    if (to == LastCopyDir(config->data_dir)) {
      NOWCALLS_RETURN_IF_ERROR(PrepareCopies(config->data_dir));
    } else {
      NOWCALLS_RETURN_IF_ERROR(CheckBackupName(to, *config, *port_file));
    }
    return backup::MakeBackup(*store, config->data_dir, to,
                              std::string("nowcalls-server ") + NOWCALLS_VERSION, verify, stop,
                              begun);
  };
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

}  // namespace

Premises::Premises(const ServerConfig* config, const ServeOptions* options)
    : config_(config), options_(options), port_file_(config->port_file) {}

Result<std::unique_ptr<store::LedgerLock>> Premises::Enter() {
  NOWCALLS_RETURN_IF_ERROR(ReadSecurity());
  if (tls_ != nullptr) LogAt(Severity::kInfo, DescribeTls(*tls_));
  const std::string of_key = WarningOfKey(*config_);
  if (!of_key.empty()) LogAt(Severity::kWarn, of_key);
  // The lock, before the address: a second server of this ledger names the first, and ends.
  auto lock = store::LedgerLock::Take(config_->data_dir);
  if (!lock.ok()) return lock.status();
  spdlog::debug("no other server has the ledger in {}", (*lock)->ledger_dir());
  // Bound and not listening: peers are refused until the ledger is served.
  NOWCALLS_RETURN_IF_ERROR(TakeAddresses(config_->listen, &holds_));
  NOWCALLS_RETURN_IF_ERROR(StartWeb());
  // Only now: a server of another ledger that has the address may own this very file.
  NOWCALLS_RETURN_IF_ERROR(port_file_.Prepare());
  return lock;
}

Status Premises::ReadSecurity() {
  Result<AccessListPtr> access = ReadAccess(*config_);
  if (!access.ok()) return access.status();
  access_ = *std::move(access);
  Result<TlsContext> tls = LoadTls(*config_);
  if (!tls.ok()) return tls.status();
  tls_ = *std::move(tls);
  return Status::Ok();
}

// A standby may have waited for months. Files that are wrong now change nothing.
void Premises::ReadSecurityAgain() {
  Status read = ReadSecurity();
  if (read.ok() && web_ != nullptr && tls_ != nullptr) {
    read = web_->SetCertificate(HttpsOf(*config_, *tls_));
  }
  if (!read.ok()) LogAt(Severity::kWarn, read.message() + "; that of before counts");
}

// HTTP answers also while the ledger is being loaded.
Status Premises::StartWeb() {
  if (!config_->http && config_->sentinel.dashboard.host.empty()) return Status::Ok();
  const web::WebOptions options{
      .listen = config_->http,
      .hosts = config_->http_hosts,
      .figures = engine::FigureInfos(),
      .sentinel = config_->sentinel,
      .tls = tls_ == nullptr ? std::nullopt : std::optional(HttpsOf(*config_, *tls_)),
      .takes_plain = [this](const net::Peer& peer) { return MayBePlain(*config_, peer); },
      .gate = access::Gate(access_),
      .metrics_open = config_->http_metrics_open,
      .log =
          [](bool problem, const std::string& line) {
            LogAt(problem ? Severity::kWarn : Severity::kInfo, line);
          }};
  auto started = web::Web::Start(options, &board_);
  if (!started.ok()) return started.status();
  web_ = *std::move(started);
  if (!config_->http) return Status::Ok();
  std::string addresses;
  for (const HostPort& address : web_->addresses()) {
    addresses += std::string(addresses.empty() ? "" : " and ") + web_->scheme() + "://" +
                 address.ToString() + "/";
  }
  spdlog::info("page, metrics and health on {}", addresses);
  if (!config_->cluster.on()) return Status::Ok();
  // The page of a member that stands by is live, too.
  std::vector<net::Endpoint> listens;
  for (const HostPort& address : config_->listen) listens.push_back(net::Endpoint::Tcp(address));
  listens.push_back(net::Endpoint::Unix(OwnSocket(*config_)));
  Look(listens);
  return Status::Ok();
}

void Premises::Look(const std::vector<net::Endpoint>& addresses) {
  if (web_ != nullptr && !std::exchange(web_looks_, true)) web_->Look(OwnAddresses(addresses));
}

Result<Ended> Premises::Serve(Served served) {
  if (served.claim.on()) ReadSecurityAgain();
  // Of a writer that was deposed before.
  if (holds_.empty()) {
    NOWCALLS_RETURN_IF_ERROR(TakeAddresses(config_->listen, &holds_));
    NOWCALLS_RETURN_IF_ERROR(port_file_.Prepare());
  }
  store::RocksStore* const local = served.local;
  served.again.set_nearly_full = [local](uint64_t bytes) { local->SetNearlyFull(bytes); };
  const recovery::MachineClock clock(*served.ledger);
  // 1. Make the server, and commit the rule files before anybody connects.
  Server server(
      *config_, served.ledger, &clock, served.store,
      MakerOfBackups(local, config_, &port_file_, options_->verify),
      [this, close = std::move(served.close)] {
        // On the commit thread, at the end: first the port file, then the ledger and its lock.
        port_file_.Remove();
        return close();
      },
      &board_, std::move(served.again), options_->additions, tls_, served.claim);
  LetFollow(*config_, &server, web_.get());
  server.PutAccessInForce(access_);
  const Status in_force = server.PutRulesInForce(std::move(served.rules));
  if (in_force.code() == StatusCode::kFailedPrecondition && served.claim.on()) {
    return Ended{.deposed = true};
  }
  NOWCALLS_RETURN_IF_ERROR(in_force);
  WarnWithoutRules(*served.ledger->core, *config_);
  spdlog::debug("the rule files are dealt with after {} ms", BoottimeMs() - served.began_ms);
  // 2. Serve until the end.
  NOWCALLS_RETURN_IF_ERROR(LetIn(&server, served.ledger, clock, served.began_ms));
  if (served.serving) served.serving();
  server.Run();
  if (server.ended().deposed) port_file_.Remove();
  return server.ended();
}

// The port file comes last: it names a server that answers.
Status Premises::LetIn(Server* server, recovery::RecoveredLedger* ledger,
                       const ledger::Clock& clock, int64_t began_ms) {
  auto listeners = BindAll(*config_);
  if (!listeners.ok()) return listeners.status();
  holds_.clear();
  const uint16_t port = listeners->front()->address().tcp.port;
  std::vector<net::Endpoint> listens;
  for (const auto& listener : *listeners) listens.push_back(listener->address());
  const std::string addresses = AddressesOf(*listeners, tls_ != nullptr);
  // Grace counts from here: no client could come back while the disk took the rules.
  ledger->core->Begin(clock.Now());
  server->Start(*std::move(listeners));
  if (web_ != nullptr && !std::exchange(web_announces_, true)) web_->Announce(port);
  Look(listens);
  const Status written = port_file_.Write(port);
  if (!written.ok()) {
    LogAt(Severity::kError, written.message());
    ExitNow(kExitIoError);  // The loop's handles are open; a ledger needs no goodbye.
  }
  if (!config_->port_file.empty()) spdlog::debug("port {} is in {}", port, config_->port_file);
  spdlog::info("serving on {}, {} of {} recovered in {} ms", addresses,
               Counted(ledger->tokens, "token"), Counted(ledger->sessions, "session"),
               BoottimeMs() - began_ms);
  return Status::Ok();
}

}  // namespace nowcalls::server
