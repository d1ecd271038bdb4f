// The real server on a disk of which any call fails: it ends with exit code 74, has promised
// nothing that is lost, and the next start has all of it. Judged by a client and nowcalls-admin.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "faults/faulty_file_system.h"
#include "support/admin.h"
#include "support/sample.h"
#include "support/server_process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::faults {
namespace {

using testing::Json;
using testing::Reply;

constexpr int kSteps = 24;
constexpr int kIdleSteps = 300;  // So many that memtables are flushed meanwhile.
constexpr int64_t kFlow = 1;
constexpr int64_t kOk = 0;
constexpr int64_t kReleaseOk = 6;
constexpr int kIoError = 74;

struct Grant {
  uint64_t fence = 0;
  int64_t count = 0;
};

// One client that asks one thing at a time, and what it was told.
class Client {
 public:
  explicit Client(const std::string& address) : rpc_(address) {}

  // Until the connection ends. False: before all was answered.
  bool Run(int steps = kSteps) {
    if (!rpc_.Call("hello", {1, "default", "client"}).ok()) return false;
    for (int step = 0; step < steps && rpc_.connected(); ++step) {
      if (!(step % 3 == 2 ? Release() : Acquire(1 + step % 4))) return false;
    }
    return rpc_.connected();
  }

  const std::map<uint64_t, Grant>& held() const { return held_; }
  const std::set<uint64_t>& released() const { return released_; }
  // The token whose release was not answered; the count of the acquire that was not.
  uint64_t releasing() const { return releasing_; }
  int64_t acquiring() const { return acquiring_; }
  int acknowledged() const { return static_cast<int>(asked_us_.size()); }
  // How many acknowledgements were asked for later than that.
  int AskedAfter(int64_t at_us) const {
    return static_cast<int>(
        std::count_if(asked_us_.begin(), asked_us_.end(), [&](int64_t us) { return us > at_us; }));
  }

 private:
  bool Acquire(int64_t count) {
    acquiring_ = count;
    const int64_t asked_us = BoottimeUs();
    const Reply reply = rpc_.Call("acquire", {kFlow, count});
    if (!reply.ok() || reply.result.at(0) != kOk) return false;
    acquiring_ = 0;
    held_[reply.result.at(1).get<uint64_t>()] = {reply.result.at(2).get<uint64_t>(), count};
    asked_us_.push_back(asked_us);
    return true;
  }

  bool Release() {
    releasing_ = held_.begin()->first;
    const int64_t asked_us = BoottimeUs();
    const Reply reply = rpc_.Call("release", Json::array({releasing_}));
    if (!reply.ok() || reply.result.at(0) != kReleaseOk) return false;
    released_.insert(releasing_);
    held_.erase(releasing_);
    releasing_ = 0;
    asked_us_.push_back(asked_us);
    return true;
  }

  testing::RpcClient rpc_;
  std::map<uint64_t, Grant> held_;
  std::set<uint64_t> released_;
  uint64_t releasing_ = 0;
  int64_t acquiring_ = 0;
  std::vector<int64_t> asked_us_;  // When what was acknowledged had been asked for.
};

// Empty when the tokens in `rows` are those that `client` holds, but for what was not answered.
std::string Compare(const Client& client, const std::vector<Json>& rows) {
  std::map<uint64_t, Grant> left = client.held();
  int strangers = 0;
  for (const Json& row : rows) {
    const auto id = row.at("token_id").get<uint64_t>();
    if (client.released().contains(id)) return "I2 a token is back that was released";
    const auto count = row.at("count").get<int64_t>();
    const auto found = left.find(id);
    if (found == left.end()) {
      if (count != client.acquiring() || ++strangers > 1) return "I3 a token nobody asked for";
      continue;
    }
    if (found->second.count != count || found->second.fence != row.at("fence").get<uint64_t>()) {
      return "I3 a token differs from what was acknowledged";
    }
    left.erase(found);
  }
  left.erase(client.releasing());
  return left.empty() ? "" : "I1 a token that was acknowledged is lost";
}

struct Note {
  int64_t at_us = 0;
  std::string call;
};

std::optional<Note> ReadNote(const std::string& path) {
  std::istringstream text(testing::ReadFileToString(path));
  Note note;
  if (!(text >> note.at_us)) return std::nullopt;
  std::getline(text >> std::ws, note.call);
  return note;
}

struct ServerCounts {
  int failures = 0;
  int ended = 0;    // Servers that ended with 74.
  int serving = 0;  // Of these, in the midst of their service.
  int acknowledged = 0;
  int later =
      0;  // Of the acknowledgements, those asked for after a failure that left the log whole.
  int64_t longest_us = 0;  // From the failure to the end of the process.
};

class FailingServer {
 public:
  explicit FailingServer(const Failure& failure)
      : failure_(failure), server_(dir_.path(), Options(dir_, failure)) {
    const Json cluster = {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}};
    testing::WriteStringToFile(dir_.Sub("rules.json"),
                               testing::RuleSet(testing::RuleJson(kFlow, 1000, cluster)).dump());
  }

  // Empty when all is as it must be. `*reached`: there were so many calls.
  std::string Run(ServerCounts* counts, bool* reached) {
    server_.StartWithoutWaiting();
    std::optional<Client> client;
    if (server_.WaitUntilServing()) {
      client.emplace(server_.address());
      client->Run();
    }
    const bool served = client.has_value();
    const std::optional<Note> note = ReadNote(dir_.Sub("note"));
    const bool serving = served && note.has_value();
    // What fails must end it by itself; only what may pass, or comes at the end, needs a signal.
    const bool must_end = serving && !MayPass(note->call);
    if (served && !must_end) server_.process().Signal(SIGTERM);
    const std::optional<int> code = server_.process().Wait();
    const int64_t ended_us = BoottimeUs();
    const std::optional<Note> failed = ReadNote(dir_.Sub("note"));
    *reached = failed.has_value();
    if (failed) call_ = failed->call;
    if (!code) return must_end ? "it serves on behind a failure" : "it does not end";
    if (!failed) return *code == 0 ? "" : "it ends with " + std::to_string(*code);
    Count(*code, serving, ended_us - failed->at_us, counts);
    return CheckAll(*code, *failed, client, counts);
  }

  // As Run, but the call hangs until all was answered, and then fails while nobody asks anything.
  std::string RunIdle(ServerCounts* counts) {
    server_.Start();
    REQUIRE(mkfifo(dir_.Sub("gate").c_str(), 0600) == 0);
    std::optional<Client> client(server_.address());
    if (!client->Run(kIdleSteps)) return "it does not serve while a call hangs";
    int gate = -1;
    // Nobody can be let in who is not there.
    const auto open_gate = [&] {
      gate = open(dir_.Sub("gate").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      return gate >= 0;
    };
    if (!testing::PollUntil(testing::kPatienceMs, open_gate)) return "there is no such call";
    const std::optional<int> code = server_.process().Wait();
    const int64_t ended_us = BoottimeUs();
    close(gate);
    const std::optional<Note> failed = ReadNote(dir_.Sub("note"));
    if (!failed) return "there is no such call";
    call_ = failed->call;
    if (!code) return "it idles on behind a failure";
    Count(*code, /*serving=*/true, ended_us - failed->at_us, counts);
    return *code == 0 ? "no word of it" : CheckAll(*code, *failed, client, counts);
  }

  std::string Describe() const {
    return failure_.ToString() + ", " + call_ + "; its log:\n" + server_.log();
  }

 private:
  static testing::ServerOptions Options(const testing::TempDir& dir, const Failure& failure) {
    testing::ServerOptions options;
    options.arguments = {"--rules", dir.Sub("rules.json")};
    options.program = std::string(NOWCALLS_TEST_BIN_DIR) + "/nowcalls-faulty-server";
    std::string wanted = std::to_string(failure.nth) + (failure.sticky ? " sticky" : "") +
                         (failure.disk_full ? " full" : "");
    options.environment = {{"FAULTY_DISK_NOTE", dir.Sub("note")}};
    if (!failure.only_call.empty()) {
      wanted += " only " + failure.only_call + " " + failure.only_file;
      options.environment["FAULTY_DISK_GATE"] = dir.Sub("gate");
    }
    options.environment["FAULTY_DISK"] = wanted;
    return options;
  }

  static void Count(int code, bool serving, int64_t took_us, ServerCounts* counts) {
    ++counts->failures;
    if (code != kIoError) return;
    ++counts->ended;
    if (!serving) return;
    ++counts->serving;
    counts->longest_us = std::max(counts->longest_us, took_us);
  }

  std::string CheckAll(int code, const Note& failed, const std::optional<Client>& client,
                       ServerCounts* counts) {
    std::string problem = CheckEnd(code, failed, client);
    if (problem.empty()) problem = CheckAfterwards(client);
    if (!problem.empty() || !client) return problem;
    counts->acknowledged += client->acknowledged();
    if (code == kIoError) counts->later += client->AskedAfter(failed.at_us);
    return {};
  }

  static std::string CheckEnd(int code, const Note& failed, const std::optional<Client>& client) {
    if (code != 0 && code != kIoError) return "it ends with " + std::to_string(code);
    if (code == 0) return MayPass(failed.call) ? "" : "no word of it";
    // Behind another failure the log is whole, and what is answered before the end comes is true.
    if (!client || !failed.call.ends_with(".log") || MayPass(failed.call)) return {};
    return client->AskedAfter(failed.at_us) > 0 ? "it answers OK after a failed write" : "";
  }

  // What the server as it is makes of what is left.
  std::string CheckAfterwards(const std::optional<Client>& client) {
    server_.options().program.clear();
    server_.options().environment.clear();
    server_.Start();
    const auto rows = testing::AdminRows(testing::Source::Live(server_.address()), {"dump"});
    server_.Kill9();
    if (!client) return rows.empty() ? "" : "I3 tokens nobody asked for";
    return Compare(*client, rows);
  }

  const Failure failure_;
  const testing::TempDir dir_;
  testing::ServerProcess server_;
  std::string call_;
};

// Of the calls, every so many-th fails.
uint64_t ServerStep() {
  const char* wanted = std::getenv("NOWCALLS_SERVER_FAILURE_STEP");
  if (wanted != nullptr) return std::strtoull(wanted, nullptr, 10);
  return testing::Whole() ? 5 : 15;
}

void FailEach(bool disk_full) {
  ServerCounts counts;
  constexpr int kBadMax = 8;
  int bad = 0;
  bool reached = true;
  bool sticky = false;
  const uint64_t first = 1 + testing::SampleSeed() % ServerStep();
  for (uint64_t nth = first; reached && bad < kBadMax; nth += ServerStep(), sticky = !sticky) {
    FailingServer server({.nth = nth, .sticky = sticky, .disk_full = disk_full});
    const std::string problem = server.Run(&counts, &reached);
    if (problem.empty()) continue;
    ++bad;
    FAIL_CHECK(problem, ": ", server.Describe());
  }
  CHECK(counts.failures > 90 / static_cast<int>(ServerStep()));
  CHECK(counts.serving > 0);
  CHECK(counts.acknowledged > 30);
  MESSAGE(counts.failures, " failures injected, ", counts.ended, " servers ended with 74, ",
          counts.serving, " of them while they served, the slowest ", counts.longest_us / 1000,
          " ms after the failure; ", counts.acknowledged, " acknowledgements kept, ", counts.later,
          " of them asked for after a failure of another file than the log");
}

TEST_CASE("a server of whose disk any call fails ends with 74 and keeps what it promised") {
  FailEach(false);
}

TEST_CASE("a server whose disk is full at any call ends with 74 and keeps what it promised") {
  FailEach(true);
}

struct IdleCall {
  const char* name;
  const char* file;
};

TEST_CASE("an idle server whose flush fails in the background ends with 74 by itself") {
  ServerCounts counts;
  for (const IdleCall& call :
       {IdleCall{"make", ".sst"}, IdleCall{"append", ".sst"}, IdleCall{"sync", ".sst"},
        IdleCall{"close", ".sst"}, IdleCall{"write", "witness"}, IdleCall{"sync", "witness"}}) {
    for (const bool disk_full : {false, true}) {
      const Failure failure{.nth = 1,
                            .sticky = disk_full,
                            .disk_full = disk_full,
                            .only_call = call.name,
                            .only_file = call.file};
      FailingServer server(failure);
      const std::string problem = server.RunIdle(&counts);
      if (!problem.empty()) FAIL_CHECK(problem, ": ", server.Describe());
    }
  }
  MESSAGE(counts.ended, " idle servers ended with 74, the slowest ", counts.longest_us / 1000,
          " ms after the failure; ", counts.acknowledged, " acknowledgements kept");
}

}  // namespace
}  // namespace nowcalls::faults
