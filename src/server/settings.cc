#include "server/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kIntervalMsMax = 10'000;
constexpr int64_t kDiskBytesMax = int64_t{1} << 50;

constexpr std::string_view kServing = "Serving";
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

Status MustBe(std::string_view what, std::string_view got) {
  return Status::InvalidArgument("must be " + std::string(what) + ", got " + Quoted(got));
}

// The whole of `text` as a number.
template <typename T>
bool ParseNumber(std::string_view text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// The field of a configuration that a member of one of its parts names.
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
                std::string_view doc, int64_t min, int64_t max, T Part::*member) {
  Setting setting{name, group, value_name, doc, SettingKind::kInteger, {}, {}};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    int64_t value = 0;
    if (!ParseNumber(values.front(), &value) || value < min || value > max) {
      return MustBe("an integer from " + std::to_string(min) + " to " + std::to_string(max),
                    values.front());
    }
    Field(*config, member) = static_cast<T>(value);
    return Status::Ok();
  };
  setting.get = [=](const ServerConfig& config) { return std::to_string(Field(config, member)); };
  return setting;
}

template <typename Parse, typename Show>
Setting Text(std::string_view name, std::string_view group, std::string_view value_name,
             std::string_view doc, Parse parse, Show show) {
  Setting setting{name, group, value_name, doc, SettingKind::kText, {}, {}};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    return parse(values.front(), config);
  };
  setting.get = show;
  return setting;
}

Status ParseListen(const std::string& text, ServerConfig* config) {
  Result<HostPort> parsed = ParseHostPort(text);
  if (!parsed.ok()) return parsed.status();
  config->listen = *std::move(parsed);
  return Status::Ok();
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
  // Its other member is a setting of its own.
  config->durability.mode = mode;
  config->durability.interval_ms = interval_ms;
  return Status::Ok();
}

Status ParseLogLevel(const std::string& text, ServerConfig* config) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (text != LogLevelName(level)) continue;
    config->log_level = level;
    return Status::Ok();
  }
  return MustBe("debug, info, warn or error", text);
}

Status ParseLogFormat(const std::string& text, ServerConfig* config) {
  if (text != "text" && text != "json") return MustBe("text or json", text);
  config->log_format = text == "json" ? LogFormat::kJson : LogFormat::kText;
  return Status::Ok();
}

Status CheckApart(const RuleFile& a, const RuleFile& b) {
  if (a.name_space == b.name_space) {
    return Status::InvalidArgument("names two files for namespace " + Quoted(a.name_space) + ", " +
                                   a.path + " and " + b.path +
                                   "; a file is the whole rule set of its namespace");
  }
  if (a.path != b.path) return Status::Ok();
  return Status::InvalidArgument("names " + a.path + " for two namespaces, " +
                                 Quoted(a.name_space) + " and " + Quoted(b.name_space) +
                                 "; a flowId belongs to one namespace, so each needs its own file");
}

Status ParseRuleFiles(const std::vector<std::string>& values, ServerConfig* config) {
  std::vector<RuleFile> files;
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    RuleFile file{"default", value};
    if (equals != std::string::npos) {
      file = {value.substr(0, equals), value.substr(equals + 1)};
    }
    NOWCALLS_RETURN_IF_ERROR(
        CheckNamespace(file.name_space).WithContext(Quoted(value) + ": the namespace"));
    if (file.path.empty()) return MustBe("[NAMESPACE=]FILE", value);
    NOWCALLS_RETURN_IF_ERROR(
        CheckRuleSource(file.path).WithContext(Quoted(value) + ": the file's name"));
    for (const RuleFile& other : files) NOWCALLS_RETURN_IF_ERROR(CheckApart(other, file));
    files.push_back(std::move(file));
  }
  config->rules = std::move(files);
  return Status::Ok();
}

std::string ShowRuleFiles(const ServerConfig& config) {
  std::string text;
  for (const RuleFile& file : config.rules) {
    text += (text.empty() ? "" : ",") + file.name_space + "=" + file.path;
  }
  return text;
}

Setting Switch(std::string_view name, std::string_view group, std::string_view doc,
               bool ServerConfig::*member) {
  Setting setting{name, group, "", doc, SettingKind::kSwitch, {}, {}};
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

Setting RuleFiles() {
  return {"rules",
          kLedger,
          "[NS=]FILE",
          "The rules of a namespace (of \"default\" without NS), Sentinel's JSON. Repeatable; "
          "commas in the environment.",
          SettingKind::kList,
          ParseRuleFiles,
          ShowRuleFiles};
}

Status ParseExpireStrategy(const std::string& text, ServerConfig* config) {
  if (text != "default" && text != "strict") return MustBe("default or strict", text);
  config->core.expire_strategy =
      text == "strict" ? std::make_shared<StrictExpireStrategy>() : nullptr;
  config->expire_strategy_name = text;
  return Status::Ok();
}

Setting MassExpiryFactor() {
  Setting setting{"mass-expiry-factor",
                  kControl,
                  "N",
                  "Such clients have N times clientOfflineTime to come back; 1 to 1000.",
                  SettingKind::kNumber,
                  {},
                  {}};
  setting.set = [](const std::vector<std::string>& values, ServerConfig* config) {
    double value = 0;
    if (!ParseNumber(values.front(), &value) || !(value >= 1 && value <= 1000)) {
      return MustBe("a number from 1 to 1000", values.front());
    }
    config->core.mass_expiry_factor = value;
    return Status::Ok();
  };
  setting.get = [](const ServerConfig& config) {
    return NumberText(config.core.mass_expiry_factor);
  };
  return setting;
}

Setting ResourceTimeoutFactor() {
  Setting setting{"resource-timeout-factor",
                  kControl,
                  "N",
                  "A token not kept for resourceTimeout times N is taken back; 2 to 3.",
                  SettingKind::kNumber,
                  {},
                  {}};
  setting.set = [](const std::vector<std::string>& values, ServerConfig* config) {
    double value = 0;
    if (!ParseNumber(values.front(), &value) || !(value >= 2 && value <= 3)) {
      return MustBe("a number from 2 to 3", values.front());
    }
    config->core.resource_timeout_factor = value;
    return Status::Ok();
  };
  setting.get = [](const ServerConfig& config) {
    return NumberText(config.core.resource_timeout_factor);
  };
  return setting;
}

void AddMain(std::vector<Setting>* table) {
  using Config = ServerConfig;
  table->push_back(Text("listen", kServing, "HOST:PORT",
                        "Where to listen. Port 0 picks a free one; IPv6 is written [::1]:PORT.",
                        ParseListen, [](const Config& c) { return c.listen.ToString(); }));
  table->push_back(
      Switch("insecure-listen", kServing,
             "Allow an address that other machines can reach. There is no authentication yet.",
             &Config::insecure_listen));
  table->push_back(Switch("no-io-uring", kServing,
                          "Receive and send with system calls for each socket, not for many.",
                          &Config::no_io_uring));
  table->push_back(
      Text("port-file", kServing, "FILE",
           "Write the port here once the server serves; removed when it ends in good order.",
           ParsePortFile, [](const Config& c) { return c.port_file; }));
  table->push_back(Text("data-dir", kLedger, "DIR", "Where the ledger is; made if absent.",
                        ParseDataDir, [](const Config& c) { return c.data_dir; }));
  table->push_back(Switch("require-ledger", kLedger,
                          "Do not start where there is no ledger, rather than make an empty one.",
                          &Config::require_ledger));
  table->push_back(Text("durability", kLedger, "MODE",
                        "sync: answers wait for the disk; interval:MS: synced every MS; none: when "
                        "the system likes.",
                        ParseDurability, [](const Config& c) { return c.durability.ToString(); }));
  table->push_back(Integer("commit-inline-records-max", kLedger, "N",
                           "Of a quick disk, commits of at most so many records are made by the "
                           "thread that serves; 0: none.",
                           0, 100'000, &DurabilityChoice::inline_records_max));
  table->push_back(RuleFiles());
  table->push_back(Switch("rules-takeover", kLedger,
                          "Let the rule files have namespaces whose rules came by rules_load.",
                          &Config::rules_takeover));
  table->push_back(Text("log-level", kLogging, "LEVEL", "debug, info, warn or error.",
                        ParseLogLevel,
                        [](const Config& c) { return std::string(LogLevelName(c.log_level)); }));
  table->push_back(
      Text("log-format", kLogging, "FORMAT", "text, or json: one object a line.", ParseLogFormat,
           [](const Config& c) { return c.log_format == LogFormat::kJson ? "json" : "text"; }));
}

void AddControl(std::vector<Setting>* table) {
  using core::CoreOptions;
  constexpr int64_t kHourMs = 3'600'000;
  table->push_back(Integer("restart-grace-ms", kControl, "MS",
                           "How long sessions of before a restart are spared, at least; a token of "
                           "before it is spared for this or its hold, whichever is shorter.",
                           0, kHourMs, &CoreOptions::restart_grace_ms));
  table->push_back(ResourceTimeoutFactor());
  table->push_back(Text("expire-strategy", kControl, "NAME",
                        "default: spare tokens after restarts and network cuts; strict: reclaim "
                        "at once.",
                        ParseExpireStrategy,
                        [](const ServerConfig& c) { return c.expire_strategy_name; }));
  table->push_back(Integer("mass-expiry-percent", kControl, "N",
                           "When this part of the clients that hold tokens goes offline within "
                           "clientOfflineTime, it is taken for a network cut; 0: never.",
                           0, 100, &core::MassExpiryOptions::percent));
  table->push_back(Integer("mass-expiry-sessions-min", kControl, "N",
                           "Fewer clients that go offline together are no network cut.", 1,
                           1'000'000, &core::MassExpiryOptions::sessions_min));
  table->push_back(MassExpiryFactor());
  table->push_back(Integer("sweep-interval-ms", kControl, "MS",
                           "How often expired tokens are looked for.", 1, 60'000,
                           &CoreOptions::sweep_interval_ms));
  table->push_back(Integer("sweep-keys-max", kControl, "N",
                           "Expired tokens of one step; a full step is followed by the next.", 1,
                           1'000'000, &CoreOptions::sweep_keys_max));
  table->push_back(Integer("sweep-budget-us", kControl, "US",
                           "Time budget of one step in microseconds; 0: none.", 0, 10'000'000,
                           &CoreOptions::sweep_budget_us));
}

void AddLimits(std::vector<Setting>* table) {
  table->push_back(Integer("connections-max", kLimits, "N", "Open connections.", 1, 1'000'000,
                           &Limits::connections_max));
  table->push_back(Integer("sessions-max", kLimits, "N",
                           "Sessions that are online, or offline with tokens.", 1, 10'000'000,
                           &Limits::sessions_max));
  table->push_back(
      Integer("tokens-max", kLimits, "N", "Live tokens.", 1, 1'000'000'000, &Limits::tokens_max));
  table->push_back(Integer("requests-in-flight-max", kLimits, "N",
                           "Unanswered requests of a connection; then its bytes wait.", 1,
                           1'000'000, &Limits::requests_in_flight_max));
  table->push_back(Integer("waiters-per-rule-max", kLimits, "N",
                           "Acquires that wait for room under one rule.", 1, 1'000'000,
                           &Limits::waiters_per_rule_max));
  table->push_back(Integer("message-incomplete-ms", kLimits, "MS",
                           "From the first to the last byte of a message; then it is closed.", 1,
                           3'600'000, &Limits::message_incomplete_ms));
  table->push_back(Integer("input-total-bytes-max", kLimits, "BYTES",
                           "Unhandled input of all connections; then who holds most is closed.",
                           1 << 20, int64_t{1} << 36, &Limits::input_total_bytes_max));
  table->push_back(Integer("output-bytes-max", kLimits, "BYTES",
                           "Unread answers of a connection; then it is closed.", 65'536,
                           int64_t{1} << 30, &Limits::output_bytes_max));
  table->push_back(Integer("output-total-bytes-max", kLimits, "BYTES",
                           "Unread answers of all connections; then who has most is closed.",
                           1 << 20, int64_t{1} << 36, &Limits::output_total_bytes_max));
  table->push_back(Integer("output-stalled-ms", kLimits, "MS",
                           "A connection that reads nothing of its answers for so long is closed.",
                           1, 3'600'000, &Limits::output_stalled_ms));
  table->push_back(Integer("history-max", kLimits, "N",
                           "Reclaimed tokens that are remembered; 0: none.", 0, kHistoryEntriesMax,
                           &Limits::history_max));
  table->push_back(Integer("disk-free-low-bytes", kLimits, "BYTES",
                           "With less free for the ledger nothing is granted; 0: no such limit.", 0,
                           kDiskBytesMax, &Limits::disk_free_low_bytes));
  table->push_back(Integer("disk-free-high-bytes", kLimits, "BYTES",
                           "With so much free it is again; 0: a quarter more than the low one.", 0,
                           kDiskBytesMax, &Limits::disk_free_high_bytes));
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

const std::vector<Setting>& Settings() {
  static const std::vector<Setting> table = [] {
    std::vector<Setting> made;
    AddMain(&made);
    AddControl(&made);
    AddLimits(&made);
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
