// ServerConfig: everything an operator can choose, and how the choice is read from flags, the
// environment and a TOML file.
//
// Thread: any, before the server starts; plain values. Flags beat environment variables, these
// beat the file, the file beats the defaults. Every error (kInvalidArgument) names the setting and
// where its value came from: "flag --durability", "environment NOWCALLS_DURABILITY",
// "nowcalls.toml:3: durability".
//
// What is unknown among flags and keys of the file is refused; an unknown variable is only warned
// about, since the environment is not the server's alone.
#ifndef NOWCALLS_SERVER_CONFIG_H_
#define NOWCALLS_SERVER_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_port.h"
#include "core/options.h"
#include "nowcalls/status.h"
#include "server/log_line.h"
#include "store/rocks/rocks_store.h"
#include "web/sentinel/options.h"

namespace nowcalls::server {

// A rule file and the namespace that it is the whole rule set of.
struct RuleFile {
  std::string name_space;
  std::string path;

  bool operator==(const RuleFile&) const = default;
};

struct DurabilityChoice {
  store::Durability mode = store::Durability::kSync;
  int64_t interval_ms = 0;  // 1 .. 10000 with kInterval.
  // Batches of at most so many records may be committed on the loop's thread; 0: none.
  uint32_t inline_records_max = 256;

  // "sync", "interval:50", "none".
  std::string ToString() const;
};

struct ServerConfig {
  HostPort listen{"127.0.0.1", 18730};  // Port 0: the system picks one.
  bool insecure_listen = false;         // Allows an address that is not loopback.
  bool no_io_uring = false;             // Each socket has system calls of its own.
  std::optional<HostPort> http;         // Page, metrics and health; none: there is no HTTP.
  std::vector<std::string> http_hosts;  // More names under which HTTP answers.
  web::SentinelDashboardOptions sentinel;
  std::string port_file;    // Empty: none.
  std::string config_file;  // That settings were read from; empty: none.
  std::string data_dir = "./nowcalls-data";
  bool require_ledger = false;  // Nothing is served where a new one would have to be made.
  DurabilityChoice durability;
  std::vector<RuleFile> rules;
  bool rules_takeover = false;  // The files may have namespaces whose rules came by RPC.
  bool rules_strict = false;    // A warning about a rule file is an error.
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  core::CoreOptions core;  // Carries the limits; the ledger fills in its token_id_key.
  std::string expire_strategy_name = "default";  // Of core.expire_strategy.
};

enum class Command { kServe, kCheckConfig, kHelp, kHelpMarkdown, kVersion };

struct Invocation {
  Command command = Command::kServe;
  ServerConfig config;
  std::vector<std::string> origins;   // Where each of Settings() got its value, in their order.
  std::vector<std::string> warnings;  // Of variables that are no settings, a sentence each.
};

// The environment variables that begin with NOWCALLS_, by name. An empty value counts as none.
using Environment = std::map<std::string, std::string>;

// Reads the command line, the environment and, if one is named, the configuration file. Help and
// version win over everything that may be wrong elsewhere.
Result<Invocation> ReadInvocation(int argc, const char* const* argv, const Environment& env);

// What --help prints, and what --check-config prints of the settings: value and origin of each.
std::string HelpText();
std::string DescribeSettings(const Invocation& invocation);

// The value of each setting for the log: "data-dir is /var/lib/nowcalls (flag --data-dir)".
std::vector<std::string> SettingSentences(const Invocation& invocation);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_H_
