#include "server/config/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "net/address.h"
#include "server/config/cluster_settings.h"
#include "server/config/http_settings.h"
#include "server/config/rule_settings.h"
#include "server/config/setting_values.h"
#include "server/config/tls_settings.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kIntervalMsMax = 10'000;
constexpr int64_t kDiskBytesMax = int64_t{1} << 50;

constexpr std::string_view kServing = "Serving";
constexpr std::string_view kSentinel = "Sentinel's dashboard";
constexpr std::string_view kLedger = "Ledger and rules";
constexpr std::string_view kLogging = "Logging";
constexpr std::string_view kControl = "Concurrency control";
constexpr std::string_view kLimits = "Limits";

std::string Spelled(std::string_view name, char dash, bool upper) {
  std::string spelled(name);
  for (char& c : spelled) {
    if (c == '-') c = dash;
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return spelled;
}

// The field of a configuration that a pointer to a member of one of its parts names.
template <typename Config, typename T>
auto& Field(Config& config, T core::CoreOptions::*member) {
  return config.core.*member;
}
template <typename Config, typename T>
auto& Field(Config& config, T Limits::*member) {
  return config.core.limits.*member;
}

template <typename Config, typename T>
auto& Field(Config& config, T core::MassExpiryOptions::*member) {
  return config.core.mass_expiry.*member;
}

template <typename Config, typename T>
auto& Field(Config& config, T DurabilityChoice::*member) {
  return config.durability.*member;
}

template <typename Part, typename T>
Setting Integer(std::string_view name, std::string_view group, std::string_view value_name,
                std::string_view doc, std::string_view more, int64_t min, int64_t max,
                T Part::*member) {
  const std::string range = std::to_string(min) + " to " + std::to_string(max);
  Setting setting{name, group, value_name, doc, more, SettingKind::kInteger, range};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    int64_t value = 0;
    if (!ParseNumber(values.front(), &value) || value < min || value > max) {
      return MustBe("an integer from " + range, values.front());
    }
    Field(*config, member) = static_cast<T>(value);
    return Status::Ok();
  };
  setting.get = [=](const ServerConfig& config) { return std::to_string(Field(config, member)); };
  return setting;
}

// An integer that may change while the server runs.
template <typename Part, typename T>
Setting LiveInteger(std::string_view name, std::string_view group, std::string_view value_name,
                    std::string_view doc, std::string_view more, int64_t min, int64_t max,
                    T Part::*member) {
  Setting setting = Integer(name, group, value_name, doc, more, min, max, member);
  setting.apply = [=](const ServerConfig& from, ServerConfig* to) {
    Field(*to, member) = Field(from, member);
  };
  return setting;
}

template <typename Parse, typename Show>
Setting Text(std::string_view name, std::string_view group, std::string_view value_name,
             std::string_view doc, std::string_view more, Parse parse, Show show) {
  Setting setting{name, group, value_name, doc, more, SettingKind::kText};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    return parse(values.front(), config);
  };
  setting.get = show;
  return setting;
}

Status ParseListen(const std::vector<std::string>& values, ServerConfig* config) {
  if (values.empty()) return Status::InvalidArgument("must name at least one address");
  std::vector<HostPort> addresses;
  for (const std::string& value : values) {
    Result<HostPort> parsed = ParseHostPort(value);
    if (!parsed.ok()) return parsed.status();
    addresses.push_back(*std::move(parsed));
  }
  config->listen = std::move(addresses);
  return Status::Ok();
}

std::string ShowListen(const ServerConfig& config) {
  std::vector<std::string> addresses;
  for (const HostPort& address : config.listen) addresses.push_back(address.ToString());
  return ListText(addresses);
}

Status ParseDataDir(const std::string& text, ServerConfig* config) {
  if (text.empty()) return Status::InvalidArgument("must name a directory, got ''");
  config->data_dir = text;
  return Status::Ok();
}

Status ParsePortFile(const std::string& text, ServerConfig* config) {
  config->port_file = text;
  return Status::Ok();
}

Status ParseAccess(const std::string& text, ServerConfig* config) {
  config->access_file = text;
  return Status::Ok();
}

Status ParseDurability(const std::string& text, ServerConfig* config) {
  constexpr std::string_view kPrefix = "interval:";
  store::Durability mode = store::Durability::kSync;
  int64_t interval_ms = 0;
  if (text == "sync") {
    mode = store::Durability::kSync;
  } else if (text == "none") {
    mode = store::Durability::kNone;
  } else if (text.starts_with(kPrefix) && ParseNumber(text.substr(kPrefix.size()), &interval_ms) &&
             interval_ms >= 1 && interval_ms <= kIntervalMsMax) {
    mode = store::Durability::kInterval;
  } else {
    return MustBe("sync, none or interval:MS with MS from 1 to " + std::to_string(kIntervalMsMax),
                  text);
  }
  // inline_records_max is a setting of its own, so members are set one by one.
  config->durability.mode = mode;
  config->durability.interval_ms = interval_ms;
  return Status::Ok();
}

Status ParseLogLevel(const std::string& text, ServerConfig* config) {
  for (const Severity severity :
       {Severity::kDebug, Severity::kInfo, Severity::kWarn, Severity::kError}) {
    if (text != SeverityName(severity)) continue;
    config->log_level = severity;
    return Status::Ok();
  }
  return MustBe("debug, info, warn or error", text);
}

Status ParseLogFormat(const std::string& text, ServerConfig* config) {
  if (text != "text" && text != "json") return MustBe("text or json", text);
  config->log_format = text == "json" ? LogFormat::kJson : LogFormat::kText;
  return Status::Ok();
}

Setting Switch(std::string_view name, std::string_view group, std::string_view doc,
               std::string_view more, bool ServerConfig::*member) {
  Setting setting{name, group, "", doc, more, SettingKind::kSwitch};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    if (values.front() != "true" && values.front() != "false") {
      return MustBe("true or false", values.front());
    }
    config->*member = values.front() == "true";
    return Status::Ok();
  };
  setting.get = [=](const ServerConfig& config) { return config.*member ? "true" : "false"; };
  return setting;
}

Setting LogEndsSetting() {
  Setting setting{"log-ends",
                  kLogging,
                  "FLOW|NS|all",
                  "Log the tokens of a flow or namespace when they end; repeatable.",
                  "One line a token at level `info`, also for those that were released. A number "
                  "is a flow id, another word the namespace of the client. Beyond 5,000 lines a "
                  "second they are counted. The environment separates values by commas; TOML has "
                  "an array of strings. See [ends](monitoring.md#ends-of-tokens-in-the-log).",
                  SettingKind::kList};
  setting.set = ParseLogEnds;
  setting.get = ShowLogEnds;
  setting.apply = [](const ServerConfig& from, ServerConfig* to) {
    to->core.log_ends = from.core.log_ends;
  };
  return setting;
}

Setting NamespaceGuardSetting() {
  Setting setting{"namespace-guard",
                  kLimits,
                  "NS=N",
                  "The same for namespace NS alone; repeatable.",
                  "The environment separates them by commas; TOML has a table: `[namespace_guard]` "
                  "and `shop = 50000`.",
                  SettingKind::kTable,
                  "0 to " + std::to_string(kGuardMax)};
  setting.set = ParseNamespaceGuards;
  setting.get = ShowNamespaceGuards;
  setting.apply = [](const ServerConfig& from, ServerConfig* to) {
    to->core.namespace_guards = from.core.namespace_guards;
  };
  return setting;
}

Status ParseExpireStrategy(const std::string& text, ServerConfig* config) {
  if (text != "default" && text != "strict") return MustBe("default or strict", text);
  config->core.expire_strategy =
      text == "strict" ? std::make_shared<StrictExpireStrategy>() : nullptr;
  config->expire_strategy_name = text;
  return Status::Ok();
}

// A factor between whole numbers; fractions are allowed.
Setting Factor(std::string_view name, std::string_view doc, std::string_view more, int min, int max,
               double core::CoreOptions::*member) {
  const std::string range = std::to_string(min) + " to " + std::to_string(max);
  Setting setting{name, kControl, "N", doc, more, SettingKind::kNumber, range};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    double value = 0;
    // NaN compares false with both ends.
    if (!ParseNumber(values.front(), &value) || !(value >= min && value <= max)) {
      return MustBe("a number from " + range, values.front());
    }
    config->core.*member = value;
    return Status::Ok();
  };
  setting.get = [=](const ServerConfig& config) { return NumberText(config.core.*member); };
  return setting;
}

void AddServing(std::vector<Setting>* table) {
  using Config = ServerConfig;
  Setting listen{"listen",
                 kServing,
                 "HOST:PORT",
                 "Address to listen on; repeatable. Port 0 picks a free port.",
                 "IPv6: [::1]:18730. A host name must resolve when the server starts, else the "
                 "start ends with 64. DATA_DIR/server.sock is listened on, too; see "
                 "[sockets](operating.md#sockets).",
                 SettingKind::kList};
  listen.set = ParseListen;
  listen.get = ShowListen;
  table->push_back(std::move(listen));
  table->push_back(Switch("insecure-listen", kServing,
                          "Allow an address that other machines can reach.",
                          "Not needed with `--access` and TLS, but for `--sentinel-commands`; see "
                          "[security](security.md).",
                          &Config::insecure_listen));
  table->push_back(Text("access", kServing, "FILE", "Let in whom this file of principals names.",
                        "TOML. It is read again when it changes, and on SIGHUP; a faulty one keeps "
                        "the principals of before, and fails a start. Without it whoever connects "
                        "may do everything. See [security](security.md).",
                        ParseAccess, [](const Config& c) { return c.access_file; }));
  table->push_back(Switch("no-io-uring", kServing,
                          "Use one system call for each socket instead of io_uring.",
                          "See [sockets](operating.md#sockets).", &Config::no_io_uring));
  table->push_back(Text(
      "http", kServing, "HOST:PORT", "Serve a live page, metrics and health there by HTTP.",
      "See [monitoring](monitoring.md). Without an access file whoever reaches the address can "
      "read all that the server knows, and change nothing; insecure-listen applies to it, too.",
      ParseHttp, [](const Config& c) { return c.http ? c.http->ToString() : std::string(); }));
  Setting hosts{"http-hosts",
                kServing,
                "NAME",
                "Name under which HTTP answers, beside those it listens on; repeatable.",
                "A request with another name as Host is refused with 421, but for health; see "
                "[proxies](monitoring.md#behind-a-proxy).",
                SettingKind::kList};
  hosts.set = ParseHttpHosts;
  hosts.get = ShowHttpHosts;
  table->push_back(std::move(hosts));
  table->push_back(
      Text("http-metrics", kServing, "open|access", "Who may read /metrics.",
           "access: who may see by the access file, and of its namespaces alone; everybody without "
           "one. open: everybody, everything. See [metrics](monitoring.md#metrics).",
           ParseHttpMetrics, ShowHttpMetrics));
  table->push_back(
      Text("port-file", kServing, "FILE", "Write the port to this file once the server serves.",
           "An orderly end removes the file; so does the next start, once it has the address. "
           "The server refuses a FILE that is anything but an empty file or a port file, or that "
           "belongs to a living server, and leaves it alone.",
           ParsePortFile, [](const Config& c) { return c.port_file; }));
}

void AddSentinel(std::vector<Setting>* table) {
  using Config = ServerConfig;
  table->push_back(Text("sentinel-dashboard", kSentinel, "HOST:PORT",
                        "Show the server in the Sentinel dashboard there.",
                        "See [Sentinel's dashboard](sentinel.md#sentinels-dashboard).",
                        ParseDashboard, [](const Config& c) {
                          const HostPort& dashboard = c.sentinel.dashboard;
                          return dashboard.host.empty() ? "" : dashboard.ToString();
                        }));
  table->push_back(
      Text("sentinel-commands", kSentinel, "HOST:PORT", "Address at which the dashboard asks.",
           "When the port is taken, the next free one of 20. Without a dashboard "
           "nothing listens. Whoever reaches the address can read what the dashboard "
           "shows, and change nothing; insecure-listen applies to it, too.",
           ParseCommandListen, [](const Config& c) { return c.sentinel.listen.ToString(); }));
  table->push_back(Text("sentinel-app", kSentinel, "NAME",
                        "Application under which the dashboard lists the server.",
                        "Not that of an application which uses Sentinel itself.", ParseApp,
                        [](const Config& c) { return c.sentinel.app; }));
  Setting peers{"sentinel-command-peers",
                kSentinel,
                "ADDRESS",
                "Address that may ask for the dashboard, in digits; repeatable.",
                "Without one all may ask that reach the address.",
                SettingKind::kList};
  peers.set = ParseCommandPeers;
  peers.get = ShowCommandPeers;
  table->push_back(std::move(peers));
}

void AddLedger(std::vector<Setting>* table) {
  using Config = ServerConfig;
  table->push_back(Text(
      "data-dir", kLedger, "DIR", "Directory of the ledger, which is DIR/ledger; made if absent.",
      "The parent of DIR must exist.", ParseDataDir, [](const Config& c) { return c.data_dir; }));
  table->push_back(Switch("require-ledger", kLedger,
                          "Refuse to start without a ledger instead of making an empty one.",
                          "Guards against a volume that is not mounted; see "
                          "[service](service.md).",
                          &Config::require_ledger));
  table->push_back(Text("durability", kLedger, "MODE", "sync, interval:MS (1 to 10000) or none.",
                        "`sync`: answers wait for the disk. `interval:MS`: the log is synced "
                        "every MS. `none`: the operating system decides. See "
                        "[durability](operating.md#durability).",
                        ParseDurability, [](const Config& c) { return c.durability.ToString(); }));
  table->push_back(Integer("commit-inline-records-max", kLedger, "N",
                           "Largest commit that the serving thread makes itself; 0: none.",
                           "Applies while the disk is quick. `interval:MS` never commits so. See "
                           "[durability](operating.md#durability).",
                           0, 100'000, &DurabilityChoice::inline_records_max));
  AddRuleSettings(kLedger, table);
  table->push_back(
      Switch("rules-takeover", kLedger, "Let rule files replace rules that were loaded by RPC.",
             "See [one source](rules.md#one-source-for-each-namespace).", &Config::rules_takeover));
  table->push_back(Switch("rules-strict", kLedger, "Take a warning about a rule file for an error.",
                          "See [strict](rule-mistakes.md#strict).", &Config::rules_strict));
}

void AddLogging(std::vector<Setting>* table) {
  using Config = ServerConfig;
  Setting level =
      Text("log-level", kLogging, "LEVEL", "debug, info, warn or error.",
           "`debug` adds the settings, the rule files and each step of the start.", ParseLogLevel,
           [](const Config& c) { return std::string(SeverityName(c.log_level)); });
  level.apply = [](const Config& from, Config* to) { to->log_level = from.log_level; };
  table->push_back(std::move(level));
  table->push_back(Text("log-format", kLogging, "FORMAT", "text, or json: one object a line.",
                        "See [log](operating.md#log).", ParseLogFormat, [](const Config& c) {
                          return c.log_format == LogFormat::kJson ? "json" : "text";
                        }));
  table->push_back(LogEndsSetting());
}

void AddControl(std::vector<Setting>* table) {
  using core::CoreOptions;
  constexpr int64_t kHourMs = 3'600'000;
  table->push_back(Integer("restart-grace-ms", kControl, "MS",
                           "After a restart, spare sessions and tokens for this long.",
                           "See [after a restart](rules.md#after-a-restart).", 0, kHourMs,
                           &CoreOptions::restart_grace_ms));
  table->push_back(
      Factor("resource-timeout-factor", "Reclaim a token not kept for N times its resourceTimeout.",
             "Fractions such as 2.5 are allowed.", 2, 3, &CoreOptions::resource_timeout_factor));
  table->push_back(Text("expire-strategy", kControl, "NAME",
                        "default: spare tokens after restarts and network cuts; or strict.",
                        "`strict` reclaims at once.", ParseExpireStrategy,
                        [](const ServerConfig& c) { return c.expire_strategy_name; }));
  table->push_back(Integer("mass-expiry-percent", kControl, "N",
                           "Share of clients that must vanish to count as a network cut; 0: off.",
                           "Counts clients with a client id and tokens. See [network cuts]"
                           "(rules.md#when-many-clients-are-cut-off-together).",
                           0, 100, &core::MassExpiryOptions::percent));
  table->push_back(Integer("mass-expiry-sessions-min", kControl, "N",
                           "Fewer clients that vanish together are no network cut.",
                           "Each client counts once.", 1, 1'000'000,
                           &core::MassExpiryOptions::sessions_min));
  table->push_back(Factor(
      "mass-expiry-factor", "After a network cut, wait N times clientOfflineTime for clients.",
      "Fractions such as 1.5 are allowed.", 1, 1000, &CoreOptions::mass_expiry_factor));
  table->push_back(LiveInteger(
      "sweep-interval-ms", kControl, "MS", "Interval of the search for expired tokens.",
      "`executeRate` in Sentinel's ExpireStrategy.", 1, 60'000, &CoreOptions::sweep_interval_ms));
  table->push_back(LiveInteger("sweep-keys-max", kControl, "N",
                               "Expired tokens of one step; a full step starts the next at once.",
                               "`executeCount` in Sentinel.", 1, 1'000'000,
                               &CoreOptions::sweep_keys_max));
  table->push_back(LiveInteger(
      "sweep-budget-us", kControl, "US", "Time budget of one step in microseconds; 0: none.",
      "`executeDuration` in Sentinel.", 0, 10'000'000, &CoreOptions::sweep_budget_us));
}

void AddCountLimits(std::vector<Setting>* table) {
  table->push_back(Integer("connections-max", kLimits, "N", "Open connections.",
                           "The server lowers it, with a warning, to what the limit of open files "
                           "allows. The last 16, or a tenth if that is less, are for connections "
                           "from the machine itself, so that `nowcalls-admin` gets in.",
                           1, 1'000'000, &Limits::connections_max));
  table->push_back(LiveInteger("unidentified-max", kLimits, "N",
                               "Connections that the server does not know yet.",
                               "So are those that shake hands for TLS. Beyond, the oldest from the "
                               "address with most of them is closed.",
                               1, 1'000'000, &Limits::unidentified_max));
  table->push_back(LiveInteger("sessions-max", kLimits, "N",
                               "Sessions that are online, or offline with tokens.", "", 1,
                               10'000'000, &Limits::sessions_max));
  table->push_back(LiveInteger("tokens-max", kLimits, "N", "Live tokens.", "", 1, 1'000'000'000,
                               &Limits::tokens_max));
  table->push_back(LiveInteger("keys-max", kLimits, "N",
                               "Values of parameters that tokens hold or acquires wait for.", "", 1,
                               1'000'000'000, &Limits::keys_max));
  table->push_back(LiveInteger("requests-in-flight-max", kLimits, "N",
                               "Unanswered requests of a connection; beyond, it is not read.", "",
                               1, 1'000'000, &Limits::requests_in_flight_max));
  table->push_back(LiveInteger("waiters-per-rule-max", kLimits, "N",
                               "Acquires that wait for room under one rule, or one value of its "
                               "parameter.",
                               "", 1, 1'000'000, &Limits::waiters_per_rule_max));
  table->push_back(LiveInteger("waiter-bytes-max", kLimits, "BYTES",
                               "Memory of all acquires that wait for room; beyond it none waits.",
                               "The items of an acquire_all that waits take most of it.", 1 << 16,
                               int64_t{1} << 36, &Limits::waiter_bytes_max));
  table->push_back(
      LiveInteger("sentinel-wait-ms-max", kLimits, "MS",
                  "Longest wait for room of a Sentinel client's acquire; 0: none.",
                  "Where acquireRefuseStrategy 3 queues it. A Sentinel client gives up "
                  "after 20 ms, so keep it below that.",
                  0, kWaitMsMax, &Limits::sentinel_wait_ms_max));
  table->push_back(
      LiveInteger("namespace-qps-max", kLimits, "N",
                  "Requests for calls a second of one namespace's rules, a second.",
                  "Beyond it the answer is TOO_MANY_REQUEST. 0: as many as come. It is "
                  "`maxAllowedQps` in Sentinel.",
                  0, kGuardMax, &Limits::namespace_qps_max));
  table->push_back(NamespaceGuardSetting());
}

void AddByteLimits(std::vector<Setting>* table) {
  table->push_back(LiveInteger("message-incomplete-ms", kLimits, "MS",
                               "Time from a message's first byte to its last; then close.", "", 1,
                               3'600'000, &Limits::message_incomplete_ms));
  table->push_back(LiveInteger("input-total-bytes-max", kLimits, "BYTES",
                               "Unhandled input of all connections; then close the largest.",
                               "Requests count while they are incomplete or wait for their turn.",
                               1 << 20, int64_t{1} << 36, &Limits::input_total_bytes_max));
  table->push_back(LiveInteger("output-bytes-max", kLimits, "BYTES",
                               "Unread answers of one connection; then close it.",
                               "Not below the longest answer that clients ask for: 4 MiB is safe.",
                               65'536, int64_t{1} << 30, &Limits::output_bytes_max));
  table->push_back(
      LiveInteger("output-total-bytes-max", kLimits, "BYTES",
                  "Unread answers of all connections; then close the largest.",
                  "Three quarters of it may wait for a slow disk; listings wait beyond "
                  "one quarter.",
                  1 << 20, int64_t{1} << 36, &Limits::output_total_bytes_max));
  table->push_back(LiveInteger("output-stalled-ms", kLimits, "MS",
                               "Close a connection that reads none of its answers for this long.",
                               "", 1, 3'600'000, &Limits::output_stalled_ms));
  table->push_back(Integer("history-max", kLimits, "N",
                           "Ended tokens that the history keeps at least; 0: none.",
                           "Up to 255 more are kept. An entry takes some 200 bytes of memory and "
                           "100 of disk, at most 3 KiB. A smaller number drops the oldest at the "
                           "start.",
                           0, kHistoryEntriesMax, &Limits::history_max));
  table->push_back(LiveInteger("disk-free-low-bytes", kLimits, "BYTES",
                               "With less free disk, grant nothing; 0: no such limit.",
                               "See [full disk](operating.md#a-disk-that-fills-up).", 0,
                               kDiskBytesMax, &Limits::disk_free_low_bytes));
  table->push_back(LiveInteger("disk-free-high-bytes", kLimits, "BYTES",
                               "With this much free disk, grant again; 0: low + a quarter.",
                               "Not below the low one.", 0, kDiskBytesMax,
                               &Limits::disk_free_high_bytes));
}

}  // namespace

std::string DurabilityChoice::ToString() const {
  switch (mode) {
    case store::Durability::kSync: return "sync";
    case store::Durability::kInterval: return "interval:" + std::to_string(interval_ms);
    case store::Durability::kNone: return "none";
  }
  return "unknown";
}

std::string Setting::flag() const { return "--" + std::string(name); }
std::string Setting::environment() const { return "NOWCALLS_" + Spelled(name, '_', true); }
std::string Setting::toml_key() const { return Spelled(name, '_', false); }

// The order here is that of --help, of the manual's page and of --check-config.
const std::vector<Setting>& Settings() {
  static const std::vector<Setting> table = [] {
    std::vector<Setting> made;
    AddServing(&made);
    AddTlsSettings(&made);
    AddSentinel(&made);
    AddLedger(&made);
    AddClusterSettings(&made);
    AddLogging(&made);
    AddControl(&made);
    AddCountLimits(&made);
    AddByteLimits(&made);
    return made;
  }();
  return table;
}

int FindTomlKey(std::string_view key) {
  const auto& table = Settings();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Setting& s) { return s.toml_key() == key; });
  return found == table.end() ? -1 : static_cast<int>(found - table.begin());
}

}  // namespace nowcalls::server
