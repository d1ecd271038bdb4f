// The server as a program: flags, files, exit codes, signals and locks.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

Finished RunServer(std::vector<std::string> arguments, const Environment& environment = {}) {
  arguments.insert(arguments.begin(), ProductBinary("nowcalls-server"));
  return RunProgram(std::move(arguments), environment);
}

// The line of --check-config about one setting.
std::string SettingLine(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return line;
  }
  return "";
}

TEST_CASE("help and version print to stdout and exit 0") {
  const Finished help = RunServer({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  for (const char* flag :
       {"--listen", "--port-file", "--data-dir", "--rules", "--durability", "--log-level",
        "--log-format", "--config", "--check-config", "--insecure-listen", "NOWCALLS_DATA_DIR"}) {
    CAPTURE(flag);
    CHECK(Contains(help.out, flag));
  }
  const Finished version = RunServer({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(Contains(version.out, "nowcalls-server "));
}

TEST_CASE("output that cannot be written is an I/O error") {
  for (const char* flag : {"--help", "--version", "--check-config"}) {
    CAPTURE(flag);
    TempDir dir;
    Process server(
        {{ProductBinary("nowcalls-server"), flag}, {}, "/dev/full", dir.Sub("err"), "/dev/null"});
    CHECK(server.Wait() == 74);
    CHECK(Contains(ReadFileToString(dir.Sub("err")), "No space left on device"));
  }
}

TEST_CASE("wrong settings exit 64 and name the setting and where it came from") {
  TempDir dir;
  WriteStringToFile(dir.Sub("bad.toml"), "durability = \"sometimes\"\n");
  WriteStringToFile(dir.Sub("unknown.toml"), "data_dir = \"x\"\ncolour = \"red\"\n");
  WriteStringToFile(dir.Sub("broken.toml"), "data_dir = \n");
  WriteStringToFile(dir.Sub("rules.json"), Json::array({RuleJson(1, -5)}).dump());
  const struct {
    std::vector<std::string> arguments;
    Environment environment;
    std::vector<std::string> named;
  } cases[] = {
      {{"--colour"}, {}, {"--colour"}},
      {{"--listen", "nowhere"}, {}, {"--listen"}},
      {{"--listen", "127.0.0.1:99999"}, {}, {"--listen"}},
      {{"--durability", "interval:0"}, {}, {"--durability", "interval:0"}},
      {{"--log-format", "xml"}, {}, {"--log-format", "xml"}},
      {{"--log-level", "loud"}, {}, {"--log-level"}},
      {{"--resource-timeout-factor", "5"}, {}, {"--resource-timeout-factor"}},
      {{"--connections-max", "many"}, {}, {"--connections-max"}},
      {{}, {{"NOWCALLS_DURABILITY", "maybe"}}, {"NOWCALLS_DURABILITY"}},
      {{"--config", dir.Sub("bad.toml")}, {}, {"bad.toml:1", "durability"}},
      {{"--config", dir.Sub("unknown.toml")}, {}, {"unknown.toml:2", "colour"}},
      {{"--config", dir.Sub("broken.toml")}, {}, {"broken.toml"}},
      {{"--config", dir.Sub("absent.toml")}, {}, {"absent.toml"}},
      {{"--rules", dir.Sub("absent.json")}, {}, {"absent.json"}},
      {{"--rules", "shop=" + dir.Sub("rules.json")}, {}, {"rules.json", "count"}},
      {{"stray"}, {}, {"stray"}},
      {{}, {{"NOWCALLS_CONFIG", dir.Sub("absent.toml")}}, {"NOWCALLS_CONFIG", "absent.toml"}},
  };
  for (const auto& bad : cases) {
    std::vector<std::string> arguments = {"--data-dir", dir.Sub("data")};
    arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
    const Finished finished = RunServer(arguments, bad.environment);
    CAPTURE(finished.err);
    CHECK(finished.exit_code == 64);
    for (const auto& named : bad.named) {
      CAPTURE(named);
      CHECK(Contains(finished.err, named));
    }
    CHECK(finished.out.empty());
  }
}

TEST_CASE("flags beat the environment, which beats the file, which beats the default") {
  TempDir dir;
  WriteStringToFile(dir.Sub("server.toml"),
                    "durability = \"none\"\nlog_level = \"error\"\nsweep_interval_ms = 250\n");
  const Environment environment = {{"NOWCALLS_DURABILITY", "interval:20"},
                                   {"NOWCALLS_LOG_LEVEL", "warn"},
                                   {"NOWCALLS_CONFIG", dir.Sub("server.toml")}};
  const Finished checked =
      RunServer({"--check-config", "--data-dir", dir.Sub("data"), "--durability", "interval:30"},
                environment);
  CAPTURE(checked.out);
  CAPTURE(checked.err);
  CHECK(checked.exit_code == 0);
  CHECK(Contains(SettingLine(checked.out, "durability"), "interval:30"));
  CHECK(Contains(SettingLine(checked.out, "durability"), "flag --durability"));
  CHECK(Contains(SettingLine(checked.out, "log-level"), "warn"));
  CHECK(Contains(SettingLine(checked.out, "log-level"), "NOWCALLS_LOG_LEVEL"));
  CHECK(Contains(SettingLine(checked.out, "sweep-interval-ms"), "250"));
  CHECK(Contains(SettingLine(checked.out, "sweep-interval-ms"), "server.toml"));
  CHECK(Contains(SettingLine(checked.out, "restart-grace-ms"), "10000"));
  CHECK(Contains(SettingLine(checked.out, "restart-grace-ms"), "default"));
}

TEST_CASE("the order of settings holds for a server that runs") {
  TestServer server(nullptr,
                    {{"--durability", "interval:30"},
                     {{"NOWCALLS_DURABILITY", "none"}, {"NOWCALLS_CONNECTIONS_MAX", "77"}}});
  RpcClient client = server.Connect();
  const Json info = ResultOf(&client, "info");
  CHECK(info.at("ledger").at("durability") == "interval:30");
  CHECK(info.at("limits").at("connections_max") == 77);
}

TEST_CASE("a variable that is no setting is warned about and changes nothing") {
  const Environment misspelt = {{"NOWCALLS_DURIBILITY", "none"}};
  const std::string warning =
      "environment variable NOWCALLS_DURIBILITY is no setting and ignored; did you mean "
      "NOWCALLS_DURABILITY?";
  const Finished checked = RunServer({"--check-config"}, misspelt);
  CHECK(checked.exit_code == 0);
  CHECK(checked.err == "nowcalls-server: warning: " + warning + "\n");
  CHECK(Contains(SettingLine(checked.out, "durability"), "default"));
  TestServer server(nullptr, {{}, misspelt});
  CHECK(server.server().LogHas("warn  " + warning));
}

TEST_CASE("--check-config touches no ledger and serves nothing") {
  TempDir dir;
  const Finished checked =
      RunServer({"--check-config", "--data-dir", dir.Sub("data"), "--port-file", dir.Sub("port")});
  CHECK(checked.exit_code == 0);
  struct stat ignored {};
  CHECK(stat(dir.Sub("data").c_str(), &ignored) != 0);
  CHECK(stat(dir.Sub("port").c_str(), &ignored) != 0);
}

TEST_CASE("--check-config and a first start refuse rule files that would limit nothing") {
  TempDir dir;
  Json misspelt = RuleJson(1, 5);
  misspelt.erase("clusterMode");
  misspelt["clustermode"] = true;
  Json local = RuleJson(1, 5);
  local["clusterMode"] = false;
  const struct {
    std::string text;
    std::string told;
  } cases[] = {
      {Json::array({misspelt}).dump(), "did you mean clusterMode?"},
      {Json::array({local}).dump(), "0 of 1 rules apply"},
      {R"([{"foo":1}])", "no rule of a known kind"},
      {R"([{"resource":"r","count":1,"timeWindow":10}])", "(DegradeRule)"},
      {"", "the text is empty"},
      {Json({{"data", Json::array({RuleJson(1, 5)})}}).dump(), "write the array of 'data' alone"},
  };
  const std::string file = dir.Sub("rules.json");
  for (const auto& wrong : cases) {
    CAPTURE(wrong.text);
    WriteStringToFile(file, wrong.text);
    const std::vector<std::string> start = {"--data-dir",  dir.Sub("data"), "--listen",
                                            "127.0.0.1:0", "--rules",       "shop=" + file};
    std::vector<std::string> check = start;
    check.emplace_back("--check-config");
    for (const auto& arguments : {check, start}) {
      const Finished refused = RunServer(arguments);
      CAPTURE(refused.err);
      CHECK(refused.exit_code == 64);
      CHECK(Contains(refused.err, file));
      CHECK(Contains(refused.err, wrong.told));
    }
  }
}

TEST_CASE("a server without rules warns that nothing is limited, and names its data directory") {
  TestServer server;
  CHECK(server.server().LogHas("warn  no rules are in force, so nothing is limited"));
  CHECK(server.server().LogHas("The data directory is " + server.data_dir()));
  RpcClient client = server.Connect();
  CHECK(Acquire(&client, 1).status == kStatusNoRuleExists);
  LoadRules(&client, {RuleJson(1, 10)});
  server.server().Terminate();
  std::filesystem::remove(server.server().log_path());
  server.server().Start();
  CHECK(server.server().LogHas("serving on "));
  CHECK_FALSE(Contains(server.server().log(), "no rules are in force"));
}

TEST_CASE("an address that other machines can reach needs --insecure-listen") {
  TempDir dir;
  const std::vector<std::string> listen = {"--data-dir", dir.Sub("data"), "--listen", "0.0.0.0:0"};
  const Finished refused = RunServer(listen);
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, "--insecure-listen"));
  auto allowed = listen;
  allowed.insert(allowed.end(), {"--insecure-listen", "--check-config"});
  CHECK(RunServer(allowed).exit_code == 0);
}

TEST_CASE("the port file holds the port while the server serves") {
  TempDir dir;
  ServerProcess server(dir.path());
  server.Start();
  const std::string port = ReadFileToString(dir.Sub("port"));
  CHECK("127.0.0.1:" + port == server.address() + "\n");
  RpcClient client(server.address());
  CHECK(client.Call("ping").ok());
  CHECK(server.Terminate() == 0);
  CHECK(ReadFileToString(dir.Sub("port")).empty());
}

TEST_CASE("too few open files for a server are an I/O error at the start, not under load") {
  TempDir dir;
  ServerProcess server(dir.path());
  const auto start_with = [&](const std::string& limit, const std::vector<std::string>& more) {
    std::vector<std::string> shell = {"/bin/sh", "-c",
                                      "ulimit -n " + limit + R"(; exec "$0" "$@")"};
    for (const std::string& argument : server.Arguments()) shell.push_back(argument);
    shell.insert(shell.end(), more.begin(), more.end());
    const Finished refused = RunProgram(shell);
    CHECK(refused.exit_code == 74);
    return refused.err;
  };
  const std::string error = start_with("64", {});
  CHECK(Contains(error, "only 64 files may be open, and 300 are needed at least"));
  CHECK(Contains(error, "ulimit -n"));
  // Readers of HTTP must not take the files of the ledger.
  CHECK(Contains(start_with("500", {"--http", "127.0.0.1:0"}),
                 "only 500 files may be open, and 556 are needed at least"));
  CHECK_FALSE(fs::exists(dir.Sub("data")));
}

TEST_CASE("an address in use is an I/O error") {
  TestServer first;
  TempDir dir;
  const Finished second = RunServer({"--data-dir", dir.Sub("data"), "--listen", first.address()});
  CHECK(second.exit_code == 74);
  CHECK(Contains(second.err, first.address()));
}

TEST_CASE("a start that fails leaves no new ledger, and the port file to whoever may have it") {
  TestServer other;
  const std::vector<std::string> starts[] = {
      {"--listen", other.address()},
      {"--listen", "192.0.2.1:0", "--insecure-listen"},  // TEST-NET-1.
      {"--listen", "127.0.0.1:0", "--port-file", "/nonexistent/port"},
  };
  for (const auto& start : starts) {
    TempDir dir;
    std::vector<std::string> arguments = {"--data-dir", dir.Sub("data")};
    if (start.size() < 4) {
      arguments.insert(arguments.end(), {"--port-file", other.Sub("port")});
    }
    arguments.insert(arguments.end(), start.begin(), start.end());
    const Finished finished = RunServer(arguments);
    CAPTURE(finished.err);
    CHECK(finished.exit_code == 74);
    struct stat ignored {};
    CHECK(stat(dir.Sub("data").c_str(), &ignored) != 0);
    CHECK("127.0.0.1:" + ReadFileToString(other.Sub("port")) == other.address() + "\n");
  }
}

TEST_CASE("a start that has its address removes the port file that a killed server left") {
  TempDir dir;
  WriteStringToFile(dir.Sub("port"), "18730\n");
  fs::create_directories(dir.Sub("data/ledger"));
  WriteStringToFile(dir.Sub("data/ledger/CURRENT"), "no manifest\n");
  const Finished finished = RunServer(
      {"--data-dir", dir.Sub("data"), "--listen", "127.0.0.1:0", "--port-file", dir.Sub("port")});
  CAPTURE(finished.err);
  CHECK(finished.exit_code == 65);
  CHECK(ReadFileToString(dir.Sub("port")).empty());
}

TEST_CASE("a port file that names something else is a wrong setting, and what it names stays") {
  TempDir dir;
  WriteStringToFile(dir.Sub("rules.json"), "[]");
  REQUIRE(mkfifo(dir.Sub("pipe").c_str(), 0600) == 0);
  fs::create_symlink("/dev/null", dir.Sub("link"));
  for (const char* name : {"rules.json", "pipe", "link", "data/ledger/CURRENT"}) {
    CAPTURE(name);
    const Finished finished = RunServer(
        {"--data-dir", dir.Sub("data"), "--listen", "127.0.0.1:0", "--port-file", dir.Sub(name)});
    CAPTURE(finished.err);
    CHECK(finished.exit_code == 64);
    CHECK(Contains(finished.err, "port-file: " + dir.Sub(name)));
    CHECK_FALSE(fs::exists(dir.Sub("data")));
  }
  CHECK(ReadFileToString(dir.Sub("rules.json")) == "[]");
  CHECK(fs::is_fifo(dir.Sub("pipe")));
  CHECK(fs::is_symlink(fs::symlink_status(dir.Sub("link"))));
}

TEST_CASE("the directory of a ledger is not taken for a data directory") {
  TestServer server;
  const std::string ledger = server.data_dir() + "/ledger";
  for (const bool running : {true, false}) {
    if (!running) server.server().Kill9();
    const Finished finished = RunServer({"--data-dir", ledger, "--listen", "127.0.0.1:0"});
    CAPTURE(finished.err);
    CHECK(finished.exit_code == 64);
    CHECK(Contains(finished.err, server.data_dir() + " is probably meant"));
    const Finished verified = RunAdmin(Source::Offline(ledger), {"verify"});
    CHECK(verified.exit_code == 64);
    CHECK(Contains(verified.err, "--data-dir: "));
    CHECK(Contains(verified.err, server.data_dir() + " is probably meant"));
    struct stat ignored {};
    CHECK(stat((ledger + "/ledger").c_str(), &ignored) != 0);
  }
}

TEST_CASE("a second server on a data directory is refused with the pid of the first") {
  TestServer first({RuleJson(1, 10)});
  RpcClient client = first.Connect("alice");
  // Even with the same port file: it stays the first one's.
  const std::string port = ReadFileToString(first.Sub("port"));
  const Finished second = RunServer({"--data-dir", first.data_dir(), "--listen", "127.0.0.1:0",
                                     "--port-file", first.Sub("port")});
  CAPTURE(second.err);
  CHECK(second.exit_code == 74);
  CHECK_FALSE(port.empty());
  CHECK(ReadFileToString(first.Sub("port")) == port);
  CHECK(Contains(second.err, std::to_string(first.server().process().pid())));
  CHECK(Acquire(&client, 1).status == kStatusOk);
  first.server().Kill9();
  first.server().Start();
}

TEST_CASE("SIGTERM and SIGINT end the server with exit 0") {
  for (const int signal : {SIGTERM, SIGINT}) {
    TestServer server({RuleJson(1, 10)});
    RpcClient idle = server.Connect("alice");
    Acquire(&idle, 1);
    server.server().process().Signal(signal);
    CHECK(server.server().process().Wait() == 0);
    CHECK(idle.SeesEof());
    CHECK(AdminRows(Source::Offline(server.data_dir()), {"dump"}).size() == 1);
  }
}

TEST_CASE("a client that does not read does not hold up SIGTERM") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect("alice");
  for (int i = 0; i < 2'000; ++i) client.Send("info");
  CHECK(server.server().Terminate() == 0);
}

TEST_CASE("listings that were asked for do not hold up SIGTERM, however many they are") {
  constexpr int kRules = 300;
  constexpr int kConnections = 8;
  Json rules = Json::array();
  for (int flow = 1; flow <= kRules; ++flow) rules.push_back(RuleJson(flow, 10));
  TestServer server;
  RpcClient setup = server.Connect();
  REQUIRE(setup.Call("rules_load", {"default", rules.dump()}).ok());
  // As much as is read ahead of a connection, so that each has some seconds of listings to come.
  const std::string request = EncodeRequest(1, "rules_list", {nullptr, 1000});
  std::string requests;
  while (requests.size() + request.size() <= 16 * 1024) requests += request;
  std::vector<std::thread> readers;
  std::atomic<int> reading{0};
  for (int i = 0; i < kConnections; ++i) {
    readers.emplace_back([&] {
      RpcClient client = server.Connect();
      client.SendRaw(requests);
      for (bool first = true; client.Receive().answered(); first = false) reading += first ? 1 : 0;
    });
  }
  CHECK(PollUntil(kPatienceMs, [&] { return reading == kConnections; }));
  CHECK(server.server().Terminate() == 0);
  CHECK(server.server().LogHas("8 connections had asked for is not all done"));
  for (std::thread& reader : readers) reader.join();
}

// A pipe by name whose reader is there and does not read; the server's stderr.
class StalledReader {
 public:
  explicit StalledReader(const std::string& path) {
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    fd_ = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(fd_ >= 0);
    fcntl(fd_, F_SETPIPE_SZ, 4096);
  }
  ~StalledReader() { close(fd_); }
  StalledReader(const StalledReader&) = delete;
  StalledReader& operator=(const StalledReader&) = delete;

  std::string Read() const {
    std::string text;
    char chunk[4096];
    ssize_t size = 0;
    while ((size = read(fd_, chunk, sizeof(chunk))) > 0) {
      text.append(chunk, static_cast<size_t>(size));
    }
    return text;
  }

 private:
  int fd_;
};

TEST_CASE("a stderr that nobody reads holds up neither clients nor the end") {
  TempDir dir;
  const StalledReader reader(dir.Sub("server.log"));
  ServerProcess server(dir.path(), {{"--log-level", "debug"}, {}});
  server.Start();
  RpcClient client(server.address());
  LoadRules(&client, {RuleJson(1, 10)});
  // Two lines each, far more than the pipe takes.
  for (int i = 0; i < 200; ++i) {
    RpcClient guest(server.address());
    REQUIRE(guest.Call("ping").ok());
  }
  CHECK(Acquire(&client, 1).status == kStatusOk);
  SUBCASE("SIGTERM") { CHECK(server.Terminate() == 0); }
  SUBCASE("SIGTERM twice in one go, as timeout(1) sends it") {
    server.process().Signal(SIGTERM);
    server.process().Signal(SIGTERM);
    CHECK(server.process().Wait() == 0);
  }
  // The pipe has the first line for sure. How much more it takes depends on the sizes of writes.
  CHECK(Contains(reader.Read(), "debug listen is "));
}

TEST_CASE("standard descriptors that the caller closed do not become files of the ledger") {
  TempDir dir;
  ServerProcess arguments(dir.path());
  std::vector<std::string> shell = {"/bin/sh", "-c", R"(exec "$0" "$@" <&- >&- 2>&-)"};
  for (const std::string& argument : arguments.Arguments()) shell.push_back(argument);
  Process server({shell, {}, dir.Sub("log"), dir.Sub("log"), "/dev/null"});
  REQUIRE(PollUntil(kPatienceMs, [&] { return !ReadFileToString(dir.Sub("port")).empty(); }));
  for (const char* descriptor : {"0", "1", "2"}) {
    const std::string link = "/proc/" + std::to_string(server.pid()) + "/fd/" + descriptor;
    CHECK(fs::read_symlink(link) == "/dev/null");
  }
  server.Signal(SIGTERM);
  CHECK(server.Wait() == 0);
}

TEST_CASE("log lines as JSON parse, each with a time, a level and a message") {
  TestServer server({RuleJson(1, 10)}, {{"--log-format", "json", "--log-level", "debug"}, {}});
  RpcClient hostile(server.address());
  hostile.SendRaw("\x90\x81garbage \"with\" quotes\n");
  CHECK(hostile.SeesEof());
  CHECK(server.server().Terminate() == 0);
  const auto lines = ParseJsonLines(server.server().log());
  REQUIRE(lines.size() > 2);
  for (const auto& line : lines) {
    CAPTURE(line.dump());
    CHECK(line.at("ts").is_string());
    CHECK(line.at("level").is_string());
    CHECK(line.at("msg").is_string());
  }
  const auto closing = std::find_if(lines.begin(), lines.end(),
                                    [](const auto& line) { return line.contains("reason"); });
  REQUIRE(closing != lines.end());
  const auto peer = closing->at("peer").template get<std::string>();
  const auto reason = closing->at("reason").template get<std::string>();
  CHECK(closing->at("msg") == "connection " + peer + " " + reason + "; closing it");
}

TEST_CASE("a log level leaves out what is below it") {
  TestServer server({RuleJson(1, 10)}, {{"--log-level", "error"}, {}});
  CHECK(server.server().Terminate() == 0);
  CHECK(server.server().log().empty());
}

TEST_CASE("the level debug tells the settings, the rule files and the steps of the start") {
  TempDir dir;
  const std::string rules = dir.Sub("rules.json");
  WriteStringToFile(rules, Json::array({RuleJson(1, 10), RuleJson(2, 10)}).dump());
  TestServer server(nullptr, {{"--log-level", "debug", "--rules", rules}, {}});
  CHECK(server.server().Terminate() == 0);
  const std::string log = server.server().log();
  CAPTURE(log);
  for (const std::string& told :
       {std::string("debug log-level is debug (flag --log-level)"),
        std::string("debug durability is sync (default)"),
        "debug rule file " + rules + ": 2 rules for namespace 'default'",
        "debug no other server has the ledger in " + server.data_dir() + "/ledger",
        std::string("debug the address 127.0.0.1:0 is free"),
        std::string("debug the ledger is open after "),
        std::string("debug the rule files are dealt with after "),
        " is in " + server.Sub("port")}) {
    CAPTURE(told);
    CHECK(Contains(log, told));
  }
}

TEST_CASE("a data directory that cannot be made is an I/O error") {
  TempDir dir;
  WriteStringToFile(dir.Sub("file"), "not a directory");
  const Finished finished =
      RunServer({"--data-dir", dir.Sub("file") + "/data", "--listen", "127.0.0.1:0"});
  CAPTURE(finished.err);
  CHECK(finished.exit_code == 74);
  CHECK(Contains(finished.err, dir.Sub("file")));
}

TEST_CASE("a rule file that another file contradicts keeps the server from starting") {
  TempDir dir;
  WriteStringToFile(dir.Sub("a.json"), Json::array({RuleJson(1, 5)}).dump());
  WriteStringToFile(dir.Sub("b.json"), Json::array({RuleJson(1, 6)}).dump());
  const Finished finished =
      RunServer({"--data-dir", dir.Sub("data"), "--listen", "127.0.0.1:0", "--rules",
                 "a=" + dir.Sub("a.json"), "--rules", "b=" + dir.Sub("b.json")});
  CAPTURE(finished.err);
  CHECK(finished.exit_code == 64);
  CHECK(Contains(finished.err, "flowId 1"));
}

}  // namespace
}  // namespace nowcalls::testing
