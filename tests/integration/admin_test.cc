// nowcalls-admin: each command, live and from the files, in every format.
#include "support/admin.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

// Members that only a running server knows.
const std::set<std::string> kLiveOnly = {"online",           "level",       "sessions",
                                         "offline_since_ms", "connections", "hosts",
                                         "instances",        "addresses",   "last_message_ms"};

// A member that the rows of a ledger lack: only a server counts what happened since it began.
bool OnlyLive(const std::string& name) {
  constexpr std::string_view kCounters[] = {
      "granted", "granted_from_queue", "queued", "longest_wait_ms", "kept", "reclaimed", "waiters"};
  constexpr std::string_view kPrefixes[] = {"refused", "shadow_refused", "ended_",
                                            "held_",   "waited_",        "outcome_"};
  return kLiveOnly.contains(name) ||
         std::any_of(std::begin(kCounters), std::end(kCounters),
                     [&](std::string_view counter) { return name == counter; }) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// The rows without what only one source can know, in an order of their own.
std::multiset<std::string> Comparable(const std::vector<Json>& rows) {
  std::multiset<std::string> texts;
  for (const Json& row : rows) {
    Json known = Json::object();
    for (const auto& [name, value] : row.items()) {
      if (!value.is_null() && !OnlyLive(name)) known[name] = value;
    }
    texts.insert(known.dump());
  }
  return texts;
}

// Rows of csv as JSON objects of strings.
std::vector<Json> CsvRows(const std::string& text) {
  std::vector<Json> rows;
  const auto records = ParseCsv(text);
  for (size_t i = 1; i < records.size(); ++i) {
    REQUIRE(records[i].size() == records[0].size());
    Json row;
    for (size_t column = 0; column < records[0].size(); ++column) {
      row[records[0][column]] = records[i][column];
    }
    rows.push_back(row);
  }
  return rows;
}

std::string TextOf(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// A server with tokens of two named clients and one connection, over two flows and two namespaces.
class AdminFixture {
 public:
  AdminFixture() : server({RuleJson(1, 100), RuleJson(2, 100)}) {
    RpcClient setup = server.Connect();
    LoadRules(&setup, {RuleJson(3, 30)}, "orders");
    alice = server.Connect("alice");
    quoted = server.Connect("bob, \"the builder\"", "orders");
    anonymous = server.Connect();
    for (int i = 0; i < 5; ++i) tokens.push_back(Acquire(&alice, 1, i + 1).token_id);
    for (int i = 0; i < 3; ++i) tokens.push_back(Acquire(&quoted, 3, 2).token_id);
    tokens.push_back(Acquire(&anonymous, 2, 7).token_id);
  }

  Source live() const { return Source::Live(server.address()); }
  Source offline() const { return Source::Offline(server.data_dir()); }

  TestServer server;
  RpcClient alice;
  RpcClient quoted;
  RpcClient anonymous;
  std::vector<uint64_t> tokens;  // Oldest first.
};

TEST_CASE_FIXTURE(AdminFixture, "dump prints every token with all that is known of it") {
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const auto rows = AdminRows(is_live ? live() : offline(), {"dump"});
    CHECK(Column<uint64_t>(rows, "token_id") ==
          std::multiset<uint64_t>(tokens.begin(), tokens.end()));
    for (const auto& row : rows) {
      CAPTURE(row.dump());
      CHECK(row.at("fence").get<uint64_t>() > 0);
      CHECK(row.at("deadline_ms").get<int64_t>() == row.at("issued_ms").get<int64_t>() + 120'000);
      const auto flow_id = row.at("flow_id").get<int64_t>();
      CHECK(row.at("namespace") == (flow_id == 3 ? "orders" : "default"));
      if (flow_id == 1) CHECK(row.at("client_id") == "alice");
      if (flow_id == 2) CHECK(row.at("count") == 7);
      if (flow_id == 3) CHECK(row.at("client_id") == "bob, \"the builder\"");
    }
  }
}

TEST_CASE_FIXTURE(AdminFixture, "live and offline listings have the same rows") {
  const std::vector<std::vector<std::string>> commands = {{"dump"},
                                                          {"stat"},
                                                          {"tokens"},
                                                          {"tokens", "--limit", "4"},
                                                          {"sessions"},
                                                          {"rules", "list"},
                                                          {"flow", "1"},
                                                          {"dump", "--flow", "3"},
                                                          {"dump", "--client", "alice"}};
  std::vector<std::vector<Json>> answers;
  answers.reserve(commands.size());
  for (const auto& command : commands) answers.push_back(AdminRows(live(), command));
  server.server().Kill9();
  for (size_t i = 0; i < commands.size(); ++i) {
    CAPTURE(commands[i].front());
    CHECK_FALSE(answers[i].empty());
    CHECK(Comparable(AdminRows(offline(), commands[i])) == Comparable(answers[i]));
  }
}

TEST_CASE_FIXTURE(AdminFixture, "csv and jsonl say the same, and a table has a line for each row") {
  const std::vector<std::vector<std::string>> commands = {
      {"dump"}, {"stat"}, {"tokens"}, {"sessions"}};
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const Source source = is_live ? live() : offline();
    for (auto command : commands) {
      const auto rows = AdminRows(source, command);
      auto csv_command = command;
      csv_command.insert(csv_command.end(), {"--format", "csv"});
      const auto csv = CsvRows(RunAdmin(source, csv_command).out);
      CAPTURE(command.front());
      REQUIRE(csv.size() == rows.size());
      const std::string key = command[0] == "stat"       ? "flow_id"
                              : command[0] == "sessions" ? "session"
                                                         : "token_id";
      for (const auto& row : rows) {
        bool found = false;
        for (const auto& line : csv) {
          if (line.at(key) != TextOf(row.at(key))) continue;
          found = true;
          for (const auto& [name, value] : row.items()) CHECK(line.at(name) == TextOf(value));
        }
        CHECK(found);
      }
      command.insert(command.end(), {"--format", "table"});
      const Finished table = RunAdmin(source, command);
      CHECK(table.exit_code == 0);
      CHECK(Lines(table.out) >= rows.size() + 1);
    }
  }
}

TEST_CASE_FIXTURE(AdminFixture, "filters by flow, client, namespace and age leave the others out") {
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const Source source = is_live ? live() : offline();
    CHECK(AdminRows(source, {"dump", "--flow", "1"}).size() == 5);
    CHECK(AdminRows(source, {"dump", "--flow", "77"}).empty());
    CHECK(AdminRows(source, {"dump", "--client", "alice"}).size() == 5);
    CHECK(AdminRows(source, {"dump", "--client", "alice", "--flow", "3"}).empty());
    CHECK(AdminRows(source, {"dump", "--namespace", "orders"}).size() == 3);
    CHECK(AdminRows(source, {"dump", "--min-age", "1h"}).empty());
    CHECK(AdminRows(source, {"dump", "--min-age", "0ms"}).size() == 9);
    CHECK(AdminRows(source, {"stat", "--namespace", "orders"}).size() == 1);
  }
}

TEST_CASE_FIXTURE(AdminFixture, "tokens prints the oldest first, at most the limit") {
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const auto rows = AdminRows(is_live ? live() : offline(), {"tokens", "--limit", "3"});
    REQUIRE(rows.size() == 3);
    int64_t last_ms = 0;
    for (const auto& row : rows) {
      CHECK(row.at("client_id") == "alice");
      CHECK(row.at("issued_ms").get<int64_t>() >= last_ms);
      last_ms = row.at("issued_ms").get<int64_t>();
    }
  }
}

TEST_CASE_FIXTURE(AdminFixture, "stat and flow show nowCalls, tokens and level") {
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const Source source = is_live ? live() : offline();
    const auto rows = AdminRows(source, {"stat"});
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].at("flow_id") == 1);
    CHECK(rows[0].at("now_calls") == 15);
    CHECK(rows[0].at("tokens") == 5);
    CHECK(rows[0].at("level") == 100);
    CHECK(rows[0].at("resource") == "resource-1");
    CHECK(rows[0].at("waiters").is_null() == !is_live);
    CHECK(rows[1].at("now_calls") == 7);
    CHECK(rows[2].at("namespace") == "orders");
    CHECK(rows[2].at("now_calls") == 6);
    const auto flow = AdminRows(source, {"flow", "3"});
    REQUIRE(flow.size() == 1);
    CHECK(flow[0] == rows[2]);
    CHECK(RunAdmin(source, {"flow", "99"}).exit_code == 1);
    CHECK(RunAdmin(source, {"flow", "3", "--format", "table"}).out.find("resource-3") !=
          std::string::npos);
  }
}

TEST_CASE_FIXTURE(AdminFixture, "a removed rule's flow is shown as removed, live and offline") {
  LoadRules(&alice, {RuleJson(2, 100)});
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const auto rows = AdminRows(is_live ? live() : offline(), {"flow", "1"});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].at("removed") == true);
    CHECK(rows[0].at("now_calls") == 15);
  }
  CHECK(RunAdmin(offline(), {"verify"}).exit_code == 0);
}

TEST_CASE_FIXTURE(AdminFixture, "info shows what the server says of itself, and asks no ledger") {
  const auto info = AdminRows(live(), {"info"});
  REQUIRE(info.size() == 1);
  CHECK(info[0].at("ledger").at("durability") == "sync");
  CHECK(info[0].at("settings").at("restart_grace_ms") == 10'000);
  const std::string figures = RunAdmin(live(), {"info", "--format", "csv"}).out;
  CHECK(figures.find("\ncounts.rules,3\n") != std::string::npos);
  CHECK(RunAdmin(offline(), {"info"}).exit_code == 64);
}

TEST_CASE_FIXTURE(AdminFixture, "sessions shows what each client holds") {
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const auto rows = AdminRows(is_live ? live() : offline(), {"sessions"});
    REQUIRE(rows.size() == 3);
    CHECK(Column<int64_t>(rows, "now_calls") == std::multiset<int64_t>{6, 7, 15});
    CHECK(Column<std::string>(rows, "kind") ==
          std::multiset<std::string>{"connection", "named", "named"});
  }
}

TEST_CASE_FIXTURE(AdminFixture,
                  "sessions are filtered by client and namespace, and live by who is online") {
  quoted.Close();
  const auto clients = [&](const Source& source, std::vector<std::string> filter) {
    filter.insert(filter.begin(), "sessions");
    return Column<std::string>(AdminRows(source, filter), "client_id");
  };
  using Clients = std::multiset<std::string>;
  REQUIRE(PollUntil(kPatienceMs, [&] { return clients(live(), {"--offline"}).size() == 1; }));
  CHECK(clients(live(), {"--offline"}) == Clients{"bob, \"the builder\""});
  CHECK(clients(live(), {"--online", "--client", "alice"}) == Clients{"alice"});
  CHECK(clients(live(), {"--offline", "--client", "alice"}).empty());
  CHECK(RunAdmin(offline(), {"sessions", "--online"}).exit_code == 64);
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const Source source = is_live ? live() : offline();
    CHECK(clients(source, {"--client", "alice"}) == Clients{"alice"});
    CHECK(clients(source, {"--namespace", "orders"}) == Clients{"bob, \"the builder\""});
    CHECK(clients(source, {"--namespace", "orders", "--client", "alice"}).empty());
  }
}

TEST_CASE_FIXTURE(AdminFixture, "ping says whether the server answers") {
  const Finished answers = RunAdmin(live(), {"ping"});
  CHECK(answers.exit_code == 0);
  CHECK(answers.out == server.address() + " answers\n");
  server.server().process().Signal(SIGSTOP);
  const Finished hung = RunAdmin(live(), {"ping", "--timeout", "200"});
  CHECK(hung.exit_code == 69);
  CHECK(hung.out.empty());
  server.server().Kill9();
  CHECK(RunAdmin(live(), {"ping"}).exit_code == 69);
}

TEST_CASE_FIXTURE(AdminFixture, "the environment names the server, and --server beats it") {
  const std::string admin = ProductBinary("nowcalls-admin");
  const Environment environment = {{"NOWCALLS_SERVER", server.address()}};
  CHECK(RunProgram({admin, "ping"}, environment).out == server.address() + " answers\n");
  CHECK(RunProgram({admin, "ping", "--server", "127.0.0.1:1"}, environment).exit_code == 69);
  const Finished bad = RunProgram({admin, "ping"}, {{"NOWCALLS_SERVER", "nowhere"}});
  CHECK(bad.exit_code == 64);
  CHECK(bad.err.find("NOWCALLS_SERVER: 'nowhere'") != std::string::npos);
}

// Runs the tool with `input` on its standard input.
Finished RunWithInput(const TestServer& server, const std::vector<std::string>& command,
                      const std::string& input) {
  std::vector<std::string> argv = {ProductBinary("nowcalls-admin")};
  argv.insert(argv.end(), command.begin(), command.end());
  const std::string out = server.Sub("piped.out");
  const std::string err = server.Sub("piped.err");
  for (const std::string& file : {out, err}) WriteStringToFile(file, "");
  WriteStringToFile(server.Sub("piped.in"), input);
  Process process({argv, {}, out, err, server.Sub("piped.in")});
  const int exit_code = process.Wait().value();
  return {exit_code, ReadFileToString(out), ReadFileToString(err)};
}

TEST_CASE_FIXTURE(AdminFixture, "rules come from standard input too") {
  const std::string rules = Json::array({RuleJson(1, 15), RuleJson(2, 100)}).dump();
  const auto run = [&](std::vector<std::string> command, const std::string& input) {
    if (command[1] != "check") {
      command.insert(command.end(), {"--namespace", "default", "--server", server.address()});
    }
    return RunWithInput(server, command, input);
  };
  CHECK(run({"rules", "check", "-"}, rules).out.starts_with("2 rules ok, 0 skipped\nFLOW_ID "));
  Json misspelt = RuleJson(1, 15);
  misspelt["maxQueuingTimeMs"] = 800;
  CHECK(run({"rules", "check", "-"}, Json::array({misspelt}).dump())
            .out.starts_with("1 rule ok, 0 skipped\n  rule 1 (resource \"resource-1\", flowId 1): "
                             "'maxQueuingTimeMs' is not known and is ignored; did you mean "
                             "maxQueueingTimeMs?\nFLOW_ID "));
  const Finished bad = run({"rules", "check", "-"}, "[");
  CHECK(bad.exit_code == 64);
  CHECK(bad.err.starts_with("nowcalls-admin: standard input: not valid JSON"));
  CHECK(run({"rules", "diff", "-"}, rules).exit_code == 1);
  CHECK(run({"rules", "load", "-"}, rules).exit_code == 0);
  CHECK(run({"rules", "diff", "-"}, rules).exit_code == 0);
  const Finished large = run({"rules", "load", "-"}, rules + std::string(70'000, ' '));
  CHECK(large.exit_code == 1);
  CHECK(large.err.find("--rules default=FILE") != std::string::npos);
}

TEST_CASE_FIXTURE(AdminFixture, "rules list prints what rules load takes") {
  for (const bool is_live : {true, false}) {
    if (!is_live) {
      server.server().Kill9();
    }
    const auto rows =
        AdminRows(is_live ? live() : offline(), {"rules", "list", "--namespace", "default"});
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].at("clusterConfig").at("flowId") == 1);
    CHECK(rows[0].at("namespace") == "default");
    CHECK(rows[1].at("count") == 100);
    CHECK(rows[1].at("count").is_number_integer());
    WriteStringToFile(server.Sub("listed.json"), Json(rows).dump());
    const std::string admin = ProductBinary("nowcalls-admin");
    CHECK(RunProgram({admin, "rules", "check", server.Sub("listed.json")}).exit_code == 0);
  }
}

TEST_CASE_FIXTURE(AdminFixture, "rules load replaces a namespace's rules, and refuses bad ones") {
  WriteStringToFile(server.Sub("new.json"), Json::array({RuleJson(1, 15), RuleJson(8, 80)}).dump());
  const Finished loaded =
      RunAdmin(live(), {"rules", "load", "--namespace", "default", server.Sub("new.json")});
  CAPTURE(loaded.err);
  CHECK(loaded.exit_code == 0);
  CHECK(loaded.out.starts_with(
      "namespace 'default': 2 rules loaded: 1 added, 1 removed, 1 changed, 0 unchanged, 0 "
      "skipped\n"
      "FLOW_ID  RESOURCE    LEVEL      MAY_LAST  OFFLINE  WHEN_FULL\n"
      "      1  resource-1  15 in all  2m00s     1m00s    refuse*\n"
      "      8  resource-8  80 in all  2m00s     1m00s    refuse*\n"));
  CHECK(loaded.err ==
        "nowcalls-admin: warning: the load removes 1 rule in force: acquires under it answer "
        "NO_RULE_EXISTS, for which Sentinel's clients let calls pass\n");
  CHECK(Acquire(&alice, 1).status == kStatusBlocked);
  CHECK(Acquire(&alice, 8).level == 80);

  WriteStringToFile(server.Sub("bad.json"), Json::array({RuleJson(9, -1)}).dump());
  const Finished bad =
      RunAdmin(live(), {"rules", "load", "--namespace", "default", server.Sub("bad.json")});
  CHECK(bad.exit_code == 64);
  CHECK(bad.err.find("count") != std::string::npos);

  WriteStringToFile(server.Sub("taken.json"), Json::array({RuleJson(3, 5)}).dump());
  const Finished taken =
      RunAdmin(live(), {"rules", "load", "--namespace", "default", server.Sub("taken.json")});
  CHECK(taken.exit_code == 1);
  CHECK(taken.err.find("orders") != std::string::npos);
  CHECK(Acquire(&alice, 8).level == 80);
}

TEST_CASE("rules check judges a file without a server") {
  TempDir dir;
  const auto check = [&](const std::string& text) {
    WriteStringToFile(dir.Sub("rules.json"), text);
    return RunProgram({ProductBinary("nowcalls-admin"), "rules", "check", dir.Sub("rules.json")});
  };
  CHECK(check(Json::array({RuleJson(1, 5)}).dump()).exit_code == 0);
  const Finished bad = check(Json::array({RuleJson(1, 5), RuleJson(1, 6)}).dump());
  CHECK(bad.exit_code == 64);
  CHECK(bad.err.find("flowId") != std::string::npos);
  CHECK(check("[").exit_code == 64);
  CHECK(check("{}").exit_code == 64);
  CHECK(check("[]").out == "0 rules ok, 0 skipped\n");
  Json local = RuleJson(2, 5);
  local["clusterMode"] = false;
  const Finished none = check(Json::array({local, local}).dump());
  CHECK(none.exit_code == 64);
  CHECK(none.err.find("0 of 2 rules apply") != std::string::npos);
  CHECK(
      check(Json::array({RuleJson(1, 5), local}).dump()).out.starts_with("1 rule ok, 1 skipped\n"));
  const Finished degrade =
      check(R"([{"resource":"r","count":200,"grade":0,"timeWindow":10,"minRequestAmount":5}])");
  CHECK(degrade.exit_code == 64);
  CHECK(degrade.err.find("a circuit-breaking rule (DegradeRule)") != std::string::npos);
  const Finished absent =
      RunProgram({ProductBinary("nowcalls-admin"), "rules", "check", dir.Sub("absent.json")});
  CHECK(absent.exit_code == 64);
}

TEST_CASE_FIXTURE(AdminFixture, "reclaim takes a token back and says so") {
  const std::string token = std::to_string(tokens[0]);
  const Finished done = RunAdmin(live(), {"reclaim", token, "--reason", "job died"});
  CAPTURE(done.err);
  CHECK(done.exit_code == 0);
  CHECK(done.out.find(token) != std::string::npos);
  CHECK(NowCalls(&alice, 1) == 14);
  CHECK(RunAdmin(live(), {"reclaim", token, "--reason", "again"}).exit_code == 1);
  CHECK(RunAdmin(live(), {"reclaim", token}).exit_code == 64);
  CHECK(RunAdmin(live(), {"reclaim", "x", "--reason", "y"}).exit_code == 64);
  CHECK(server.server().LogHas("job died"));
}

TEST_CASE_FIXTURE(AdminFixture, "verify finds a ledger sound after kill -9 and beside its server") {
  const Finished beside = RunAdmin(offline(), {"verify"});
  CAPTURE(beside.out);
  CHECK(beside.exit_code == 0);
  server.server().Kill9();
  const Finished verified = RunAdmin(offline(), {"verify", "--format", "jsonl"});
  CAPTURE(verified.out);
  CHECK(verified.exit_code == 0);
  const auto rows = ParseJsonLines(verified.out);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("summary") == "ok");
  CHECK(rows[0].at("tokens") == 9);
  CHECK(rows[0].at("now_calls") == 28);
}

TEST_CASE_FIXTURE(AdminFixture, "the ledger of a hung server is read beside it") {
  // What is in the log only, and what has been flushed, must both show.
  server.server().Restart();
  RpcClient again = server.Connect("alice");
  tokens.push_back(Acquire(&again, 2, 9).token_id);
  server.server().process().Signal(SIGSTOP);
  const auto rows = AdminRows(offline(), {"dump"});
  CHECK(Column<uint64_t>(rows, "token_id") ==
        std::multiset<uint64_t>(tokens.begin(), tokens.end()));
  CHECK(AdminRows(offline(), {"stat"}).size() == 3);
  const Finished verified = RunAdmin(offline(), {"verify"});
  CHECK(verified.exit_code == 0);
  const std::string pid = std::to_string(server.server().process().pid());
  CHECK(verified.err.find(pid) != std::string::npos);
  const Finished hung = RunAdmin(live(), {"stat", "--timeout", "200"});
  CHECK(hung.exit_code == 69);
  server.server().process().Signal(SIGCONT);
  CHECK(NowCalls(&again, 2) == 16);
}

TEST_CASE("a live dump is as long as the ledger, over many pages") {
  TestServer server({RuleJson(1, 1'000'000)});
  RpcClient alice = server.Connect("alice");
  const auto tokens = AcquireMany(&alice, 1, 5'500);
  const std::multiset<uint64_t> expected(tokens.begin(), tokens.end());
  CHECK(Column<uint64_t>(AdminRows(Source::Live(server.address()), {"dump"}), "token_id") ==
        expected);
  CHECK(AdminRows(Source::Live(server.address()), {"tokens", "--limit", "3000"}).size() == 3'000);
}

TEST_CASE("without its server or ledger the tool says what is missing") {
  TempDir dir;
  const Finished no_ledger = RunAdmin(Source::Offline(dir.path()), {"dump"});
  CHECK(no_ledger.exit_code == 64);
  CHECK(no_ledger.err.find(dir.path()) != std::string::npos);
  CHECK(no_ledger.out.empty());
  const Finished no_server = RunAdmin(Source::Live("127.0.0.1:1"), {"stat"});
  CHECK(no_server.exit_code == 69);
  CHECK(no_server.err.find("127.0.0.1:1") != std::string::npos);
}

TEST_CASE("wrong usage of the admin tool exits 64 and says what is wrong") {
  const std::string admin = ProductBinary("nowcalls-admin");
  const struct {
    std::vector<std::string> arguments;
    std::string named;
  } cases[] = {
      {{}, ""},
      {{"dmup"}, "dmup"},
      {{"dump", "--format", "xml"}, "xml"},
      {{"dump", "--flow", "0"}, "--flow"},
      {{"dump", "--min-age", "soon"}, "soon"},
      {{"dump", "--server", "nowhere"}, "--server"},
      {{"dump", "--server", "127.0.0.1:1", "--data-dir", "/tmp"}, "--data-dir"},
      {{"tokens", "--limit", "0"}, "--limit"},
      {{"dump", "--data-dir=", "--flow", "1"}, "--data-dir= is empty"},
      {{"stat", "--format=", "csv"}, "--format= is empty"},
      {{"flow"}, "FLOW is required"},
      {{"verify"}, "--data-dir"},
      {{"rules", "load", "x.json"}, "--namespace"},
      {{"rules", "diff", "x.json"}, "--namespace"},
  };
  for (const auto& bad : cases) {
    std::vector<std::string> argv = {admin};
    argv.insert(argv.end(), bad.arguments.begin(), bad.arguments.end());
    const Finished finished = RunProgram(argv);
    CAPTURE(finished.err);
    CHECK(finished.exit_code == 64);
    CHECK(finished.err.find(bad.named) != std::string::npos);
    CHECK(finished.out.empty());
  }
  for (const char* flag : {"--help", "--version"}) {
    const Finished finished = RunProgram({admin, flag});
    CHECK(finished.exit_code == 0);
    CHECK(finished.out.find("nowcalls-admin") != std::string::npos);
  }
}

}  // namespace
}  // namespace nowcalls::testing
