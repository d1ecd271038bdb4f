#include "server/config/config.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "server/config/settings.h"
#include "server/config/settings_page.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::server {
namespace {

Result<Invocation> Read(const std::vector<std::string>& flags,
                        const Environment& environment = {}) {
  std::vector<const char*> argv = {"nowcalls-server"};
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  return ReadInvocation(static_cast<int>(argv.size()), argv.data(), environment);
}

std::string ErrorOf(const Result<Invocation>& result) {
  if (result.ok()) return "no error";
  CHECK(result.status().code() == StatusCode::kInvalidArgument);
  return result.status().message();
}

std::string OriginOf(const Invocation& invocation, std::string_view toml_key) {
  return invocation.origins[static_cast<size_t>(FindTomlKey(toml_key))];
}

TEST_CASE("without any configuration the server listens on loopback and syncs") {
  const auto invocation = Read({});
  REQUIRE(invocation.ok());
  CHECK(invocation->command == Command::kServe);
  CHECK(invocation->config.listen == std::vector<HostPort>{{"127.0.0.1", 18730}});
  CHECK(invocation->config.durability.mode == store::Durability::kSync);
  CHECK(invocation->config.data_dir == "./nowcalls-data");
  CHECK(invocation->config.rules.empty());
  for (const std::string& origin : invocation->origins) CHECK(origin == "default");
}

TEST_CASE("every default of the table is accepted by its own setting") {
  const ServerConfig defaults;
  for (const Setting& setting : Settings()) {
    CAPTURE(setting.name);
    const std::string text = setting.get(defaults);
    if (text.empty()) continue;
    ServerConfig config;
    CHECK(setting.set({text}, &config).ok());
    CHECK(setting.get(config) == text);
  }
}

// A value that the setting takes and that is not its default.
std::string OtherValue(const Setting& setting) {
  const ServerConfig defaults;
  for (const char* text :
       {"true", "7", "none", "json", "debug", "strict", "a=/b.json", "[::1]:9", "3", "20000000",
        "10.0.0.9", "shop=5", "required", "1.2", "loopback", "open", "etcd://h:1/p", "70000"}) {
    ServerConfig config;
    if (!setting.set({text}, &config).ok()) continue;
    if (setting.get(config) != setting.get(defaults)) return text;
  }
  FAIL("no value for ", setting.name);
  return {};
}

TEST_CASE("no setting changes another, in whatever order they are read") {
  const ServerConfig defaults;
  for (const Setting& first : Settings()) {
    const std::string value = OtherValue(first);
    ServerConfig config;
    REQUIRE(first.set({value}, &config).ok());
    const std::string shown = first.get(config);
    for (const Setting& second : Settings()) {
      if (second.name == first.name) continue;
      CAPTURE(first.name);
      CAPTURE(second.name);
      CHECK(second.set({OtherValue(second)}, &config).ok());
      CHECK(first.get(config) == shown);
    }
  }
}

TEST_CASE("flags beat the environment, which beats the file, which beats the defaults") {
  const testing::TempDir dir;
  const std::string file = dir.Sub("nowcalls.toml");
  testing::WriteStringToFile(file,
                             "data_dir = '/from-file'\ndurability = 'none'\n"
                             "sweep_interval_ms = 7\nlog_level = 'debug'\n");
  const auto invocation =
      Read({"--config", file, "--data-dir=/from-flag"},
           {{"NOWCALLS_DATA_DIR", "/from-environment"}, {"NOWCALLS_DURABILITY", "interval:50"}});
  REQUIRE(invocation.ok());
  const ServerConfig& config = invocation->config;
  CHECK(config.data_dir == "/from-flag");
  CHECK(config.durability.ToString() == "interval:50");
  CHECK(config.core.sweep_interval_ms == 7);
  CHECK(config.log_level == Severity::kDebug);
  CHECK(config.core.limits.connections_max == Limits{}.connections_max);
  CHECK(OriginOf(*invocation, "data_dir") == "flag --data-dir");
  CHECK(OriginOf(*invocation, "durability") == "environment NOWCALLS_DURABILITY");
  CHECK(OriginOf(*invocation, "log_level") == file + ":4: log_level");
  CHECK(OriginOf(*invocation, "connections_max") == "default");
}

TEST_CASE("the configuration file can be named in the environment, and a flag beats that too") {
  const testing::TempDir dir;
  testing::WriteStringToFile(dir.Sub("a.toml"), "data_dir = '/a'\n");
  testing::WriteStringToFile(dir.Sub("b.toml"), "data_dir = '/b'\n");
  const Environment environment = {{"NOWCALLS_CONFIG", dir.Sub("a.toml")}};
  CHECK(Read({}, environment)->config.data_dir == "/a");
  CHECK(Read({"--config", dir.Sub("b.toml")}, environment)->config.data_dir == "/b");
}

TEST_CASE("an empty environment variable counts as none") {
  CHECK(Read({}, {{"NOWCALLS_DURABILITY", ""}, {"NOWCALLS_CONFIG", ""}}).ok());
}

TEST_CASE("rule files name their namespace or belong to the default one") {
  const auto invocation = Read({"--rules", "shop=a.json", "--rules", "b.json"});
  REQUIRE(invocation.ok());
  const std::vector<RuleFile> expected = {{"shop", "a.json"}, {"default", "b.json"}};
  CHECK(invocation->config.rules == expected);
}

TEST_CASE("the first = ends the namespace of a rule file, so a path may have more") {
  const auto invocation = Read({"--rules", "shop=/day=1/a.json", "--rules", "default=b=2.json"});
  REQUIRE(invocation.ok());
  const std::vector<RuleFile> expected = {{"shop", "/day=1/a.json"}, {"default", "b=2.json"}};
  CHECK(invocation->config.rules == expected);
}

TEST_CASE("rule files of a flag replace those of the environment, which are split at commas") {
  const Environment environment = {{"NOWCALLS_RULES", "x=1.json,y=2.json"}};
  const std::vector<RuleFile> both = {{"x", "1.json"}, {"y", "2.json"}};
  CHECK(Read({}, environment)->config.rules == both);
  const std::vector<RuleFile> one = {{"z", "3.json"}};
  CHECK(Read({"--rules", "z=3.json"}, environment)->config.rules == one);
}

TEST_CASE("blanks around the commas of the environment are no part of a name") {
  const std::vector<RuleFile> both = {{"x", "1.json"}, {"y", "2 b.json"}};
  CHECK(Read({}, {{"NOWCALLS_RULES", " x=1.json,\t y=2 b.json "}})->config.rules == both);
  CHECK(ErrorOf(Read({}, {{"NOWCALLS_RULES", "x=1.json, "}})) ==
        "environment NOWCALLS_RULES: must be [NAMESPACE=]FILE, got ''");
}

TEST_CASE("a rule file whose name no start accepts is refused with the setting") {
  CHECK(ErrorOf(Read({"--rules", "shop=a\nb.json"}))
            .starts_with("flag --rules: 'shop=a\\x0ab.json': the file's name: must be UTF-8"));
}

TEST_CASE("one rule file for two namespaces is refused with both") {
  CHECK(ErrorOf(Read({"--rules", "a=x.json", "--rules", "b=x.json"})) ==
        "flag --rules: names x.json for two namespaces, 'a' and 'b'; a flowId belongs to one "
        "namespace, so each needs its own file");
}

TEST_CASE("ends are logged of flows by their number, of namespaces by their name, or of all") {
  const core::LogEnds none = Read({})->config.core.log_ends;
  CHECK_FALSE(none.any());
  const core::LogEnds some =
      Read({"--log-ends", "1001", "--log-ends=shop", "--log-ends=7"})->config.core.log_ends;
  CHECK(some.flows == std::set<int64_t>{7, 1001});
  CHECK(some.Has(FlowId{7}, "bank"));
  CHECK(some.Has(FlowId{8}, "shop"));
  CHECK_FALSE(some.Has(FlowId{8}, "bank"));
  const core::LogEnds all = Read({}, {{"NOWCALLS_LOG_ENDS", "all"}})->config.core.log_ends;
  CHECK(all.Has(FlowId{8}, "bank"));
  CHECK(DescribeSettings(*Read({"--log-ends=x", "--log-ends=12"})).find(" 12,x ") !=
        std::string::npos);
  CHECK(ErrorOf(Read({"--log-ends", "0"})) ==
        "flag --log-ends: must be a flow id of 1 or more, a namespace or all, got '0'");
  CHECK(ErrorOf(Read({"--log-ends", "99999999999999999999"})) ==
        "flag --log-ends: must be a flow id of 1 or more, a namespace or all, got "
        "'99999999999999999999'");
  CHECK(ErrorOf(Read({"--log-ends", ""})).starts_with("flag --log-ends: '': the namespace"));
}

TEST_CASE("a guard is of all namespaces, or of one by its name") {
  const auto read = Read({"--namespace-guard", "shop=50000", "--namespace-guard=a=b=0"},
                         {{"NOWCALLS_NAMESPACE_GUARD", "api=1"}});
  REQUIRE(read.ok());
  CHECK(read->config.core.guards().Of("shop") == 50'000);
  CHECK(read->config.core.guards().Of("a=b") == 0);
  CHECK(read->config.core.guards().Of("api") == 30'000);  // The flags replace the environment's.
  const auto of_environment = Read({}, {{"NOWCALLS_NAMESPACE_GUARD", "api=1, shop=2"}});
  REQUIRE(of_environment.ok());
  CHECK(of_environment->config.core.guards().Of("shop") == 2);
  for (const char* wrong : {"shop", "shop=", "shop=-1", "shop=1000000001", "=5"}) {
    CAPTURE(wrong);
    CHECK(ErrorOf(Read({"--namespace-guard", wrong})).starts_with("flag --namespace-guard: "));
  }
  CHECK(ErrorOf(Read({"--namespace-guard", "a=1", "--namespace-guard", "a=2"})) ==
        "flag --namespace-guard: names namespace 'a' twice");
}

TEST_CASE("two rule files for one namespace are refused") {
  CHECK(ErrorOf(Read({"--rules", "a.json", "--rules", "default=b.json"})) ==
        "flag --rules: names two files for namespace 'default', a.json and b.json; a file is the "
        "whole rule set of its namespace");
}

TEST_CASE("a value that is wrong is refused with the setting, its source and what is right") {
  CHECK(ErrorOf(Read({"--durability", "fast"})) ==
        "flag --durability: must be sync, none or interval:MS with MS from 1 to 10000, got 'fast'");
  CHECK(ErrorOf(Read({}, {{"NOWCALLS_DURABILITY", "interval:0"}})) ==
        "environment NOWCALLS_DURABILITY: must be sync, none or interval:MS with MS from 1 to "
        "10000, got 'interval:0'");
  CHECK(ErrorOf(Read({"--sweep-keys-max=0"})) ==
        "flag --sweep-keys-max: must be an integer from 1 to 1000000, got '0'");
  CHECK(ErrorOf(Read({"--sweep-keys-max=12x"})) ==
        "flag --sweep-keys-max: must be an integer from 1 to 1000000, got '12x'");
  CHECK(ErrorOf(Read({"--resource-timeout-factor=nan"})) ==
        "flag --resource-timeout-factor: must be a number from 2 to 3, got 'nan'");
  CHECK(ErrorOf(Read({"--log-level=loud"})) ==
        "flag --log-level: must be debug, info, warn or error, got 'loud'");
  CHECK(ErrorOf(Read({"--log-format", "xml"})) ==
        "flag --log-format: must be text or json, got 'xml'");
  CHECK(ErrorOf(Read({}, {{"NOWCALLS_INSECURE_LISTEN", "yes"}})) ==
        "environment NOWCALLS_INSECURE_LISTEN: must be true or false, got 'yes'");
  CHECK(
      ErrorOf(Read({"--rules", "=x.json"})).starts_with("flag --rules: '=x.json': the namespace"));
  CHECK(ErrorOf(Read({"--rules", "shop="})) ==
        "flag --rules: must be [NAMESPACE=]FILE, got 'shop='");
  CHECK(ErrorOf(Read({"--data-dir", ""})) == "flag --data-dir: must name a directory, got ''");
}

TEST_CASE("the watermarks of the disk are a pair, the high one not below the low one") {
  const Limits defaults;
  CHECK(defaults.disk_free_high() == 320 * 1024 * 1024);
  const auto low = Read({"--disk-free-low-bytes", "4000"});
  REQUIRE(low.ok());
  CHECK(low->config.core.limits.disk_free_low_bytes == 4000);
  CHECK(low->config.core.limits.disk_free_high() == 5000);
  CHECK(Read({"--disk-free-low-bytes", "7", "--disk-free-high-bytes", "7"}).ok());
  CHECK(Read({"--disk-free-low-bytes", "0", "--disk-free-high-bytes", "7"}).ok());
  CHECK(ErrorOf(Read({"--disk-free-low-bytes", "4000", "--disk-free-high-bytes", "3999"})) ==
        "flag --disk-free-high-bytes: must be at least disk-free-low-bytes, which is 4000, or 0 "
        "for a quarter more than that; got 3999");
}

TEST_CASE("an interval durability is taken from 1 to 10000 milliseconds") {
  CHECK(Read({"--durability=interval:1"})->config.durability.interval_ms == 1);
  CHECK(Read({"--durability=interval:10000"})->config.durability.interval_ms == 10'000);
  for (const char* wrong : {"interval:10001", "interval:-1", "interval:", "interval:1s"}) {
    CAPTURE(wrong);
    CHECK_FALSE(Read({std::string("--durability=") + wrong}).ok());
  }
}

TEST_CASE("a value of the file is refused with its line even if a flag would beat it") {
  const testing::TempDir dir;
  const std::string file = dir.Sub("c.toml");
  testing::WriteStringToFile(file, "\nsweep_keys_max = 0\n");
  CHECK(ErrorOf(Read({"--config", file, "--sweep-keys-max=5"})) ==
        file + ":2: sweep_keys_max: must be an integer from 1 to 1000000, got '0'");
}

TEST_CASE("a configuration file that cannot be read is refused with the reason") {
  CHECK(ErrorOf(Read({"--config", "/nonexistent/c.toml"})) ==
        "flag --config: cannot open /nonexistent/c.toml: No such file or directory");
}

TEST_CASE("what is wrong with a file that the environment names tells so") {
  const testing::TempDir dir;
  const std::string file = dir.Sub("c.toml");
  const Environment environment = {{"NOWCALLS_CONFIG", file}};
  CHECK(ErrorOf(Read({}, environment)) ==
        "environment NOWCALLS_CONFIG: cannot open " + file + ": No such file or directory");
  testing::WriteStringToFile(file, "\nduribility = 'none'\n");
  CHECK(ErrorOf(Read({}, environment)) ==
        "environment NOWCALLS_CONFIG: " + file +
            ":2: unknown key 'duribility'; did you mean durability?");
  CHECK(ErrorOf(Read({"--config", file})) ==
        file + ":2: unknown key 'duribility'; did you mean durability?");
}

TEST_CASE("an address of the file that is refused has its line") {
  const testing::TempDir dir;
  const std::string file = dir.Sub("c.toml");
  testing::WriteStringToFile(file, "\n\nlisten = '0.0.0.0:1'\n");
  CHECK(ErrorOf(Read({"--config", file})).starts_with(file + ":3: listen: 0.0.0.0:1 can be "));
}

TEST_CASE("a variable that is no setting is warned about, with the one that is near") {
  const auto warnings = [](const Environment& environment) {
    const auto invocation = Read({}, environment);
    REQUIRE(invocation.ok());
    return invocation->warnings;
  };
  using Warnings = std::vector<std::string>;
  CHECK(warnings({{"NOWCALLS_DURABILITY", "none"}, {"NOWCALLS_CONFIG", ""}}).empty());
  CHECK(warnings({{"NOWCALLS_DURIBILITY", "none"}, {"NOWCALLS_COLOUR", "red"}}) ==
        Warnings{"environment variable NOWCALLS_COLOUR is no setting and ignored",
                 "environment variable NOWCALLS_DURIBILITY is no setting and ignored; did you mean "
                 "NOWCALLS_DURABILITY?"});
  CHECK(warnings({{"NOWCALLS_data_dir", "x"}}) ==
        Warnings{"environment variable NOWCALLS_data_dir is no setting and ignored; did you mean "
                 "NOWCALLS_DATA_DIR?"});
  CHECK(warnings({{"NOWCALLS_COLOUR", ""}, {"NOWCALLS_SERVER", "localhost:1"}}).empty());
  CHECK(warnings({{"NOWCALLS_FORMAT", "jsonl"}}).empty());
}

TEST_CASE("a flag that does not exist, has no value or comes twice is refused") {
  CHECK(ErrorOf(Read({"--listne", "x"})) == "unknown flag '--listne'; did you mean --listen?");
  CHECK(ErrorOf(Read({"--colour=red", "--x"})) == "unknown flag '--colour'");
  CHECK(ErrorOf(Read({"--listen"})) == "--listen needs a value");
  CHECK(ErrorOf(Read({"--data-dir=a", "--data-dir=b"})) == "--data-dir is given more than once");
  CHECK(ErrorOf(Read({"stray", "second"})) == "unexpected argument 'stray'");
}

TEST_CASE("a flag whose value was forgotten does not take the next flag for it") {
  const auto invocation = Read({"--data-dir", "--check-config"});
  REQUIRE_FALSE(invocation.ok());
  CHECK(invocation.status().message() ==
        "--data-dir needs a value, got --check-config; write ./--check-config if a file of that "
        "name is meant");
  CHECK_FALSE(Read({"--config", "--check-config"}).ok());
  CHECK_FALSE(Read({"--rules", "--check-config"}).ok());
}

TEST_CASE("a value that a shell left empty is refused, and takes no other argument for it") {
  CHECK(ErrorOf(Read({"--data-dir=", "/tmp"})) ==
        "--data-dir= is empty; give it a value, or leave it out");
  CHECK(ErrorOf(Read({"--log-level=", "debug"})) ==
        "--log-level= is empty; give it a value, or leave it out");
  CHECK(ErrorOf(Read({"--config", ""})) == "--config is empty; give it a value, or leave it out");
  CHECK_FALSE(Read({"--data-dir", ""}).ok());
}

TEST_CASE("a switch takes no other value than true, so that false cannot mean true") {
  for (const char* flag : {"--insecure-listen=false", "--insecure-listen=maybe"}) {
    CHECK(ErrorOf(Read({flag, "--listen", "0.0.0.0:1"})) ==
          "--insecure-listen is a switch: give it alone, or leave it out; false can only be told "
          "by NOWCALLS_INSECURE_LISTEN or as insecure_listen in the configuration file");
  }
  CHECK(ErrorOf(Read({"--check-config=false"})) ==
        "--check-config is a switch: give it alone, or leave it out");
  CHECK(Read({"--insecure-listen=true", "--listen", "0.0.0.0:1"}).ok());
  CHECK(Read({"--insecure-listen", "--listen", "0.0.0.0:1"}).ok());
}

TEST_CASE("the access file is a path, and none unless told") {
  CHECK(Read({})->config.access_file.empty());
  CHECK(Read({"--access", "a.toml"})->config.access_file == "a.toml");
  CHECK(Read({}, {{"NOWCALLS_ACCESS", "b.toml"}})->config.access_file == "b.toml");
  // Without TLS secrets could be read on their way.
  CHECK_FALSE(Read({"--access", "a.toml", "--listen", "0.0.0.0:18730"}).ok());
}

TEST_CASE("an address that is not loopback needs the insecure switch") {
  const std::string error = ErrorOf(Read({"--listen", "0.0.0.0:18730"}));
  CHECK(error.starts_with("flag --listen: 0.0.0.0:18730 can be reached from other machines"));
  CHECK(error.find("--insecure-listen") != std::string::npos);
  CHECK_FALSE(Read({}, {{"NOWCALLS_LISTEN", "[::]:0"}}).ok());
  CHECK(Read({"--listen=0.0.0.0:0", "--insecure-listen"}).ok());
  CHECK(Read({"--listen=0.0.0.0:0"}, {{"NOWCALLS_INSECURE_LISTEN", "true"}}).ok());
  CHECK(Read({"--listen=127.8.9.10:1"}).ok());
  CHECK(Read({"--listen=[::1]:0"}).ok());
  CHECK(Read({"--listen=[::ffff:127.0.0.1]:0"}).ok());
  CHECK_FALSE(Read({"--listen=[::ffff:10.0.0.1]:0"}).ok());
}

TEST_CASE("commands of Sentinel's dashboard are answered on loopback unless told otherwise") {
  const auto invocation = Read({"--sentinel-dashboard=console:8080"},
                               {{"NOWCALLS_SENTINEL_COMMAND_PEERS", "10.0.0.9, 0:0::1"}});
  REQUIRE(invocation.ok());
  const web::SentinelDashboardOptions& sentinel = invocation->config.sentinel;
  CHECK(sentinel.dashboard.ToString() == "console:8080");
  CHECK(sentinel.listen.ToString() == "127.0.0.1:8719");
  CHECK(sentinel.app == "nowcalls");
  CHECK(sentinel.peers == std::vector<std::string>{"10.0.0.9", "::1"});
  const std::string open = "--sentinel-commands=0.0.0.0:8719";
  CHECK(ErrorOf(Read({"--sentinel-dashboard=console:8080", open}))
            .starts_with("flag --sentinel-commands: 0.0.0.0:8719 can be reached from other"));
  CHECK(Read({"--sentinel-dashboard=console:8080", open, "--insecure-listen"}).ok());
  CHECK(Read({open}).ok());  // Without a dashboard nothing listens there.
  CHECK(Read({"--sentinel-dashboard="}).ok() == false);
  CHECK(Read({"--http-hosts", "calls.example", "--http-hosts", "::1"})->config.http_hosts ==
        std::vector<std::string>{"calls.example", "::1"});
  for (const char* wrong : {"", "calls:80", "http://calls/", "a b"}) {
    CHECK(ErrorOf(Read({"--http-hosts", wrong}))
              .starts_with("flag --http-hosts: must be a host name or an address in digits, "
                           "without a port, got "));
  }
  CHECK(ErrorOf(Read({"--sentinel-command-peers", "console"})) ==
        "flag --sentinel-command-peers: must be an address in digits, got 'console'");
  CHECK(ErrorOf(Read({}, {{"NOWCALLS_SENTINEL_APP", "a\nb"}}))
            .starts_with("environment NOWCALLS_SENTINEL_APP: must be UTF-8 without control"));
}

TEST_CASE("principals and TLS guard the token port and HTTP, not the commands of a dashboard") {
  const std::vector<std::string> guarded = {"--access=a.toml", "--tls-cert=c.pem",
                                            "--tls-key=k.pem", "--sentinel-dashboard=console:8080"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = guarded;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  CHECK(Read(with({"--listen=0.0.0.0:18730", "--http=0.0.0.0:18731"})).ok());
  const std::string open = "--sentinel-commands=0.0.0.0:8719";
  const std::string error = ErrorOf(Read(with({open})));
  CHECK(error.starts_with("flag --sentinel-commands: 0.0.0.0:8719 can be reached from other"));
  CHECK(error.find("it knows neither TLS nor principals") != std::string::npos);
  // Addresses narrow who may ask, and are no proof.
  CHECK_FALSE(Read(with({open, "--sentinel-command-peers=10.0.0.9"})).ok());
  CHECK(Read(with({open, "--insecure-listen"})).ok());
}

TEST_CASE("metrics are open or as the access file says, which is the default") {
  CHECK_FALSE(Read({})->config.http_metrics_open);
  CHECK(Read({"--http-metrics", "open"})->config.http_metrics_open);
  CHECK_FALSE(Read({"--http-metrics", "access"})->config.http_metrics_open);
  CHECK(ErrorOf(Read({"--http-metrics", "all"})) ==
        "flag --http-metrics: must be open or access, got 'all'");
}

TEST_CASE("an address without a port, or with one too large, is refused") {
  CHECK(ErrorOf(Read({"--listen", "127.0.0.1"})).starts_with("flag --listen: '127.0.0.1'"));
  CHECK(ErrorOf(Read({"--listen", "127.0.0.1:65536"})).starts_with("flag --listen: "));
  CHECK(ErrorOf(Read({"--listen", "no such host:1"})).starts_with("flag --listen: "));
}

TEST_CASE("help and version win over everything that is wrong elsewhere") {
  CHECK(Read({"--help"}, {{"NOWCALLS_DURABILITY", "fast"}})->command == Command::kHelp);
  CHECK(Read({"--version", "--listen", "0.0.0.0:1"})->command == Command::kVersion);
  CHECK(Read({"-h"})->command == Command::kHelp);
  CHECK(Read({"-V"})->command == Command::kVersion);
  CHECK(Read({"--check-config"})->command == Command::kCheckConfig);
}

TEST_CASE("the help fits a terminal of 80 columns") {
  std::istringstream lines(HelpText());
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
}

TEST_CASE("the manual's page names every setting with its default and its range") {
  // A setting on one line.
  std::istringstream lines(SettingsPage());
  std::string page;
  for (std::string line; std::getline(lines, line);) {
    page += line.starts_with("  ") ? line.substr(1) : "\n" + line;
  }
  const ServerConfig defaults;
  for (const Setting& setting : Settings()) {
    CAPTURE(setting.name);
    const size_t begin =
        page.find("- `" + setting.flag() + (setting.value_name.empty() ? "`" : " "));
    REQUIRE(begin != std::string::npos);
    const std::string item = page.substr(begin, page.find('\n', begin) - begin);
    const std::string value = setting.get(defaults);
    const bool is_switch = setting.kind == SettingKind::kSwitch;
    CHECK(item.find(is_switch ? "(switch" : "(default " + (value.empty() ? "none" : value)) !=
          std::string::npos);
    CHECK((item.find("live): ") != std::string::npos) == setting.is_live());
    // A wrong value is refused with "... from 1 to 1000, got 'x'".
    ServerConfig config;
    const std::string refusal = setting.set({"x"}, &config).message();
    const size_t from = refusal.find(" from ");
    if (from == std::string::npos) continue;
    const std::string range = refusal.substr(from + 6, refusal.rfind(", got") - from - 6);
    CAPTURE(range);
    CHECK(item.find(range) != std::string::npos);
  }
}

TEST_CASE("the help names every setting with its variable and its default") {
  const std::string help = HelpText();
  const ServerConfig defaults;
  for (const Setting& setting : Settings()) {
    CAPTURE(setting.name);
    CHECK(help.find("  " + setting.flag()) != std::string::npos);
    CHECK(help.find(setting.environment()) != std::string::npos);
    CHECK(help.find(setting.doc) != std::string::npos);
  }
  CHECK(help.find("[127.0.0.1:18730]") != std::string::npos);
}

TEST_CASE("a checked configuration is shown with the origin of each value") {
  const auto invocation = Read({"--sweep-interval-ms=9"}, {{"NOWCALLS_LOG_FORMAT", "json"}});
  REQUIRE(invocation.ok());
  const std::string text = DescribeSettings(*invocation);
  const auto line_of = [&](const std::string& name) {
    const size_t at = text.find(name + " ");
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(line_of("sweep-interval-ms").find(" 9 ") != std::string::npos);
  CHECK(line_of("sweep-interval-ms").ends_with("flag --sweep-interval-ms"));
  CHECK(line_of("log-format").find(" json ") != std::string::npos);
  CHECK(line_of("log-format").ends_with("environment NOWCALLS_LOG_FORMAT"));
  CHECK(line_of("data-dir").ends_with("default"));
}

TEST_CASE("the log can be told each setting with its origin") {
  const auto invocation = Read({"--sweep-interval-ms=9"});
  REQUIRE(invocation.ok());
  const std::vector<std::string> sentences = SettingSentences(*invocation);
  CHECK(sentences.size() == Settings().size());
  const auto has = [&](const std::string& sentence) {
    return std::find(sentences.begin(), sentences.end(), sentence) != sentences.end();
  };
  CHECK(has("sweep-interval-ms is 9 (flag --sweep-interval-ms)"));
  CHECK(has("port-file is not set (default)"));
}

}  // namespace
}  // namespace nowcalls::server
