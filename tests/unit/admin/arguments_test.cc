#include "admin/arguments.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::admin {
namespace {

ParsedArguments Parse(std::vector<const char*> words, std::string_view environment_server = {},
                      std::string_view environment_format = {}) {
  words.insert(words.begin(), "nowcalls-admin");
  return ParseArguments(static_cast<int>(words.size()), words.data(),
                        {environment_server, environment_format});
}

// What the first line on stderr says; the exit code must be that of wrong usage.
std::string ErrorOf(const std::vector<const char*>& words) {
  const ParsedArguments parsed = Parse(words);
  CHECK_FALSE(parsed.arguments.has_value());
  CHECK(parsed.exit_code == 64);
  CHECK(parsed.out.empty());
  return parsed.err.substr(0, parsed.err.find('\n'));
}

TEST_CASE("without a source the default server is asked") {
  const Arguments arguments = *Parse({"stat"}).arguments;
  CHECK(arguments.command == Command::kStat);
  CHECK(arguments.server == "127.0.0.1:18730");
  CHECK(arguments.data_dir.empty());
  CHECK(arguments.timeout_ms == 5000);
  CHECK_FALSE(arguments.format.has_value());
}

TEST_CASE("the environment names the server that is asked unless the command line says otherwise") {
  constexpr char kOther[] = "[::1]:7";
  CHECK(Parse({"stat"}, kOther).arguments->server == kOther);
  CHECK(Parse({"ping"}, kOther).arguments->server == kOther);
  CHECK(Parse({"stat", "--server", "localhost:9"}, kOther).arguments->server == "localhost:9");
  CHECK(Parse({"stat", "--data-dir", "d"}, kOther).arguments->server.empty());
  for (const char* wrong : {"nowhere", "127.0.0.1:0"}) {
    const ParsedArguments parsed = Parse({"stat"}, wrong);
    CHECK(parsed.exit_code == 64);
    CHECK(parsed.err.starts_with("nowcalls-admin: NOWCALLS_SERVER: "));
    CHECK(Parse({"stat", "--server", "localhost:9"}, wrong).arguments.has_value());
    CHECK(Parse({"stat", "--data-dir", "d"}, wrong).arguments.has_value());
    CHECK(Parse({"rules", "check", "f"}, wrong).arguments.has_value());
  }
}

TEST_CASE("TLS and secrets are of commands that ask a server") {
  const client::SecuritySettings wrong{.tls = "perhaps"};
  const auto parse = [&](std::vector<const char*> words) {
    words.insert(words.begin(), "nowcalls-admin");
    return ParseArguments(static_cast<int>(words.size()), words.data(), {{}, {}, wrong});
  };
  CHECK(parse({"stat"}).err.starts_with("nowcalls-admin: NOWCALLS_TLS: "));
  CHECK(parse({"stat", "--server", "localhost:9"}).exit_code == 64);
  CHECK(parse({"stat", "--data-dir", "d"}).arguments.has_value());
  CHECK(parse({"rules", "check", "f"}).arguments.has_value());
  CHECK(Parse({"stat", "--tls", "--data-dir", "d"}).exit_code == 64);
}

TEST_CASE("the environment names the format unless the command line says otherwise") {
  CHECK(Parse({"stat"}, "", "table").arguments->format == Format::kTable);
  CHECK(Parse({"stat", "--format", "csv"}, "", "table").arguments->format == Format::kCsv);
  CHECK(
      Parse({"stat"}, "", "xml")
          .err.starts_with("nowcalls-admin: NOWCALLS_FORMAT: 'xml' is none of table, jsonl, csv"));
  CHECK(Parse({"stat", "--format", "csv"}, "", "xml").arguments.has_value());
  CHECK(Parse({"ping"}, "", "xml").arguments.has_value());
}

TEST_CASE("help has at most 80 columns, and no option is lost in it") {
  std::vector<std::vector<const char*>> commands = {{},
                                                    {"dump"},
                                                    {"stat"},
                                                    {"flow"},
                                                    {"tokens"},
                                                    {"sessions"},
                                                    {"history"},
                                                    {"info"},
                                                    {"ping"},
                                                    {"verify"},
                                                    {"repair"},
                                                    {"rules"},
                                                    {"rules", "list"},
                                                    {"rules", "load"},
                                                    {"rules", "diff"},
                                                    {"rules", "sources"},
                                                    {"rules", "check"},
                                                    {"reclaim"},
                                                    {"purge"},
                                                    {"drain"},
                                                    {"backup"},
                                                    {"restore"},
                                                    {"cluster"},
                                                    {"cluster", "handover"},
                                                    {"access"},
                                                    {"access", "add"},
                                                    {"access", "rotate"},
                                                    {"access", "list"},
                                                    {"access", "check"},
                                                    {"access", "test"}};
  for (auto& command : commands) {
    command.push_back("--help");
    const std::string help = Parse(command).out;
    CAPTURE(help);
    CHECK(help.find("--help") != std::string::npos);
    for (size_t at = 0; at < help.size();) {
      const size_t end = help.find('\n', at);
      REQUIRE(end != std::string::npos);
      CHECK(end - at <= 80);
      at = end + 1;
    }
  }
}

TEST_CASE("an option with nothing behind its '=' does not swallow the next word") {
  CHECK(ErrorOf({"dump", "--data-dir=", "--flow", "7"}) ==
        "nowcalls-admin: --data-dir= is empty; give it a value, or leave it out");
  CHECK(ErrorOf({"stat", "--format=", "csv"}) ==
        "nowcalls-admin: --format= is empty; give it a value, or leave it out");
  CHECK(Parse({"stat", "--format=csv"}).arguments->format == Format::kCsv);
}

TEST_CASE("sessions are filtered by client, namespace and whether they are online") {
  const Arguments online =
      *Parse({"sessions", "--client", "a", "--namespace", "shop", "--online"}).arguments;
  CHECK(online.filter.client_id == "a");
  CHECK(online.filter.name_space == "shop");
  CHECK(online.online == true);
  CHECK(Parse({"sessions", "--offline"}).arguments->online == false);
  CHECK_FALSE(Parse({"sessions"}).arguments->online.has_value());
  CHECK(ErrorOf({"sessions", "--offline", "--online"}) ==
        "nowcalls-admin: --online excludes --offline");
  CHECK(ErrorOf({"sessions", "--offline", "--data-dir", "d"}) ==
        "nowcalls-admin: --offline: a ledger on disk does not tell who is online; ask the server");
  CHECK(ErrorOf({"sessions", "--client", ""}) ==
        "nowcalls-admin: --client: must be 1..128 bytes, got 0");
}

TEST_CASE("all filters of a listing are read") {
  const Arguments arguments = *Parse({"tokens", "--data-dir", "/var/lib/nowcalls", "--limit", "7",
                                      "--flow", "101", "--client", "@10.0.0.1:999", "--namespace",
                                      "shop", "--min-age", "1m30s", "--format", "csv"})
                                   .arguments;
  CHECK(arguments.command == Command::kTokens);
  CHECK(arguments.data_dir == "/var/lib/nowcalls");
  CHECK(arguments.server.empty());
  CHECK(arguments.limit == 7);
  CHECK(arguments.filter.flow_id == 101);
  CHECK(arguments.filter.client_id == "@10.0.0.1:999");
  CHECK(arguments.filter.name_space == "shop");
  CHECK(arguments.filter.min_age_ms == 90'000);
  CHECK(arguments.format == Format::kCsv);
}

TEST_CASE("commands with operands read them") {
  CHECK(Parse({"flow", "101"}).arguments->flow_id == 101);
  const Arguments reclaim =
      *Parse({"reclaim", "9223372036854775807", "--reason", "stuck since noon"}).arguments;
  CHECK(reclaim.command == Command::kReclaim);
  CHECK(reclaim.token_id == 9223372036854775807u);
  CHECK(reclaim.reason == "stuck since noon");
  const Arguments load = *Parse({"rules", "load", "--namespace", "shop", "rules.json"}).arguments;
  CHECK(load.command == Command::kRulesLoad);
  CHECK(load.name_space == "shop");
  CHECK(load.file == "rules.json");
  const Arguments diff = *Parse({"rules", "diff", "x.json", "--namespace", "shop"}).arguments;
  CHECK(diff.command == Command::kRulesDiff);
  CHECK(diff.name_space == "shop");
  CHECK(diff.file == "x.json");
  CHECK(diff.server == kDefaultServer);
  CHECK(Parse({"rules", "sources", "--data-dir", "d"}).arguments->data_dir == "d");
  CHECK(Parse({"rules", "list"}).arguments->command == Command::kRulesList);
  CHECK(Parse({"rules", "check", "x"}).arguments->command == Command::kRulesCheck);
  CHECK(Parse({"rules", "check", "-"}).arguments->file == "-");
  const Arguments ping = *Parse({"ping", "--timeout", "100"}).arguments;
  CHECK(ping.command == Command::kPing);
  CHECK(ping.server == kDefaultServer);
  CHECK(ping.timeout_ms == 100);
  CHECK(Parse({"verify", "--data-dir", "d", "--max-problems", "0"}).arguments->problems_max == 0);
}

TEST_CASE("a cluster is shown, or hands over") {
  const Arguments shown = *Parse({"cluster", "--server", "a:1,b:1", "--format", "csv"}).arguments;
  CHECK(shown.command == Command::kCluster);
  CHECK(shown.server == "a:1,b:1");
  CHECK(shown.format == Format::kCsv);
  CHECK(shown.timeout_ms == 5'000);
  const Arguments handover = *Parse({"cluster", "handover", "--server", "a:1,b:1"}).arguments;
  CHECK(handover.command == Command::kHandover);
  CHECK(handover.server == "a:1,b:1");
  CHECK(handover.timeout_ms == 30'000);
  CHECK(Parse({"cluster", "handover", "--timeout", "7"}).arguments->timeout_ms == 7);
  CHECK(Parse({"cluster", "--timeout", "7", "handover"}).arguments->timeout_ms == 7);
}

TEST_CASE("reclaims, purges and drains name what they are about") {
  const Arguments client =
      *Parse({"reclaim", "--client", "cart-1", "--namespace", "shop", "--reason", "hung", "--yes"})
           .arguments;
  CHECK(client.command == Command::kReclaimClient);
  CHECK(client.client_id == "cart-1");
  CHECK(client.name_space == "shop");
  CHECK(client.reason == "hung");
  CHECK(client.yes);
  const Arguments flow = *Parse({"reclaim", "--flow", "7", "--reason", "hung"}).arguments;
  CHECK(flow.command == Command::kReclaimFlow);
  CHECK(flow.flow_id == 7);
  CHECK_FALSE(flow.yes);
  const Arguments purge = *Parse({"purge", "--flow", "7"}).arguments;
  CHECK(purge.command == Command::kPurge);
  CHECK(purge.flow_id == 7);
  CHECK(purge.reason.empty());
  CHECK(Parse({"purge", "--flow", "7", "--reason", "old"}).arguments->reason == "old");
  CHECK(Parse({"drain", "--flow", "7", "--reason", "old"}).arguments->reason == "old");
  CHECK(Parse({"drain", "--flow", "7"}).arguments->command == Command::kDrain);
  CHECK_FALSE(Parse({"drain", "--flow", "7"}).arguments->off);
  CHECK(Parse({"drain", "--flow", "7", "--off"}).arguments->off);
  const Arguments space = *Parse({"reclaim", "--namespace", "shop", "--reason", "hung"}).arguments;
  CHECK(space.command == Command::kReclaimNamespace);
  CHECK(space.name_space == "shop");
  const Arguments drains = *Parse({"drain", "--namespace", "shop"}).arguments;
  CHECK(drains.command == Command::kDrainNamespace);
  CHECK(drains.name_space == "shop");
}

TEST_CASE("a backup and a restore name where from and where to") {
  const Arguments live = *Parse({"backup", "--to", "/b"}).arguments;
  CHECK(live.command == Command::kBackup);
  CHECK(live.to == "/b");
  CHECK(live.server == kDefaultServer);
  CHECK(live.data_dir.empty());
  CHECK(live.timeout_ms == 3'600'000);
  CHECK(Parse({"backup", "--to", "/b", "--timeout", "7"}).arguments->timeout_ms == 7);
  CHECK(Parse({"ping"}).arguments->timeout_ms == 5000);
  const Arguments at_rest = *Parse({"backup", "--data-dir", "d", "--to", "/b"}).arguments;
  CHECK(at_rest.data_dir == "d");
  CHECK(at_rest.server.empty());
  const Arguments restore = *Parse({"restore", "--from", "/b", "--data-dir", "d"}).arguments;
  CHECK(restore.command == Command::kRestore);
  CHECK(restore.from == "/b");
  CHECK(restore.data_dir == "d");
  CHECK(ErrorOf({"backup"}) == "nowcalls-admin: --to is required");
  CHECK(ErrorOf({"restore", "--from", "/b"}) == "nowcalls-admin: --data-dir is required");
  CHECK(ErrorOf({"restore", "--data-dir", "d"}) == "nowcalls-admin: --from is required");
}

TEST_CASE("a reclaim of everything, of nothing or of two things at once is refused") {
  constexpr char kChoice[] =
      "nowcalls-admin: reclaim: takes one of TOKEN_ID, --client ID with --namespace NS, --flow "
      "FLOW, and --namespace NS";
  CHECK(ErrorOf({"reclaim", "--reason", "x"}) == kChoice);
  CHECK(ErrorOf({"reclaim", "5", "--flow", "7", "--reason", "x"}) == kChoice);
  CHECK(ErrorOf({"reclaim", "--client", "c", "--namespace", "n", "--flow", "7", "--reason", "x"}) ==
        kChoice);
  CHECK(ErrorOf({"reclaim", "--client", "c", "--reason", "x"}) ==
        "nowcalls-admin: --client requires --namespace");
  CHECK(ErrorOf({"reclaim", "5", "--namespace", "n", "--reason", "x"}) == kChoice);
  CHECK(ErrorOf({"reclaim", "--flow", "7"}) == "nowcalls-admin: --reason is required");
  CHECK(ErrorOf({"reclaim", "--flow", "0", "--reason", "x"}) ==
        "nowcalls-admin: --flow: '0' is not a whole number from 1 to 9223372036854775807");
  CHECK(ErrorOf({"purge"}) == "nowcalls-admin: --flow is required");
  CHECK(ErrorOf({"purge", "--flow", "7", "--data-dir", "d"}) ==
        "nowcalls-admin: 'nowcalls-admin purge' asks a running server, not a ledger on disk");
  CHECK(ErrorOf({"drain"}) == "nowcalls-admin: drain: takes one of --flow FLOW and --namespace NS");
}

TEST_CASE("a flow is a number or the resource of a rule, in every command that has one") {
  for (const std::vector<const char*>& command :
       std::vector<std::vector<const char*>>{{"flow"},
                                             {"params", "--flow"},
                                             {"dump", "--flow"},
                                             {"tokens", "--flow"},
                                             {"waiters", "--flow"},
                                             {"history", "--flow"},
                                             {"reclaim", "--reason", "r", "--flow"},
                                             {"purge", "--flow"},
                                             {"drain", "--flow"}}) {
    CAPTURE(command.front());
    const auto with = [&](const char* flow) {
      std::vector<const char*> words = command;
      words.push_back(flow);
      return *Parse(words).arguments;
    };
    const Arguments named = with("GET:/orders");
    CHECK(named.flow_name == "GET:/orders");
    CHECK(named.flow_id == 0);
    CHECK_FALSE(named.filter.flow_id.has_value());
    const Arguments numbered = with("7");
    CHECK(numbered.flow_name.empty());
    CHECK(numbered.flow_id + numbered.filter.flow_id.value_or(0) +
              numbered.history_filter.flow_id.value_or(0) ==
          7);
  }
  CHECK(ErrorOf({"flow", ""}) == "nowcalls-admin: FLOW: a resource must be 1..1024 bytes, got 0");
  CHECK(ErrorOf({"purge", "--flow", "a\nb"}).find("--flow: a resource must") != std::string::npos);
}

TEST_CASE("the history is filtered by flow, client, namespace and reason") {
  const Arguments arguments =
      *Parse({"history", "--data-dir", "d", "--limit", "7", "--flow", "101", "--client", "c",
              "--namespace", "shop", "--reason", "client_offline"})
           .arguments;
  CHECK(arguments.command == Command::kHistory);
  CHECK(arguments.limit == 7);
  CHECK(arguments.history_filter.flow_id == 101);
  CHECK(arguments.history_filter.client_id == "c");
  CHECK(arguments.history_filter.name_space == "shop");
  CHECK(arguments.history_filter.reason == "client_offline");
  CHECK_FALSE(arguments.history_filter.NeedsNow());
  const HistoryFilter between =
      Parse({"history", "--since", "1h", "--until", "10m"}).arguments->history_filter;
  CHECK(between.max_age_ms == 3'600'000);
  CHECK(between.min_age_ms == 600'000);
  CHECK(between.NeedsNow());
  CHECK(ErrorOf({"history", "--since", "10m", "--until", "1h"}) ==
        "nowcalls-admin: --since: is later than --until, so nothing lies between them");
  CHECK(ErrorOf({"history", "--until", "noon"}).starts_with("nowcalls-admin: --until: 'noon' "));
  for (const char* reason : {"cancelled", "Admin", ""}) {
    CHECK(ErrorOf({"history", "--reason", reason}) ==
          "nowcalls-admin: --reason: '" + std::string(reason) +
              "' is none of released, released_late, client_offline, resource_timeout, "
              "rule_removed, admin; of tokens released in time only those are kept whose call did "
              "not end well, and cancelled ones are counted");
  }
}

TEST_CASE("a wrong command line is refused with what is wrong") {
  CHECK(ErrorOf({}).starts_with("nowcalls-admin: a command is missing; there are dump, "));
  CHECK(ErrorOf({"rules"}).starts_with("nowcalls-admin: a command is missing; there are "));
  CHECK(ErrorOf({"--foo"}) == "nowcalls-admin: '--foo' is no option of 'nowcalls-admin'");
  CHECK(ErrorOf({"dump", "--fomrat", "csv"}) ==
        "nowcalls-admin: '--fomrat' is no option of 'nowcalls-admin dump'; did you mean --format?");
  CHECK(ErrorOf({"dump", "--data-dir", "d", "--server", "127.0.0.1:1"}) ==
        "nowcalls-admin: --server excludes --data-dir");
  CHECK(ErrorOf({"verify"}) == "nowcalls-admin: --data-dir is required");
  CHECK(ErrorOf({"dump", "--format", "xml"}) ==
        "nowcalls-admin: --format: 'xml' is none of table, jsonl, csv");
  CHECK(ErrorOf({"dump", "--min-age", "10"}) ==
        "nowcalls-admin: --min-age: '10' lacks a unit: ms, s, m, h or d");
  CHECK(ErrorOf({"dump", "--flow", "0"}) ==
        "nowcalls-admin: --flow: '0' is not a whole number from 1 to 9223372036854775807");
  CHECK(ErrorOf({"flow", "9223372036854775808"}) ==
        "nowcalls-admin: FLOW: '9223372036854775808' is not a whole number from 1 to "
        "9223372036854775807");
  CHECK(ErrorOf({"tokens", "--limit", "1000001"}) ==
        "nowcalls-admin: --limit: '1000001' is not a whole number from 1 to 1000000");
  CHECK(ErrorOf({"dump", "--namespace", ""}) ==
        "nowcalls-admin: --namespace: must be 1..128 bytes, got 0");
  CHECK(ErrorOf({"stat", "--server", "nowhere"}) ==
        "nowcalls-admin: --server: 'nowhere' is not HOST:PORT, such as 127.0.0.1:18730 or "
        "[::1]:18730");
  CHECK(ErrorOf({"stat", "--server", "127.0.0.1:0"}) ==
        "nowcalls-admin: --server: '127.0.0.1:0': port 0 is no server's");
  CHECK(ErrorOf({"reclaim", "5"}) == "nowcalls-admin: --reason is required");
  CHECK(ErrorOf({"reclaim", "5", "--reason", std::string(257, 'x').c_str()}) ==
        "nowcalls-admin: --reason: must be 1..256 bytes, got 257");
}

TEST_CASE("an option before the command is told where it belongs") {
  CHECK(
      ErrorOf({"--data-dir", "d", "dump"}) ==
      "nowcalls-admin: --data-dir belongs behind the command: nowcalls-admin dump --data-dir ...");
  CHECK(ErrorOf({"--format=csv", "rules", "list"}) ==
        "nowcalls-admin: --format belongs behind the command: nowcalls-admin rules list --format "
        "...");
  CHECK(ErrorOf({"--server", "127.0.0.1:1"}) ==
        "nowcalls-admin: --server belongs behind the command: nowcalls-admin COMMAND --server ...");
  CHECK(ErrorOf({"rules", "--server", "127.0.0.1:1", "list"}) ==
        "nowcalls-admin: --server belongs behind the command: nowcalls-admin rules list --server "
        "...");
}

TEST_CASE("an option that a command does not take is refused with the reason") {
  CHECK(ErrorOf({"reclaim", "5", "--reason", "x", "--data-dir", "d"}) ==
        "nowcalls-admin: 'nowcalls-admin reclaim' asks a running server, not a ledger on disk");
  CHECK(ErrorOf({"rules", "load", "--data-dir", "d", "f"}) ==
        "nowcalls-admin: 'nowcalls-admin rules load' asks a running server, not a ledger on disk");
  CHECK(ErrorOf({"verify", "--server", "127.0.0.1:1", "--data-dir", "d"}) ==
        "nowcalls-admin: 'nowcalls-admin verify' asks no server");
  CHECK(ErrorOf({"dump", "--limit=5"}) ==
        "nowcalls-admin: '--limit' is no option of 'nowcalls-admin dump'");
}

TEST_CASE("of several words too many the first is named") {
  CHECK(ErrorOf({"dump", "one", "two"}) == "nowcalls-admin: 'one' is one argument too many");
  CHECK(ErrorOf({"flow", "1", "2", "3"}) == "nowcalls-admin: '2' is one argument too many");
  const std::string dump = ErrorOf({"dmup", "--flow", "1"});
  CHECK(dump.starts_with("nowcalls-admin: 'dmup' is not a command; there are dump, "));
  CHECK(dump.ends_with("; did you mean dump?"));
  const std::string load = ErrorOf({"rules", "lod", "x"});
  CHECK(load.starts_with("nowcalls-admin: 'lod' is not a command; there are "));
  CHECK(load.ends_with("; did you mean load?"));
  CHECK(ErrorOf({"foo"}).starts_with("nowcalls-admin: 'foo' is not a command; there are dump, "));
}

TEST_CASE("an option without a value, or given twice, is refused by name") {
  CHECK(ErrorOf({"dump", "--flow"}) == "nowcalls-admin: --flow needs a value");
  CHECK(ErrorOf({"verify", "--data-dir"}) == "nowcalls-admin: --data-dir needs a value");
  CHECK(ErrorOf({"dump", "--data-dir", "--flow", "5"}) ==
        "nowcalls-admin: --data-dir: needs a value, got --flow");
  CHECK(ErrorOf({"tokens", "--limit", "5", "--limit", "6"}) ==
        "nowcalls-admin: --limit is given more than once");
}

TEST_CASE("leading zeros do not make a number octal") {
  CHECK(Parse({"flow", "0101"}).arguments->flow_id == 101);
}

TEST_CASE("the way to a command's help is told") {
  CHECK(Parse({"rules", "load"})
            .err.ends_with("\nRun 'nowcalls-admin rules load --help' to see usage.\n"));
}

TEST_CASE("help and version go to stdout and succeed") {
  const ParsedArguments help = Parse({"tokens", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  CHECK(help.out.find("--min-age DURATION") != std::string::npos);
  const ParsedArguments version = Parse({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out.find("nowcalls-admin ") == 0);
}

}  // namespace
}  // namespace nowcalls::admin
