// Rule files while the server runs: edited, broken, deleted, reloaded; and whose a namespace is.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

// A server whose namespace "default" is fed by a file.
class RuleFileFixture {
 public:
  explicit RuleFileFixture(const Json& rules = {RuleJson(1, 10)}) {
    Write(rules);
    server.options().arguments = {"--rules", path()};
    server.Start();
    client = RpcClient(server.address());
  }

  std::string path() const { return dir.Sub("rules.json"); }
  void Write(const Json& rules) const { WriteStringToFile(path(), RuleSet(rules).dump()); }
  void AwaitLevel(int64_t flow_id, int64_t level) const {
    const bool seen = ReachesLevel(server.address(), flow_id, level);
    INFO(server.log());
    REQUIRE(seen);
  }
  void AwaitLog(const std::string& text) const {
    const bool seen = server.LogHas(text);
    INFO(server.log());
    REQUIRE_MESSAGE(seen, text);
  }
  Source live() const { return Source::Live(server.address()); }

  TempDir dir;
  ServerProcess server{dir.path()};
  RpcClient client;
};

// A start that must fail; what it printed.
Finished FailedStart(ServerProcess* server) { return RunProgram(server->Arguments()); }

TEST_CASE_FIXTURE(RuleFileFixture,
                  "an edited rule file is in force without a restart, and durable") {
  Write({RuleJson(1, 20), RuleJson(2, 5)});
  AwaitLevel(1, 20);
  AwaitLevel(2, 5);
  WriteStringToFile(path() + "~", RuleSet({RuleJson(1, 30)}).dump());
  fs::rename(path() + "~", path());
  AwaitLevel(1, 30);
  CHECK(Acquire(&client, 2).status == kStatusNoRuleExists);
  server.Kill9();
  server.options().arguments.clear();
  server.Start();
  client = RpcClient(server.address());
  CHECK(Acquire(&client, 1).level == 30);
}

TEST_CASE_FIXTURE(RuleFileFixture,
                  "tokens of a rule that an edit removes stay counted and releasable") {
  const Grant grant = Acquire(&client, 1, 4);
  Write({RuleJson(2, 5)});
  AwaitLevel(2, 5);
  CHECK(NowCalls(&client, 1) == 4);
  CHECK(Release(&client, grant.token_id) == kStatusReleaseOk);
}

TEST_CASE_FIXTURE(RuleFileFixture,
                  "a bad edit keeps the rules of before and logs the rule and the field") {
  Write({RuleJson(1, 20), RuleJson(2, 5, {{"resourceTimeout", -1}})});
  AwaitLog("rule file " + path() +
           ": rule 2 (resource \"resource-2\", flowId 2): clusterConfig.resourceTimeout must be an "
           "integer");
  CHECK(Acquire(&client, 1).level == 10);
  WriteStringToFile(path(), "[{\"resource\": \"half of a fi");
  AwaitLog("not valid JSON");
  CHECK(Acquire(&client, 1).level == 10);
  Write({RuleJson(1, 30)});
  AwaitLevel(1, 30);
}

TEST_CASE_FIXTURE(RuleFileFixture,
                  "a rule file of another kind, or with a slip, keeps the rules of before") {
  Json misspelt = RuleJson(1, 99);
  misspelt.erase("clusterMode");
  misspelt["clustermode"] = true;
  Json local = RuleJson(1, 99);
  local["clusterMode"] = "false";
  const struct {
    std::string text;
    std::string told;
  } cases[] = {
      {R"([{"resource":"r","grade":0,"count":200,"timeWindow":10}])",
       "a circuit-breaking rule (DegradeRule)"},
      {R"([{"foo":1}])", "no rule of a known kind"},
      {R"([{"resource":"r","limitApp":"a,b","strategy":0}])", "an authority rule"},
      {Json::array({misspelt}).dump(), "'clustermode' is not known"},
      {Json::array({local}).dump(), "0 of 1 rules apply"},
      {"", "the text is empty"},
      {"null", "got null"},
      {"{\"data\":[]}", "write the array of 'data' alone"},
  };
  for (const auto& wrong : cases) {
    CAPTURE(wrong.text);
    WriteStringToFile(path(), wrong.text);
    AwaitLog(wrong.told);
    CHECK(server.LogHas("the rules of before stay in force"));
    CHECK(Acquire(&client, 1).level == 10);
  }
  Write({RuleJson(1, 11)});
  AwaitLevel(1, 11);
}

TEST_CASE_FIXTURE(RuleFileFixture, "a rule file that becomes a directory keeps its rules") {
  fs::remove(path());
  fs::create_directory(path());
  AwaitLog("rule file " + path() + ": ");
  CHECK(Acquire(&client, 1).level == 10);
  fs::remove(path());
  Write({RuleJson(1, 11)});
  AwaitLevel(1, 11);
}

TEST_CASE_FIXTURE(RuleFileFixture,
                  "a rule file without rules removes all, and the log warns of it") {
  WriteStringToFile(path(), "[]");
  AwaitLog("warn  namespace default: 1 rule in force removed: ");
  AwaitLog("loaded, 0 rules of namespace 'default' in force");
  CHECK(Acquire(&client, 1).status == kStatusNoRuleExists);
}

TEST_CASE_FIXTURE(RuleFileFixture,
                  "a rule that a file leaves to clients ends, and the others stay") {
  Json local = RuleJson(2, 5);
  Write({RuleJson(1, 10), local});
  AwaitLevel(2, 5);
  local["clusterMode"] = false;
  Write({RuleJson(1, 12), local});
  AwaitLevel(1, 12);
  CHECK(Acquire(&client, 2).status == kStatusNoRuleExists);
  AwaitLog("rule 2 (resource \"resource-2\", flowId 2) is skipped: clusterMode is false");
}

TEST_CASE_FIXTURE(RuleFileFixture,
                  "a deleted rule file keeps its rules and is loaded when it is back") {
  fs::remove(path());
  AwaitLog("rule file " + path() + ": is gone; its rules stay in force");
  CHECK(Acquire(&client, 1).level == 10);
  Write({RuleJson(1, 11)});
  AwaitLevel(1, 11);
}

TEST_CASE_FIXTURE(RuleFileFixture, "SIGHUP reloads all rule files and logs how each went") {
  server.process().Signal(SIGHUP);
  AwaitLog("SIGHUP: reloading the rule files");
  AwaitLog("rule file " + path() + ": reloaded, 1 rule of namespace 'default' in force");
  fs::remove(path());
  AwaitLog("is gone");
  CHECK(Acquire(&client, 1).level == 10);
  CHECK(server.Terminate() == 0);
}

TEST_CASE("SIGHUP without rule files does no harm") {
  TestServer server;
  server.server().process().Signal(SIGHUP);
  CHECK(server.server().LogHas("SIGHUP: no rule files are configured"));
  RpcClient client = server.Connect();
  CHECK(client.Call("ping").ok());
  CHECK(server.server().Terminate() == 0);
}

TEST_CASE("flows are swapped between the files of two namespaces in one step") {
  TempDir dir;
  const auto write = [&](const std::string& name, const Json& rules) {
    WriteStringToFile(dir.Sub(name), RuleSet(rules).dump());
  };
  write("a.json", RuleJson(1, 1));
  write("b.json", RuleJson(2, 2));
  TestServer server(
      nullptr, {{"--rules", "a=" + dir.Sub("a.json"), "--rules", "b=" + dir.Sub("b.json")}, {}});
  // A look that is under way might see one file as it was and the other as it will be: after these
  // lines those of the start are over, too.
  server.server().process().Signal(SIGHUP);
  for (const char* name : {"a.json", "b.json"}) {
    REQUIRE(server.server().LogHas("rule file " + dir.Sub(name) + ": reloaded, "));
  }
  // It looks a fifth of a second after a change, and a disk may take longer than that.
  server.server().process().Stop();
  write("a.json", RuleJson(2, 20));
  write("b.json", RuleJson(1, 10));
  server.server().process().Signal(SIGCONT);
  RpcClient client = server.Connect();
  CHECK(PollUntil(kPatienceMs, [&] {
    const auto rows = ListAll(&client, "rules_list", Json::array({nullptr}));
    return rows.size() == 2 && rows[0].at("namespace") == "b" && rows[1].at("namespace") == "a";
  }));
  // A disk that stalls is in the log, too.
  std::istringstream log(server.server().log());
  for (std::string line; std::getline(log, line);) {
    CAPTURE(line);
    CHECK_FALSE((Contains(line, " warn ") && Contains(line, "rule file")));
  }
}

TEST_CASE("a ConfigMap that Kubernetes publishes anew is in force") {
  TempDir dir;
  const fs::path mount = dir.Sub("mount");
  const auto publish = [&](const std::string& version, double level) {
    fs::create_directories(mount / version);
    WriteStringToFile((mount / version / "rules.json").string(),
                      RuleSet(RuleJson(1, level)).dump());
    fs::create_symlink(version, mount / "..data_tmp");
    fs::rename(mount / "..data_tmp", mount / "..data");
  };
  publish("..v1", 1);
  fs::create_symlink("..data/rules.json", mount / "rules.json");
  TestServer server(nullptr, {{"--rules", (mount / "rules.json").string()}, {}});
  RpcClient client = server.Connect();
  CHECK(Acquire(&client, 1).level == 1);
  publish("..v2", 2);
  fs::remove_all(mount / "..v1");
  CHECK(PollUntil(kPatienceMs,
                  [&] { return ResultOf(&client, "flow", Json::array({1})).at("level") == 2; }));
}

TEST_CASE_FIXTURE(RuleFileFixture,
                  "rules_load for a namespace that a file feeds is refused, by its name") {
  const Reply error = ErrorOf(&client, "rules_load", {"default", RuleSet(RuleJson(1, 99))});
  CHECK(error.error_code == kErrorConflict);
  CHECK(Contains(error.error_message, "file:" + path()));
  CHECK(Acquire(&client, 1).level == 10);
  // Other namespaces are free, and a file that is configured no more has no say.
  LoadRules(&client, RuleJson(7, 70), "orders");
  server.Terminate();
  server.options().arguments.clear();
  server.Start();
  client = RpcClient(server.address());
  LoadRules(&client, RuleJson(1, 99));
  CHECK(Acquire(&client, 1).level == 99);
}

TEST_CASE("a file for a namespace of the RPC keeps the server from starting until it takes over") {
  TestServer server({RuleJson(1, 10)});
  server.server().Terminate();
  WriteStringToFile(server.Sub("mine.json"), RuleSet(RuleJson(1, 20)).dump());
  auto& arguments = server.server().options().arguments;
  arguments = {"--rules", server.Sub("mine.json")};
  const Finished refused = FailedStart(&server.server());
  CAPTURE(refused.err);
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, "namespace default takes its rules from rpc and not from file:" +
                                  server.Sub("mine.json")));
  CHECK(Contains(refused.err, "--rules-takeover"));

  arguments.emplace_back("--rules-takeover");
  server.server().Start();
  {
    RpcClient client = server.Connect();
    CHECK(Acquire(&client, 1).level == 20);
    CHECK(ErrorOf(&client, "rules_load", {"default", Json::array()}).error_code == kErrorConflict);
  }
  CHECK(server.server().LogHas("its rules came from rpc and come from file:"));
  // From now on it is the file's.
  server.server().Kill9();
  arguments.pop_back();
  server.server().Start();
  RpcClient client = server.Connect();
  CHECK(Acquire(&client, 1).level == 20);
}

// Two namespaces that are fed by files, and a client that takes flowIds by RPC.
class TwoFiles {
 public:
  TwoFiles() {
    Write("a", RuleJson(1, 10));
    Write("b", RuleJson(2, 20));
    server.options().arguments = {"--rules", "a=" + path("a"), "--rules", "b=" + path("b")};
    server.Start();
  }

  std::string path(const std::string& name) const { return dir.Sub(name + ".json"); }
  void Write(const std::string& name, const Json& rules) const {
    WriteStringToFile(path(name), RuleSet(rules).dump());
  }
  // flowId and level of all rules.
  std::map<int64_t, int64_t> Levels() const {
    RpcClient client(server.address());
    std::map<int64_t, int64_t> levels;
    for (const Json& flow : ListAll(&client, "flows")) {
      levels[flow["flow_id"].get<int64_t>()] = flow["level"].get<int64_t>();
    }
    return levels;
  }
  bool AwaitLevels(const std::map<int64_t, int64_t>& levels) const {
    return PollUntil(kPatienceMs, [&] { return Levels() == levels; });
  }

  TempDir dir;
  ServerProcess server{dir.path()};
};

TEST_CASE_FIXTURE(TwoFiles, "a client that takes a flowId of a file does not stop the next start") {
  RpcClient evil(server.address());
  LoadRules(&evil, RuleJson(77, 1), "evil");
  Write("b", {RuleJson(2, 21), RuleJson(77, 21)});
  REQUIRE(server.LogHas("belongs to namespace evil"));
  for (const bool takeover : {false, true}) {
    if (takeover) server.options().arguments.emplace_back("--rules-takeover");
    server.Kill9();
    fs::remove(server.log_path());
    Write("a", RuleJson(1, takeover ? 12 : 11));  // Files without fault are loaded all the same.
    server.Start();
    CHECK(Levels() == std::map<int64_t, int64_t>{{1, takeover ? 12 : 11}, {2, 20}, {77, 1}});
    CHECK(server.LogHas("warn  rules: file:" + path("b") +
                        ": namespace b: rule of resource 'resource-77': clusterConfig.flowId "
                        "77 belongs to namespace evil; "));
    CHECK(server.LogHas("; namespace 'b' keeps the rules that the ledger has from " + path("b") +
                        ". Put that right: the file is loaded as soon as it can be"));
  }
  // What stood in the way goes, and the file is loaded when any is looked at.
  evil = RpcClient(server.address());
  LoadRules(&evil, Json::array(), "evil");
  server.process().Signal(SIGHUP);
  CHECK(AwaitLevels({{1, 12}, {2, 21}, {77, 21}}));
}

TEST_CASE_FIXTURE(TwoFiles, "a file that a crash left half written or missing is waited for") {
  server.Kill9();
  const std::string whole = ReadFileToString(path("b"));
  SUBCASE("half written") { WriteStringToFile(path("b"), whole.substr(0, whole.size() / 2)); }
  SUBCASE("empty") { WriteStringToFile(path("b"), ""); }
  SUBCASE("missing") { fs::remove(path("b")); }
  SUBCASE("unreadable") {
    fs::remove(path("b"));
    fs::create_directory(path("b"));
  }
  std::vector<std::string> check = server.Arguments();
  check.emplace_back("--check-config");
  const Finished checked = RunProgram(check);
  CHECK(checked.exit_code == 64);
  CHECK(Contains(checked.err, path("b")));
  server.Start();
  CHECK(Levels() == std::map<int64_t, int64_t>{{1, 10}, {2, 20}});
  CHECK(server.LogHas("namespace 'b' keeps the rules that the ledger has from "));
  fs::remove(path("b"));
  Write("b", RuleJson(2, 22));
  CHECK(AwaitLevels({{1, 10}, {2, 22}}));
}

TEST_CASE_FIXTURE(TwoFiles, "what is wrong with a rule file is logged once, by the start") {
  const auto warnings = [&] {
    const std::string log = server.log();
    size_t count = 0;
    for (size_t at = log.find("warn "); at != std::string::npos; at = log.find("warn ", at + 1)) {
      if (Contains(log.substr(at, log.find('\n', at) - at), path("b"))) ++count;
    }
    return count;
  };
  RpcClient evil(server.address());
  LoadRules(&evil, RuleJson(77, 1), "evil");
  server.Kill9();
  fs::remove(server.log_path());
  SUBCASE("not valid") { Write("b", RuleJson(2, -1)); }
  SUBCASE("half written") { WriteStringToFile(path("b"), "[{"); }
  SUBCASE("a flowId of another") { Write("b", {RuleJson(77, 21)}); }
  SUBCASE("missing") { fs::remove(path("b")); }
  server.Start();
  // When another file is loaded, the look of the start is over.
  Write("a", RuleJson(1, 11));
  CHECK(AwaitLevels({{1, 11}, {2, 20}, {77, 1}}));
  CHECK(warnings() == 1);
  // What it holds later is told, and so is the same to who asks for it.
  WriteStringToFile(path("b"), "[{}");
  CHECK(PollUntil(kPatienceMs, [&] { return warnings() == 2; }));
  server.process().Signal(SIGHUP);
  CHECK(PollUntil(kPatienceMs, [&] { return warnings() == 3; }));
}

TEST_CASE_FIXTURE(TwoFiles, "a file that is new for its namespace must be right for a start") {
  server.Kill9();
  WriteStringToFile(dir.Sub("typo.json"), "[{");
  auto& arguments = server.options().arguments;
  const std::vector<std::string> before = arguments;
  SUBCASE("another file") { arguments[3] = "b=" + dir.Sub("typo.json"); }
  SUBCASE("another file, missing") { arguments[3] = "b=" + dir.Sub("missing.json"); }
  SUBCASE("another namespace") {
    arguments.insert(arguments.end(), {"--rules", "c=" + dir.Sub("typo.json")});
  }
  SUBCASE("another namespace, a flowId that is taken") {
    Write("c", RuleJson(2, 5));
    arguments.insert(arguments.end(), {"--rules", "c=" + path("c")});
  }
  const Finished refused = FailedStart(&server);
  CAPTURE(refused.err);
  CHECK(refused.exit_code == 64);
  CHECK_FALSE(Contains(refused.err, "keeps the rules"));
  arguments = before;
  server.Start();
  CHECK(Levels() == std::map<int64_t, int64_t>{{1, 10}, {2, 20}});
}

TEST_CASE("a namespace that the RPC has emptied may be had by a file") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  LoadRules(&client, Json::array());
  server.server().Terminate();
  WriteStringToFile(server.Sub("mine.json"), RuleSet(RuleJson(1, 20)).dump());
  server.server().options().arguments = {"--rules", server.Sub("mine.json")};
  server.server().Start();
  RpcClient again = server.Connect();
  CHECK(Acquire(&again, 1).level == 20);
}

// Of a row of `rules sources`, what a ledger on disk tells, too.
Json WithoutLoads(Json row) {
  for (const char* key : {"loaded_ms", "refused_ms", "refusal", "warnings", "requests_max"}) {
    row.erase(key);
  }
  return row;
}

TEST_CASE_FIXTURE(RuleFileFixture,
                  "rules sources tells whose each namespace is, live and on disk") {
  LoadRules(&client, {RuleJson(7, 70), RuleJson(8, 80)}, "orders");
  RpcClient bob(server.address());
  ResultOf(&bob, "hello", {1, "orders", "bob"});
  Acquire(&bob, 7);
  for (const bool is_live : {true, false}) {
    if (!is_live) server.Kill9();
    const auto rows =
        AdminRows(is_live ? live() : Source::Offline(server.data_dir()), {"rules", "sources"});
    REQUIRE(rows.size() == 2);
    for (const Json& row : rows) CHECK(row.at("loaded_ms").is_null() == !is_live);
    CHECK(WithoutLoads(rows[0]) == Json({{"namespace", "default"},
                                         {"source", "file:" + path()},
                                         {"rules", 1},
                                         {"sessions", 0},
                                         {"sessions_online", is_live ? Json(0) : Json()}}));
    CHECK(WithoutLoads(rows[1]) == Json({{"namespace", "orders"},
                                         {"source", "rpc"},
                                         {"rules", 2},
                                         {"sessions", 1},
                                         {"sessions_online", is_live ? Json(1) : Json()}}));
  }
  const Finished verified = RunAdmin(Source::Offline(server.data_dir()), {"verify"});
  CHECK(verified.exit_code == 0);
}

TEST_CASE_FIXTURE(RuleFileFixture, "rules diff tells what a load would change, live and on disk") {
  LoadRules(&client, RuleJson(7, 70), "orders");
  const std::string file = dir.Sub("next.json");
  const auto diff = [&](bool is_live, const std::string& format) {
    return RunAdmin(is_live ? live() : Source::Offline(server.data_dir()),
                    {"rules", "diff", file, "--namespace", "default", "--format", format});
  };
  for (const bool is_live : {true, false}) {
    if (!is_live) server.Kill9();
    WriteStringToFile(file, RuleSet(RuleJson(1, 10)).dump());
    const Finished same = diff(is_live, "table");
    CHECK(same.exit_code == 0);
    CHECK(same.out == "0 added, 0 removed, 0 changed, 1 unchanged, 0 skipped\n");
    CHECK(Contains(same.err, "takes its rules from file:" + path()));

    WriteStringToFile(file, RuleSet({RuleJson(1, 12), RuleJson(2, 5), RuleJson(7, 1)}).dump());
    const Finished different = diff(is_live, "jsonl");
    CHECK(different.exit_code == 1);
    const auto rows = ParseJsonLines(different.out);
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].at("change") == "changed");
    CHECK(rows[0].at("field") == "count");
    CHECK(rows[0].at("old") == "10");
    CHECK(rows[0].at("new") == "12");
    CHECK(rows[1].at("change") == "added");
    CHECK(rows[1].at("flow_id") == 2);
    CHECK(rows[2].at("change") == "conflict");
    CHECK(ParseCsv(diff(is_live, "csv").out).size() == 4);
    CHECK_FALSE(Contains(different.err, "removes"));

    WriteStringToFile(file, "[]");
    const Finished emptied = diff(is_live, "table");
    CHECK(emptied.exit_code == 1);
    CHECK(Contains(emptied.err, "warning: the load removes 1 rule in force"));
  }
  for (const char* wrong :
       {"[", "", R"([{"foo":1}])", R"([{"resource":"r","clusterMode":false}])"}) {
    WriteStringToFile(file, wrong);
    CHECK(diff(false, "table").exit_code == 64);
  }
  WriteStringToFile(file, "[");
  CHECK(diff(true, "table").exit_code == 64);
  WriteStringToFile(file, "[]");
  CHECK(diff(true, "table").exit_code == 69);
}

}  // namespace
}  // namespace nowcalls::testing
