// Backups of running and stopped servers, and what is restored from them.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Finished Admin(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ProductBinary("nowcalls-admin"));
  return RunProgram(arguments);
}

Finished BackUp(const TestServer& server, const std::string& to) {
  return RunAdmin(Source::Live(server.address()), {"backup", "--to", to});
}

Finished RestoreTo(const std::string& backup, const std::string& data_dir) {
  return Admin({"restore", "--from", backup, "--data-dir", data_dir});
}

std::set<uint64_t> TokensIn(const Source& source) {
  std::set<uint64_t> ids;
  for (const Json& row : AdminRows(source, {"dump"}))
    ids.insert(row.at("token_id").get<uint64_t>());
  return ids;
}

// A number behind a word of what the tool printed.
uint64_t NumberBehind(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  REQUIRE_MESSAGE(at != std::string::npos, text);
  return std::stoull(text.substr(at + word.size()));
}

// Acquires and releases until it is told to stop; half of the tokens stay.
class Load {
 public:
  explicit Load(const std::string& address)
      : thread_([this, address] {
          RpcClient client(address);
          client.Call("hello", {1, "default", "load"});
          std::vector<uint64_t> mine;
          while (!stop_) {
            const Reply reply = client.Call("acquire", {1, 1});
            if (!reply.ok()) return;
            mine.push_back(reply.result[1].get<uint64_t>());
            if (mine.size() % 2 == 1) continue;
            if (!client.Call("release", Json::array({mine.front()})).ok()) return;
            mine.erase(mine.begin());
            ++rounds_;
          }
        }) {}
  ~Load() {
    stop_ = true;
    thread_.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  bool Runs() const {
    const uint64_t before = rounds_;
    return PollUntil(kPatienceMs, [&] { return rounds_ > before + 20; });
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> rounds_{0};
  std::thread thread_;
};

const Json& Rules() {
  static const Json rules = {RuleJson(1, 1'000'000, {{"resourceTimeout", 600'000}}),
                             RuleJson(2, 10, {{"resourceTimeout", 600'000}})};
  return rules;
}

TEST_CASE("backups under load hold what was acknowledged before, and their restored copies serve") {
  TestServer server(Rules());
  RpcClient alice = server.Connect("alice");
  std::vector<uint64_t> tokens = AcquireMany(&alice, 2, 10);
  const Load load(server.address());
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    REQUIRE(load.Runs());
    // One more before each backup, which then must have it, and one less.
    REQUIRE(Release(&alice, tokens.front()) == kStatusReleaseOk);
    const uint64_t gone = tokens.front();
    tokens.erase(tokens.begin());
    tokens.push_back(Acquire(&alice, 2).token_id);
    const std::string backup = server.Sub("backup" + std::to_string(round));
    const Finished made = BackUp(server, backup);
    REQUIRE_MESSAGE(made.exit_code == 0, made.err);
    const uint64_t count = NumberBehind(made.out, "batch ");
    CHECK(count > 0);
    REQUIRE(load.Runs());

    const Grant later = Acquire(&alice, 1);
    const std::string dir = server.Sub("restored" + std::to_string(round));
    fs::create_directory(dir);
    const Finished restored = RestoreTo(backup, dir + "/data");
    REQUIRE_MESSAGE(restored.exit_code == 0, restored.err);
    CHECK(Contains(restored.out, "tokens granted since are unknown"));
    CHECK(RunAdmin(Source::Offline(dir + "/data"), {"verify"}).exit_code == 0);
    const std::set<uint64_t> found = TokensIn(Source::Offline(dir + "/data"));
    CHECK(found.size() == NumberBehind(made.out, ": "));
    for (const uint64_t token : tokens) CHECK(found.contains(token));
    CHECK_FALSE(found.contains(gone));
    CHECK_FALSE(found.contains(later.token_id));

    ServerProcess copy(dir);
    copy.Start();
    CHECK(TokensIn(Source::Live(copy.address())) == found);
    RpcClient again(copy.address());
    // And those of flow 1 that were taken after the earlier backups.
    CHECK(ResultOf(&again, "hello", {1, "default", "alice"})[3] == 10 + round);
    CHECK(NowCalls(&again, 2) == 10);
    CHECK(Release(&again, tokens.back()) == kStatusReleaseOk);
    const Grant granted = Acquire(&again, 2);
    CHECK(granted.status == kStatusOk);
    CHECK(granted.fence > later.fence);
    CHECK(copy.Terminate() == 0);
  }
}

TEST_CASE("a server that was killed is backed up at rest, and the copy has its counts") {
  TestServer server(Rules());
  RpcClient alice = server.Connect("alice");
  AcquireMany(&alice, 1, 3000);
  server.server().Kill9();
  const Source original = Source::Offline(server.data_dir());
  const Finished made = RunAdmin(original, {"backup", "--to", server.Sub("backup")});
  REQUIRE_MESSAGE(made.exit_code == 0, made.err);
  CHECK(Contains(made.out, "3000 tokens with nowCalls 3000"));
  REQUIRE(RestoreTo(server.Sub("backup"), server.Sub("new")).exit_code == 0);
  CHECK(TokensIn(Source::Offline(server.Sub("new"))) == TokensIn(original));
  CHECK(AdminRows(Source::Offline(server.Sub("new")), {"rules", "list"}) ==
        AdminRows(original, {"rules", "list"}));
  // The backup itself can be looked into.
  CHECK(RunAdmin(Source::Offline(server.Sub("backup")), {"verify"}).exit_code == 0);
  server.server().Start();
}

TEST_CASE("a server that is killed while it makes a backup leaves none that restore takes") {
  TestServer server(Rules());
  {
    RpcClient alice = server.Connect("alice");
    AcquireMany(&alice, 1, 20'000);
  }
  int unfinished = 0;
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    const std::string backup = server.Sub("backup" + std::to_string(round));
    RpcClient admin = server.Connect();
    admin.Send("backup", Json::array({backup}));
    // From its first file on to its last, by round.
    REQUIRE(PollUntil(kPatienceMs, [&] {
      switch (round % 4) {
        case 0: return fs::exists(backup);
        case 1: return fs::exists(backup + "/ledger");
        case 2: return fs::exists(backup + "/ledger/CURRENT");
        default: return fs::exists(backup + "/backup.json");
      }
    }));
    server.server().Kill9();
    const std::string to = server.Sub("new" + std::to_string(round));
    const bool finished = fs::exists(backup + "/backup.json");
    const Finished restored = RestoreTo(backup, to);
    CAPTURE(restored.err);
    CHECK((restored.exit_code == 0) == finished);
    if (finished) {
      CHECK(TokensIn(Source::Offline(to)).size() == 20'000);
    } else {
      ++unfinished;
      CHECK_FALSE(fs::exists(to));
      if (fs::exists(backup + "/backup.unfinished")) {
        // Nor does a server take it for a ledger.
        CHECK(RunProgram({ProductBinary("nowcalls-server"), "--listen", "127.0.0.1:0", "--data-dir",
                          backup})
                  .exit_code == 64);
      }
    }
    server.server().Start();
    CHECK(RunAdmin(Source::Live(server.address()), {"ping"}).exit_code == 0);
  }
  CHECK(unfinished > 0);
}

TEST_CASE("SIGTERM ends a backup that is being made, and whoever asked is told") {
  TestServer server(Rules());
  {
    RpcClient alice = server.Connect("alice");
    AcquireMany(&alice, 1, 30'000);
  }
  RpcClient admin = server.Connect();
  const uint32_t asked = admin.Send("backup", Json::array({server.Sub("backup")}));
  REQUIRE(PollUntil(kPatienceMs, [&] { return fs::exists(server.Sub("backup")); }));
  CHECK(server.server().Terminate() == 0);
  const Reply reply = admin.Receive();
  CAPTURE(reply.ToString());
  REQUIRE(reply.answered());
  CHECK(reply.msgid == asked);
  // It may have been quicker.
  CHECK(reply.ok() == fs::exists(server.Sub("backup/backup.json")));
  if (!reply.ok()) {
    CHECK(Contains(reply.error_message, "the server ends"));
    CHECK_FALSE(fs::exists(server.Sub("backup")));
  }
}

TEST_CASE("a backup that cannot be made is refused with what is wrong, and leaves nothing") {
  TestServer server(Rules());
  RpcClient admin = server.Connect();
  fs::create_directory(server.Sub("there"));
  const struct {
    std::string to;
    std::string says;
  } cases[] = {
      {server.Sub("there"), "exists already"},
      {"relative", "must be an absolute path"},
      {server.Sub("absent/backup"), "parent directory does not exist"},
      {server.data_dir() + "/ledger/backup", "lies within the ledger"},
      {"/proc/nowcalls", "cannot be made"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.to);
    const Reply refused = ErrorOf(&admin, "backup", Json::array({c.to}));
    CHECK(refused.error_code == kErrorBadParams);
    CHECK_MESSAGE(Contains(refused.error_message, c.says), refused.error_message);
    const Finished tool = BackUp(server, c.to);
    CHECK(tool.exit_code == 1);
    CHECK(Contains(tool.err, c.says));
  }
  CHECK(fs::is_empty(server.Sub("there")));
  const Finished held =
      RunAdmin(Source::Offline(server.data_dir()), {"backup", "--to", server.Sub("b")});
  CHECK(held.exit_code == 1);
  CHECK(Contains(held.err, "process " + std::to_string(server.server().process().pid())));
  CHECK(Contains(held.err, "have the server make the backup"));
  CHECK_FALSE(fs::exists(server.Sub("b")));
  const Finished absent =
      RunAdmin(Source::Offline(server.Sub("absent")), {"backup", "--to", server.Sub("b")});
  CHECK(absent.exit_code == 1);
  CHECK_FALSE(fs::exists(server.Sub("absent")));
}

TEST_CASE("a backup is no data directory, and a restore overwrites nothing") {
  TestServer server(Rules());
  RpcClient alice = server.Connect("alice");
  AcquireMany(&alice, 1, 10);
  const std::string backup = server.Sub("backup");
  REQUIRE(BackUp(server, backup).exit_code == 0);
  const Finished served = RunProgram(
      {ProductBinary("nowcalls-server"), "--listen", "127.0.0.1:0", "--data-dir", backup});
  CHECK(served.exit_code == 64);
  CHECK(Contains(served.err, "nowcalls-admin restore"));
  const Finished over = RestoreTo(backup, server.data_dir());
  CHECK(over.exit_code == 1);
  CHECK(Contains(over.err, "is not empty"));
  CHECK(Acquire(&alice, 1).status == kStatusOk);
  const Finished none = RestoreTo(server.Sub("nowhere"), server.Sub("new"));
  CHECK(none.exit_code == 1);
  CHECK_FALSE(fs::exists(server.Sub("new")));
  // A byte of the largest file.
  std::string path;
  for (const auto& entry : fs::directory_iterator(backup + "/ledger")) {
    if (path.empty() || entry.file_size() > fs::file_size(path)) path = entry.path();
  }
  std::string bytes = ReadFileToString(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  fs::remove(path);
  WriteStringToFile(path, bytes);
  const Finished damaged = RestoreTo(backup, server.Sub("new"));
  CHECK(damaged.exit_code == 65);
  CHECK(Contains(damaged.err, path));
  CHECK_FALSE(fs::exists(server.Sub("new")));
}

}  // namespace
}  // namespace nowcalls::testing
