#include "server/config/config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/near_name.h"
#include "base/text.h"
#include "client/security_settings.h"
#include "net/address.h"
#include "server/config/cluster_settings.h"
#include "server/config/config_file.h"
#include "server/config/files.h"
#include "server/config/rule_settings.h"
#include "server/config/settings.h"
#include "server/config/tls_settings.h"

namespace nowcalls::server {
namespace {

constexpr size_t kConfigFileBytesMax = 1024 * 1024;

struct Flags {
  bool help = false;
  bool version = false;
  bool check_config = false;
  std::string config_file;
  std::map<size_t, std::vector<std::string>> values;  // By position in Settings().
};

CLI::Option* AddFlag(const Setting& setting, std::vector<std::string>* values, CLI::App* app) {
  switch (setting.kind) {
    case SettingKind::kSwitch: return app->add_flag(setting.flag())->disable_flag_override();
    case SettingKind::kList:
    case SettingKind::kTable:
      return app->add_option(setting.flag(), *values)->expected(1)->take_all();
    default: values->resize(1); return app->add_option(setting.flag(), values->front());
  }
}

// A flag without its value takes the next flag for it.
Status CheckNoFlag(const std::string& flag, const std::string& value) {
  if (!value.starts_with("--")) return Status::Ok();
  return Status::InvalidArgument(flag + " needs a value, got " + value + "; write ./" + value +
                                 " if a file of that name is meant");
}

// Of a switch with a value, which CLI11 refuses unless it is true.
std::string AboutSwitch(const std::string& flag) {
  std::string text = flag + " is a switch: give it alone, or leave it out";
  for (const Setting& setting : Settings()) {
    if (setting.flag() != flag) continue;
    text += "; false can only be told by " + setting.environment() + " or as " +
            setting.toml_key() + " in the configuration file";
  }
  return text;
}

// CLI11's texts about values, reworded.
std::string Explain(const CLI::ParseError& error) {
  const std::string_view text = error.what();
  const std::string flag(text.substr(0, text.find_first_of(": ")));
  if (text.ends_with("disallowed flag override")) return AboutSwitch("--" + flag);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return std::string(text);
  return flag + (text.ends_with("missing") ? " needs a value" : " is given more than once");
}

Status CheckNothingLeft(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining();
  if (left.empty()) return Status::Ok();
  const std::string& first = left.front();
  if (!first.starts_with("-")) {
    return Status::InvalidArgument("unexpected argument " + Quoted(first));
  }
  const std::string flag = first.substr(0, first.find('='));
  std::vector<std::string> names = {"--config", "--check-config", "--help", "--version"};
  for (const Setting& setting : Settings()) names.push_back(setting.flag());
  return Status::InvalidArgument("unknown flag " + Quoted(flag) + DidYouMean(flag, names));
}

// CLI11 takes the arguments apart; precedence is decided here.
Result<Flags> ParseFlags(int argc, const char* const* argv) {
  const auto& table = Settings();
  Flags flags;
  if (const auto empty = EmptyOption(argc, argv)) return Status::InvalidArgument(*empty);
  CLI::App app;
  // 1. Declare flags; help comes from the table of settings, not from CLI11.
  app.set_help_flag("");
  app.add_flag("-h,--help", flags.help)->disable_flag_override();
  app.add_flag("-V,--version", flags.version)->disable_flag_override();
  app.add_flag("--check-config", flags.check_config)->disable_flag_override();
  const CLI::Option* config = app.add_option("--config", flags.config_file);
  std::vector<std::vector<std::string>> values(table.size());
  std::vector<CLI::Option*> options;
  for (size_t i = 0; i < table.size(); ++i) {
    options.push_back(AddFlag(table[i], &values[i], &app));
  }
  // 2. Parse. Unknown flags are left over, for an error that suggests the next name.
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help wins over a mistake elsewhere.
    if (flags.help || flags.version) return flags;
    return Status::InvalidArgument(Explain(error));
  }
  if (flags.help || flags.version) return flags;
  NOWCALLS_RETURN_IF_ERROR(CheckNothingLeft(app));
  NOWCALLS_RETURN_IF_ERROR(CheckNoFlag("--config", flags.config_file));
  if (config->count() > 0 && flags.config_file.empty()) {
    return Status::InvalidArgument("--config is empty; give it a value, or leave it out");
  }
  // 3. Keep the flags that were given; a switch has no value of its own.
  for (size_t i = 0; i < table.size(); ++i) {
    if (options[i]->count() == 0) continue;
    if (table[i].kind == SettingKind::kSwitch) values[i] = {"true"};
    for (const std::string& value : values[i]) {
      NOWCALLS_RETURN_IF_ERROR(CheckNoFlag(table[i].flag(), value));
    }
    flags.values[i] = std::move(values[i]);
  }
  return flags;
}

const std::string* NonEmpty(const Environment& env, const std::string& name) {
  const auto found = env.find(name);
  return found == env.end() || found->second.empty() ? nullptr : &found->second;
}

std::string Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin));
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.push_back(Trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Result<std::string> ReadConfigFile(const std::string& path) {
  Result<std::string> text = ReadWholeFile(path, kConfigFileBytesMax);
  if (!text.ok()) return Status::InvalidArgument(text.status().message());
  return text;
}

Status ApplyFile(const std::string& path, const std::string& text, Invocation* invocation) {
  Result<std::vector<FileValue>> values = ParseConfigFile(path, text);
  if (!values.ok()) return values.status();
  invocation->config.config_file = path;
  for (const FileValue& value : *values) {
    const Setting& setting = Settings()[value.setting];
    std::string& origin = invocation->origins[value.setting];
    origin = path + ":" + std::to_string(value.line) + ": " + setting.toml_key();
    NOWCALLS_RETURN_IF_ERROR(setting.set(value.values, &invocation->config).WithContext(origin));
  }
  return Status::Ok();
}

Status ApplyFileOf(const Flags& flags, const Environment& env, Invocation* invocation) {
  // The flag beats the variable.
  const std::string* named = NonEmpty(env, kConfigEnvironment);
  const bool by_flag = !flags.config_file.empty();
  if (!by_flag && named == nullptr) return Status::Ok();
  const std::string& path = by_flag ? flags.config_file : *named;
  const std::string origin =
      by_flag ? "flag --config" : "environment " + std::string(kConfigEnvironment);
  const Result<std::string> text = ReadConfigFile(path);
  if (!text.ok()) return text.status().WithContext(origin);
  const Status applied = ApplyFile(path, *text, invocation);
  // An operator who did not write --config needs to know where the name comes from.
  return by_flag ? applied : applied.WithContext(origin);
}

Status ApplyEnvironment(const Environment& env, Invocation* invocation) {
  const auto& table = Settings();
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string* value = NonEmpty(env, table[i].environment());
    if (value == nullptr) continue;
    std::vector<std::string> values = {*value};
    const SettingKind kind = table[i].kind;
    if (kind == SettingKind::kList || kind == SettingKind::kTable) values = SplitAtCommas(*value);
    invocation->origins[i] = "environment " + table[i].environment();
    NOWCALLS_RETURN_IF_ERROR(
        table[i].set(values, &invocation->config).WithContext(invocation->origins[i]));
  }
  return Status::Ok();
}

void WarnOfUnknown(const Environment& env, Invocation* invocation) {
  std::vector<std::string> names = {kConfigEnvironment};
  for (const Setting& setting : Settings()) names.push_back(setting.environment());
  // Variables of the tools.
  names.insert(names.end(), {"NOWCALLS_SERVER", "NOWCALLS_FORMAT"});
  for (const client::SecuritySetting& setting : client::kSecuritySettings) {
    names.emplace_back(setting.variable);
  }
  // A warning, no error: the environment is not the server's alone.
  for (const auto& [name, value] : env) {
    if (value.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    invocation->warnings.push_back("environment variable " + name + " is no setting and ignored" +
                                   DidYouMean(name, names));
  }
}

Status ApplyFlags(const Flags& flags, Invocation* invocation) {
  for (const auto& [i, values] : flags.values) {
    const Setting& setting = Settings()[i];
    invocation->origins[i] = "flag " + setting.flag();
    NOWCALLS_RETURN_IF_ERROR(
        setting.set(values, &invocation->config).WithContext(invocation->origins[i]));
  }
  return Status::Ok();
}

// Whom a port asks for when the server knows principals.
enum class Asks : uint8_t { kPrincipals, kNobody };

// Refuses an address that other machines can reach. `danger`: what they could do there.
Status CheckAddress(const Invocation& invocation, const char* setting, const HostPort& name,
                    const char* danger, Asks asks = Asks::kPrincipals) {
  const ServerConfig& config = invocation.config;
  const auto origin = invocation.origins[static_cast<size_t>(FindTomlKey(setting))];
  const auto addresses = net::ResolveAll(name);
  if (!addresses.ok()) {
    return Status::InvalidArgument(addresses.status().message()).WithContext(origin);
  }
  const bool can_ask = asks == Asks::kPrincipals;
  const bool guarded = can_ask && !config.access_file.empty() && !config.tls.certificate.empty();
  if (guarded || config.insecure_listen ||
      std::all_of(addresses->begin(), addresses->end(), net::IsLoopback)) {
    return Status::Ok();
  }
  return Status::InvalidArgument(
      origin + ": " + name.ToString() + " can be reached from other machines, and " +
      (can_ask ? "without --access and --tls-cert whoever connects "
               : "it knows neither TLS nor principals: whoever connects ") +
      danger + ". " + (can_ask ? "Add both, listen" : "Listen") +
      " on 127.0.0.1 or [::1], or add --insecure-listen if everybody on that network may do so");
}

// Two entries that cannot both be listened on: the second would fail when the ledger has been
// opened.
Status CheckListenApart(const Invocation& invocation) {
  const auto is_any = [](const std::string& host) { return host == "0.0.0.0" || host == "::"; };
  std::vector<HostPort> seen;
  for (const HostPort& name : invocation.config.listen) {
    const Result<net::SocketAddress> address = net::Resolve(name);
    if (!address.ok() || name.port == 0) continue;
    const HostPort digits = net::ToHostPort(*address);
    for (const HostPort& other : seen) {
      if (other.port != digits.port) continue;
      if (other != digits && !is_any(other.host) && !is_any(digits.host)) continue;
      return Status::InvalidArgument(
          invocation.origins[static_cast<size_t>(FindTomlKey("listen"))] + ": " + name.ToString() +
          " is within " + other.ToString() + ", which is named before it; name each address once");
    }
    seen.push_back(digits);
  }
  return {};
}

Status CheckListen(const Invocation& invocation) {
  const ServerConfig& config = invocation.config;
  NOWCALLS_RETURN_IF_ERROR(CheckListenApart(invocation));
  for (const HostPort& listen : config.listen) {
    NOWCALLS_RETURN_IF_ERROR(
        CheckAddress(invocation, "listen", listen, "can take and release everybody's tokens"));
  }
  constexpr const char* kCanRead = "can read who holds and waits for what";
  if (config.http) {
    NOWCALLS_RETURN_IF_ERROR(CheckAddress(invocation, "http", *config.http, kCanRead));
  }
  if (config.sentinel.dashboard.host.empty()) return Status::Ok();
  return CheckAddress(invocation, "sentinel_commands", config.sentinel.listen, kCanRead,
                      Asks::kNobody);
}

// Marks the wrong way round would start and stop grants with each look.
Status CheckDiskFree(const Invocation& invocation) {
  const Limits& limits = invocation.config.core.limits;
  if (limits.disk_free_high() >= limits.disk_free_low_bytes) return Status::Ok();
  return Status::InvalidArgument(
      invocation.origins[static_cast<size_t>(FindTomlKey("disk_free_high_bytes"))] +
      ": must be at least disk-free-low-bytes, which is " +
      std::to_string(limits.disk_free_low_bytes) + ", or 0 for a quarter more than that; got " +
      std::to_string(limits.disk_free_high_bytes));
}

}  // namespace

Result<Invocation> ReadInvocation(int argc, const char* const* argv, const Environment& env) {
  Invocation invocation;
  invocation.origins.assign(Settings().size(), "default");
  // Pages depend on no setting, so they are found before flags are parsed.
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag != "--help=markdown" && flag != "--help=man") continue;
    invocation.command = flag == "--help=man" ? Command::kHelpMan : Command::kHelpMarkdown;
    return invocation;
  }
  Result<Flags> flags = ParseFlags(argc, argv);
  if (!flags.ok()) return flags.status();
  if (flags->help || flags->version) {
    invocation.command = flags->help ? Command::kHelp : Command::kVersion;
    return invocation;
  }
  if (flags->check_config) invocation.command = Command::kCheckConfig;
  // From the weakest to the strongest: each source overwrites the one before.
  NOWCALLS_RETURN_IF_ERROR(ApplyFileOf(*flags, env, &invocation));
  NOWCALLS_RETURN_IF_ERROR(ApplyEnvironment(env, &invocation));
  NOWCALLS_RETURN_IF_ERROR(ApplyFlags(*flags, &invocation));
  // Checks of several settings, once all have their values.
  NOWCALLS_RETURN_IF_ERROR(CheckListen(invocation));
  NOWCALLS_RETURN_IF_ERROR(CheckDiskFree(invocation));
  NOWCALLS_RETURN_IF_ERROR(CheckTlsSettings(invocation.config));
  NOWCALLS_RETURN_IF_ERROR(CheckClusterSettings(invocation.config));
  NOWCALLS_RETURN_IF_ERROR(CheckRuleSettings(invocation.config));
  WarnOfUnknown(env, &invocation);
  return invocation;
}

std::string DescribeSettings(const Invocation& invocation) {
  constexpr size_t kNameColumns = 26;
  constexpr size_t kValueColumns = 58;
  const auto& table = Settings();
  std::string text;
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string value = table[i].get(invocation.config);
    std::string line(table[i].name);
    line.resize(kNameColumns, ' ');
    line += value.empty() ? "-" : value;
    line.resize(std::max(line.size() + 2, kValueColumns), ' ');
    text += line + invocation.origins[i] + "\n";
  }
  return text;
}

std::vector<std::string> SettingSentences(const Invocation& invocation) {
  std::vector<std::string> sentences;
  for (size_t i = 0; i < Settings().size(); ++i) {
    const Setting& setting = Settings()[i];
    const std::string value = setting.get(invocation.config);
    sentences.push_back(std::string(setting.name) + " is " + (value.empty() ? "not set" : value) +
                        " (" + invocation.origins[i] + ")");
  }
  return sentences;
}

}  // namespace nowcalls::server
