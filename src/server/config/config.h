// ServerConfig: settings of flags, environment and a TOML file.
//
// Thread: any; plain values. Flags beat the environment, then file, then defaults. Errors
// (kInvalidArgument) name setting and origin: "flag --durability", "nowcalls.toml:3: durability".
// Unknown flags and keys are errors, variables warnings.
#ifndef NOWCALLS_SERVER_CONFIG_CONFIG_H_
#define NOWCALLS_SERVER_CONFIG_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/network.h"
#include "base/host_port.h"
#include "core/options.h"
#include "net/tls.h"
#include "nowcalls/status.h"
#include "server/config/rule_url.h"
#include "server/log/log_line.h"
#include "store/rocks/rocks_store.h"
#include "web/sentinel/options.h"

namespace nowcalls::server {

// The whole rule set of its namespace.
struct RuleFile {
  std::string name_space;
  std::string path;

  bool operator==(const RuleFile&) const = default;
};

// How rules at http:// and https:// are asked for.
struct RuleHttpChoice {
  int64_t poll_ms = 10'000;
  std::string ca_file;      // Empty: the machine's authorities.
  std::string header_file;  // Of headers that are sent along; empty: none.
};

struct DurabilityChoice {
  store::Durability mode = store::Durability::kSync;
  int64_t interval_ms = 0;  // 1 .. 10000 with kInterval.
  // Largest batch committed by the loop, in records; 0: none.
  uint32_t inline_records_max = 256;

  // "sync", "interval:50", "none".
  std::string ToString() const;
};

// Whose connections to the port may be plain.
struct PlainChoice {
  // "off", "loopback", networks; empty: all where TLS is off, else those of this machine.
  std::vector<std::string> values;
  bool loopback = false;
  std::vector<access::Network> networks;
};

// A cluster's log in etcd.
struct ClusterChoice {
  std::string url;  // As it was written; empty: there is one server.
  std::vector<HostPort> endpoints;
  std::string prefix;
  std::optional<HostPort> advertise;  // Where clients reach this server; none: at `listen`.
  uint64_t log_bytes_max = 256 << 20;

  std::string peer_ca_file;  // Of the members' own certificates; empty: the machine's authorities.

  // Of the connections to etcd.
  bool tls = false;
  std::string ca_file;  // Empty: the machine's authorities.
  std::string certificate_file;
  std::string key_file;
  std::string user;
  std::string password_file;

  bool on() const { return !url.empty(); }
};

struct ServerConfig {
  // At least one. Port 0: the system picks one.
  std::vector<HostPort> listen{{"127.0.0.1", 18730}};
  bool insecure_listen = false;    // Allows an address that is not loopback.
  bool no_io_uring = false;        // Each socket has system calls of its own.
  bool http_metrics_open = false;  // /metrics asks nobody for a secret.
  net::TlsServerFiles tls;         // An empty certificate: TLS is off.
  PlainChoice plain;
  std::optional<HostPort> http;         // Page, metrics and health; none: there is no HTTP.
  std::vector<std::string> http_hosts;  // More names under which HTTP answers.
  web::SentinelDashboardOptions sentinel;
  std::string access_file;  // Of principals; empty: whoever connects is an administrator.
  std::string port_file;    // Empty: none.
  std::string config_file;  // That settings were read from; empty: none.
  std::string data_dir = "./nowcalls-data";
  ClusterChoice cluster;
  bool require_ledger = false;  // Nothing is served where a new one would have to be made.
  DurabilityChoice durability;
  std::vector<RuleFile> rules;
  std::vector<RuleUrl> rule_urls;  // Of other namespaces than the files.
  RuleHttpChoice rule_http;
  bool rules_takeover = false;  // The files may have namespaces whose rules came by RPC.
  bool rules_strict = false;    // A warning about a rule file is an error.
  Severity log_level = Severity::kInfo;
  LogFormat log_format = LogFormat::kText;
  core::CoreOptions core;  // Carries the limits; the ledger fills in its token_id_key.
  std::string expire_strategy_name = "default";  // Of core.expire_strategy.
};

enum class Command { kServe, kCheckConfig, kHelp, kHelpMan, kHelpMarkdown, kVersion };

struct Invocation {
  Command command = Command::kServe;
  ServerConfig config;
  std::vector<std::string> origins;   // Where each of Settings() got its value, in their order.
  std::vector<std::string> warnings;  // Of variables that are no settings, a sentence each.
};

inline constexpr char kConfigEnvironment[] = "NOWCALLS_CONFIG";

// Variables that begin with NOWCALLS_, by name. Empty counts as unset.
using Environment = std::map<std::string, std::string>;

// Help and version win over mistakes elsewhere.
Result<Invocation> ReadInvocation(int argc, const char* const* argv, const Environment& env);

// For --check-config: value and origin of each setting.
std::string DescribeSettings(const Invocation& invocation);

// For the log: "data-dir is /var/lib/nowcalls (flag --data-dir)".
std::vector<std::string> SettingSentences(const Invocation& invocation);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_CONFIG_H_
