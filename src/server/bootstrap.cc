#include "server/bootstrap.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "nowcalls_version.h"
#include "server/files.h"
#include "server/listener.h"
#include "server/logging.h"
#include "server/recovery.h"
#include "server/server.h"
#include "server/system.h"
#include "store/rocks_store.h"

namespace nowcalls::server {
namespace {

void PrepareProcess(ServerConfig* config) {
  IgnoreSignals();
  const uint64_t file_limit = RaiseFileLimit();
  uint32_t& wanted = config->core.limits.connections_max;
  const uint32_t fit = ConnectionsThatFit(wanted, file_limit);
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
}

Result<std::unique_ptr<store::RocksStore>> OpenStore(const ServerConfig& config) {
  store::RocksStoreOptions options;
  options.durability = config.durability.mode;
  options.on_background_error = [](const Status& failure) {
    DieOfIoError("ledger write", failure);
  };
  auto store = store::RocksStore::Open(config.data_dir, options);
  if (store.ok() && (*store)->formatted_now()) {
    spdlog::info("formatted a new ledger in {}", config.data_dir);
  }
  return store;
}

void LogRecovered(const RecoveredLedger& ledger, int64_t took_ms) {
  if (!ledger.time.has_value()) return;
  const ledger::RecoveredTime& time = *ledger.time;
  if (time.clamped) {
    spdlog::warn(
        "the machine was started anew and its wall clock differs by {} ms from the last mark in "
        "the ledger; of that, {} ms are counted",
        time.wall_gap_ms, time.wall_gap_ms < 0 ? 0 : ledger::kRebootGapMsMax);
  } else if (!time.same_boot) {
    spdlog::info("the machine was started anew; {} ms passed by the wall clock", time.wall_gap_ms);
  }
  spdlog::info("recovered {} tokens of {} sessions and {} rules in {} ms, {} MiB resident",
               ledger.tokens, ledger.sessions, ledger.rules, took_ms, ResidentBytes() >> 20);
}

class PortFile {
 public:
  explicit PortFile(std::string path) : path_(std::move(path)) { Remove(); }
  ~PortFile() { Remove(); }
  PortFile(const PortFile&) = delete;
  PortFile& operator=(const PortFile&) = delete;

  Status Write(uint16_t port) const {
    if (path_.empty()) return Status::Ok();
    return ReplaceFile(path_, std::to_string(port) + "\n");
  }

 private:
  void Remove() const {
    if (!path_.empty()) unlink(path_.c_str());
  }

  std::string path_;
};

Status Run(const ServerConfig& config, std::vector<LoadedRuleFile> rules) {
  const int64_t began_ms = BoottimeMs();
  spdlog::info("nowcalls-server {} (process {}), ledger in {}, durability {}", NOWCALLS_VERSION,
               getpid(), config.data_dir, config.durability.ToString());
  auto store = OpenStore(config);
  if (!store.ok()) return store.status();
  // Only now: the lock on the ledger says that no other server is using this file.
  const PortFile port_file(config.port_file);
  Result<RecoveredLedger> ledger = Recover(store->get(), config.core);
  if (!ledger.ok()) return ledger.status();
  LogRecovered(*ledger, BoottimeMs() - began_ms);

  Server server(config, &*ledger, store->get(), [&] { return (*store)->Close(); });
  NOWCALLS_RETURN_IF_ERROR(server.LoadRules(std::move(rules)));
  auto listener = Listener::Bind(config.listen);
  if (!listener.ok()) return listener.status();
  const HostPort address = (*listener)->address();
  server.Start(*std::move(listener));
  const Status written = port_file.Write(address.port);
  if (!written.ok()) {
    LogAt(LogLevel::kError, "port file: " + written.message());
    std::_Exit(kExitIoError);  // The loop's handles are open; a ledger needs no goodbye.
  }
  spdlog::info("serving on {}, {} tokens of {} sessions recovered in {} ms", address.ToString(),
               ledger->tokens, ledger->sessions, BoottimeMs() - began_ms);
  server.Run();
  spdlog::info("closed in good order");
  return Status::Ok();
}

}  // namespace

int Serve(ServerConfig config, std::vector<LoadedRuleFile> rules) {
  PrepareProcess(&config);
  const Status status = Run(config, std::move(rules));
  if (status.ok()) return kExitOk;
  LogAt(LogLevel::kError, status.message());
  return ExitCodeOf(status);
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
