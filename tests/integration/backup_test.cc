// Backups of running and stopped servers, and what is restored from them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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
#include "support/small_disk.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

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

const Json& BackupRules() {
  static const Json rules = {RuleJson(1, 1'000'000, {{"resourceTimeout", 600'000}}),
                             RuleJson(2, 10, {{"resourceTimeout", 600'000}})};
  return rules;
}

TEST_CASE("backups under load hold what was acknowledged before, and their restored copies serve") {
  TestServer server(BackupRules());
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
  TestServer server(BackupRules());
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

TEST_CASE("of a backup of another user root is told whose it is, and --owner gives it to them") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root may give files away");
    return;
  }
  constexpr uid_t kUser = 4321;
  constexpr gid_t kGroup = 4322;
  TestServer server(BackupRules());
  server.server().Kill9();
  const std::string backup = server.Sub("backup");
  const Source original = Source::Offline(server.data_dir());
  REQUIRE(RunAdmin(original, {"backup", "--to", backup}).exit_code == 0);
  const Finished own = RestoreTo(backup, server.Sub("own"));
  CHECK_FALSE(Contains(own.out, "--owner"));
  for (const auto& entry : fs::recursive_directory_iterator(backup)) {
    REQUIRE(lchown(entry.path().c_str(), kUser, kGroup) == 0);
  }
  const Finished told = RestoreTo(backup, server.Sub("told"));
  CHECK(told.exit_code == 0);
  CHECK(Contains(
      told.out, "chown -R 4321 " + server.Sub("told") + ", or the same again with --owner 4321\n"));
  const auto given = [&](const std::vector<std::string>& command, const std::string& dir) {
    const Finished done = Admin(command);
    CHECK_MESSAGE(done.exit_code == 0, done.err);
    CHECK_FALSE(Contains(done.out, "chown"));
    for (const auto& entry : fs::recursive_directory_iterator(dir)) {
      struct stat info {};
      REQUIRE(lstat(entry.path().c_str(), &info) == 0);
      CHECK(info.st_uid == kUser);
      CHECK(info.st_gid == kGroup);
    }
  };
  const std::string owner = "4321:4322";
  given({"restore", "--from", backup, "--data-dir", server.Sub("given"), "--owner", owner},
        server.Sub("given"));
  given({"repair", "--data-dir", server.data_dir(), "--to", server.Sub("mended"), "--owner", owner},
        server.Sub("mended"));
  const Finished wrong = Admin({"restore", "--from", backup, "--data-dir", server.Sub("none"),
                                "--owner", "nobody-of-this-name"});
  CHECK(wrong.exit_code == 64);
  CHECK(Contains(wrong.err, "--owner: there is no user 'nobody-of-this-name'"));
  CHECK_FALSE(fs::exists(server.Sub("none")));
}

TEST_CASE("a server that is killed while it makes a backup leaves none that restore takes") {
  TestServer server(BackupRules());
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
    CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
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
  TestServer server(BackupRules());
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
    CHECK(reply.error_code == kErrorOverloaded);
    CHECK(Contains(reply.error_message, "the server ends"));
    CHECK_FALSE(fs::exists(server.Sub("backup")));
  }
}

std::string LargestDataFile(const std::string& data_dir) {
  std::string largest;
  for (const auto& entry : fs::directory_iterator(data_dir + "/ledger")) {
    if (entry.path().extension() != ".sst") continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  REQUIRE_FALSE(largest.empty());
  return largest;
}

constexpr int kHighBit = 0x80;

// Where to flip a byte, from the end of the largest data file of a ledger that no server has, so
// that RocksDB fails an assertion; 0: nowhere.
uint64_t FindAssertion(const std::string& data_dir, const std::string& scratch) {
  // In the last blocks, in front of the footer's 53 bytes.
  for (uint64_t behind = 90; behind < 300; ++behind) {
    fs::remove_all(scratch);
    CopyTree(data_dir, scratch);
    const std::string file = LargestDataFile(scratch);
    FlipByte(file, fs::file_size(file) - behind, kHighBit);
    const Finished read = RunAdmin(Source::Offline(scratch), {"verify"});
    if (read.exit_code == 65 && Contains(read.err, "assertion")) return behind;
  }
  return 0;
}

TEST_CASE(
    "damage that fails an assertion of RocksDB is told of a backup, and the server serves on") {
  TestServer server(BackupRules());
  {
    RpcClient alice = server.Connect("alice");
    AcquireMany(&alice, 1, 300);
  }
  REQUIRE(server.server().Terminate() == 0);
  const uint64_t behind = FindAssertion(server.data_dir(), server.Sub("scratch"));
  REQUIRE(behind > 0);
  server.server().Start();
  RpcClient alice = server.Connect("alice");
  const std::string file = LargestDataFile(server.data_dir());
  const uint64_t at = fs::file_size(file) - behind;
  FlipByte(file, at, kHighBit);
  for (int round = 0; round < 2; ++round) {
    const std::string to = server.Sub("backup" + std::to_string(round));
    const Finished refused = BackUp(server, to);
    CAPTURE(refused.err);
    CHECK(refused.exit_code == 74);
    CHECK(Contains(refused.err, "no backup was made in " + to + ": the copy does not verify"));
    CHECK(Contains(refused.err, "ended with exit code 65: "));
    CHECK(Contains(refused.err, "assertion '"));
    CHECK_FALSE(fs::exists(to));
    REQUIRE(server.server().Running());
    CHECK(server.server().LogHas("backup failed: no backup was made in " + to));
    CHECK(NowCalls(&alice, 1) == 300 + round);
    CHECK(Acquire(&alice, 1).status == kStatusOk);
  }
  // A byte that reads right again is a copy that verifies.
  FlipByte(file, at, kHighBit);
  CHECK(BackUp(server, server.Sub("sound")).exit_code == 0);
  CHECK(server.server().Terminate() == 0);
}

// A small file of /proc; empty when its process is gone, also when it goes between open and read.
std::string ProcText(const std::string& path) {
  char text[4096];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t size = read(fd, text, sizeof(text));
  close(fd);
  return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

// The third word of /proc/PID/stat, behind a name in parentheses; 0: there is no such process.
char StateOf(pid_t pid) {
  const std::string stat = ProcText("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? char{0} : stat.at(name_end + 2);
}

bool IsGone(pid_t pid) { return StateOf(pid) == 0 || StateOf(pid) == 'Z'; }

// The process that verifies a copy for `server`; 0: there is none.
pid_t FindVerifier(pid_t server) {
  const std::string parent = "\nPPid:\t" + std::to_string(server) + "\n";
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (ProcText(entry.path() / "comm") != "nc-verify\n") continue;
    if (Contains(ProcText(entry.path() / "status"), parent)) return std::stoi(name);
  }
  return 0;
}

// A server that makes a backup whose verification has come so far and no further.
class HeldVerification {
 public:
  HeldVerification() : server_(BackupRules()) {
    RpcClient alice = server_.Connect("alice");
    AcquireMany(&alice, 1, 30'000);
    admin_ = server_.Connect();
    // A verification may be over before it is held.
    for (int round = 0; round < 50 && StateOf(verifier_) != 'T'; ++round) {
      to_ = server_.Sub("backup" + std::to_string(round));
      Hold();
    }
    REQUIRE(StateOf(verifier_) == 'T');
  }
  ~HeldVerification() {
    if (!IsGone(verifier_)) kill(verifier_, SIGKILL);
  }
  HeldVerification(const HeldVerification&) = delete;
  HeldVerification& operator=(const HeldVerification&) = delete;

  ServerProcess& server() { return server_.server(); }
  RpcClient& admin() { return admin_; }
  // What becomes of the backup. Who verifies lets all others go first, and may take long.
  Reply Answer() { return admin_.Receive(4 * kPatienceMs); }
  pid_t verifier() const { return verifier_; }
  const std::string& to() const { return to_; }

 private:
  void Hold() {
    const pid_t server = server_.server().process().pid();
    admin_.Send("backup", Json::array({to_}));
    verifier_ = 0;
    REQUIRE(PollUntil(kPatienceMs, [&] {
      verifier_ = FindVerifier(server);
      return verifier_ != 0 || fs::exists(to_ + "/backup.json");
    }));
    if (verifier_ != 0 && kill(verifier_, SIGSTOP) == 0) {
      PollUntil(kPatienceMs, [&] { return StateOf(verifier_) == 'T' || IsGone(verifier_); });
    }
    if (StateOf(verifier_) != 'T') REQUIRE(Answer().ok());
  }

  TestServer server_;
  RpcClient admin_;
  pid_t verifier_ = 0;
  std::string to_;
};

TEST_CASE("a server that is killed while a copy is verified leaves no process that verifies") {
  HeldVerification held;
  constexpr int kLowest = 19;
  CHECK(getpriority(PRIO_PROCESS, static_cast<id_t>(held.verifier())) == kLowest);
  held.server().Kill9();
  CHECK(PollUntil(kPatienceMs, [&] { return IsGone(held.verifier()); }));
  CHECK_FALSE(fs::exists(held.to() + "/backup.json"));
  held.server().Start();
}

TEST_CASE("SIGTERM ends a server and the process that verifies for it, whatever that is at") {
  HeldVerification held;
  CHECK(held.server().Terminate() == 0);
  CHECK(IsGone(held.verifier()));
  const Reply reply = held.Answer();
  CAPTURE(reply.ToString());
  REQUIRE(reply.kind == Reply::Kind::kError);
  CHECK(reply.error_code == kErrorOverloaded);
  CHECK(Contains(reply.error_message, "the server ends"));
  CHECK_FALSE(fs::exists(held.to()));
}

TEST_CASE("what asks all processes of a service to end is not taken for damage of a copy") {
  HeldVerification held;
  for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGHUP}) kill(held.verifier(), signal);
  kill(held.verifier(), SIGCONT);
  const Reply reply = held.Answer();
  CHECK_MESSAGE(reply.ok(), reply.ToString());
}

TEST_CASE("a backup fails when its verification is killed, and the next one is made") {
  HeldVerification held;
  kill(held.verifier(), SIGKILL);
  const Reply reply = held.Answer();
  CAPTURE(reply.ToString());
  REQUIRE(reply.kind == Reply::Kind::kError);
  CHECK(Contains(reply.error_message, "could not be verified"));
  CHECK(Contains(reply.error_message, "SIGKILL"));
  CHECK_FALSE(fs::exists(held.to()));
  CHECK(held.admin().Call("backup", Json::array({held.to()}), 4 * kPatienceMs).ok());
}

TEST_CASE("a backup that cannot be made is refused with what is wrong, and leaves nothing") {
  TestServer server(BackupRules());
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
  // Directories that are no data directories: exit codes as of verify.
  for (const std::string& wrong : {server.Sub("absent"), server.data_dir() + "/ledger"}) {
    CAPTURE(wrong);
    CHECK(RunAdmin(Source::Offline(wrong), {"backup", "--to", server.Sub("b")}).exit_code == 64);
    CHECK(RunAdmin(Source::Offline(wrong), {"verify"}).exit_code == 64);
  }
  CHECK_FALSE(fs::exists(server.Sub("absent")));
}

TEST_CASE("who asks in vain for a backup fills no log, and hides none that is made") {
  TestServer server({RuleJson(1, 100)});
  RpcClient admin = server.Connect();
  const std::string there = server.Sub("there");
  fs::create_directory(there);
  int rounds = 0;
  // Only what is asked within a second is too much, and told of when that has passed.
  CHECK(PollUntil(kPatienceMs, [&] {
    for (int i = 0; i < 300; ++i) ErrorOf(&admin, "backup", Json::array({there}));
    const std::string to = server.Sub("backup" + std::to_string(rounds++));
    CHECK(BackUp(server, to).exit_code == 0);
    CHECK(server.server().LogHas(" began a backup to " + to + "\n"));
    return Contains(server.server().log(), "log lines about peers were suppressed");
  }));
  const std::string log = server.server().log();
  CHECK(Contains(log, " was refused a backup: " + there + " exists already"));
  CHECK_FALSE(Contains(log, " began a backup to " + there));
}

TEST_CASE("a restore for which there is no room tells so before it begins") {
  TestServer server(BackupRules());
  REQUIRE(BackUp(server, server.Sub("backup")).exit_code == 0);
  const TempDir dir;
  SmallDisk disk(dir.Sub("disk"));
  if (!disk.Mount("64m")) return;
  const Finished refused = RestoreTo(server.Sub("backup"), dir.Sub("disk/new"));
  CAPTURE(refused.err);
  CHECK(refused.exit_code == 74);
  CHECK(Contains(refused.err, " bytes are to be copied, 134217728 must be left for others, and " +
                                  std::to_string(disk.FreeBytes()) + " are free"));
  CHECK(fs::is_empty(dir.Sub("disk")));
}

TEST_CASE("a backup is no data directory, and a restore overwrites nothing") {
  TestServer server(BackupRules());
  RpcClient alice = server.Connect("alice");
  AcquireMany(&alice, 1, 10);
  const std::string backup = server.Sub("backup");
  REQUIRE(BackUp(server, backup).exit_code == 0);
  for (const Finished& within :
       {BackUp(server, backup + "/x"),
        Admin({"repair", "--data-dir", backup, "--to", backup + "/x"}),
        Admin({"restore", "--from", backup, "--data-dir", backup + "/x"})}) {
    CHECK(within.exit_code != 0);
    CHECK_MESSAGE(Contains(within.err, " lies within "), within.err);
  }
  CHECK_FALSE(fs::exists(backup + "/x"));
  const Finished served = RunProgram(
      {ProductBinary("nowcalls-server"), "--listen", "127.0.0.1:0", "--data-dir", backup});
  CHECK(served.exit_code == 64);
  CHECK(Contains(served.err, "nowcalls-admin restore"));
  // Nor is its ledger one by itself, unless it is made a new one.
  fs::create_directory(server.Sub("brought"));
  fs::copy(backup + "/ledger", server.Sub("brought/ledger"), fs::copy_options::recursive);
  const Finished brought = RunProgram({ProductBinary("nowcalls-server"), "--listen", "127.0.0.1:0",
                                       "--data-dir", server.Sub("brought")});
  CHECK(brought.exit_code == 64);
  CHECK(Contains(brought.err, "without its backup.json"));
  const Finished verified = RunAdmin(Source::Offline(server.Sub("brought")), {"verify"});
  CHECK(verified.exit_code == 0);
  CHECK(Contains(verified.err, "without its backup.json"));
  fs::create_directory(server.Sub("repaired"));
  const Finished repaired =
      Admin({"repair", "--data-dir", server.Sub("brought"), "--to", server.Sub("repaired/data")});
  CHECK_MESSAGE(repaired.exit_code == 0, repaired.err);
  ServerProcess renewed(server.Sub("repaired"));
  renewed.Start();
  RpcClient bob(renewed.address());
  ResultOf(&bob, "hello", {1, "default", "bob"});
  CHECK(NowCalls(&bob, 1) == 10);
  CHECK(Acquire(&bob, 1).fence > Acquire(&alice, 1).fence);
  const Finished over = RestoreTo(backup, server.data_dir());
  CHECK(over.exit_code == 64);
  CHECK(Contains(over.err, "is not empty"));
  CHECK(Acquire(&alice, 1).status == kStatusOk);
  const Finished none = RestoreTo(server.Sub("nowhere"), server.Sub("new"));
  CHECK(none.exit_code == 64);
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
