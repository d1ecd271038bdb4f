// Starts and readers of which a call on the ledger's files fails, any one of them: the ledger is
// sound, so it is never called damaged. What ends says which error, and the next start serves.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "shim/failing_call.h"
#include "support/admin.h"
#include "support/sample.h"
#include "support/server_process.h"
#include "test_paths.h"

namespace nowcalls::faults {
namespace {

using testing::AdminRows;
using testing::Contains;
using testing::Environment;
using testing::Finished;
using testing::Json;
using testing::kFailingCallVariable;
using testing::kFailingDirVariable;
using testing::kFailingErrnoVariable;
using testing::kFailingNoteVariable;
using testing::ReadFileToString;
using testing::RpcClient;
using testing::RuleJson;
using testing::RuleSet;
using testing::RunProgram;
using testing::SampleSeed;
using testing::ServerOptions;
using testing::ServerProcess;
using testing::Source;
using testing::TempDir;

namespace fs = std::filesystem;

constexpr int64_t kStartFlow = 1;
constexpr int kStartTokens = 5;
constexpr int kIoErrorExit = 74;
constexpr int kErrors[] = {EIO, ENOMEM, ESTALE, EPERM};

// Of the calls, every so many-th fails.
uint64_t StartStep() {
  const char* wanted = std::getenv("NOWCALLS_START_FAILURE_STEP");
  if (wanted != nullptr) return std::strtoull(wanted, nullptr, 10);
  return testing::Whole() ? 4 : 16;
}

int ErrorOf(uint64_t nth) { return kErrors[nth / StartStep() % std::size(kErrors)]; }

// The n-th call on what `of` names fails.
Environment FailingCall(uint64_t nth, int error, const std::string& of) {
  Environment environment = testing::WithShim("failing_call_shim");
  environment[kFailingCallVariable] = std::to_string(nth);
  environment[kFailingErrnoVariable] = std::to_string(error);
  environment[kFailingDirVariable] = of;
  return environment;
}

// A ledger with data files and logs, that was left by a kill.
class SoundLedger {
 public:
  SoundLedger() : server_(dir_.path()) {
    server_.Start();
    RpcClient client(server_.address());
    REQUIRE(client.Call("hello", {1, "default", "client"}).ok());
    const Json rule =
        RuleJson(kStartFlow, 1000, {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}});
    REQUIRE(client.Call("rules_load", {"default", RuleSet(rule)}).ok());
    for (int i = 0; i < kStartTokens; ++i) {
      REQUIRE(client.Call("acquire", {kStartFlow, 1}).result.at(0) == 0);
      // Recovery writes what is in the log to a data file.
      server_.Restart();
      client = RpcClient(server_.address());
      REQUIRE(client.Call("hello", {1, "default", "client"}).ok());
    }
    server_.Kill9();
  }

  ServerProcess& server() { return server_; }
  // Of the n-th call on what `of` names, with `error`.
  Environment Failing(uint64_t nth, int error, const std::string& of) const {
    std::remove(note_path().c_str());
    Environment environment = FailingCall(nth, error, of);
    environment[kFailingNoteVariable] = note_path();
    return environment;
  }
  // The call that failed; empty: there were fewer.
  std::string note() const { return ReadFileToString(note_path()); }
  std::string data_dir() const { return server_.data_dir(); }

  // Empty when all tokens are there.
  std::string CheckServes() {
    server_.options().environment.clear();
    server_.Start();
    const auto rows = AdminRows(Source::Live(server_.address()), {"dump"});
    server_.Kill9();
    return rows.size() == kStartTokens ? "" : std::to_string(rows.size()) + " tokens are left";
  }

 private:
  std::string note_path() const { return dir_.Sub("note"); }

  TempDir dir_;
  ServerProcess server_;
};

// What is wrong with how a start ended, of which a call failed with `error`.
std::string JudgeEnd(int code, const std::string& log, const std::string& reason) {
  if (code != kIoErrorExit) return "it ends with " + std::to_string(code);
  if (log.find("damaged") != std::string::npos) return "it calls the ledger damaged";
  return log.find(reason) == std::string::npos ? "it does not say: " + reason : "";
}

TEST_CASE("a start of which any call on the ledger fails says which error, and ends with 74") {
  SoundLedger ledger;
  int ended = 0;
  int passed = 0;
  int bad = 0;
  constexpr int kBadMax = 8;
  for (uint64_t nth = 1 + SampleSeed() % StartStep(); bad < kBadMax; nth += StartStep()) {
    const int error = ErrorOf(nth);
    ledger.server().options().environment = ledger.Failing(nth, error, ledger.data_dir());
    const size_t before = ledger.server().log().size();
    ledger.server().StartWithoutWaiting();
    const bool served = ledger.server().WaitUntilServing();
    const std::string call = ledger.note();
    if (served) ledger.server().Kill9();
    if (call.empty()) break;
    std::string problem;
    const std::string log = ledger.server().log().substr(before);
    if (served) {
      ++passed;
    } else {
      ++ended;
      problem =
          JudgeEnd(ledger.server().process().Wait().value_or(-1000), log, std::strerror(error));
    }
    if (problem.empty()) problem = ledger.CheckServes();
    if (problem.empty()) continue;
    ++bad;
    FAIL_CHECK(problem, ": call ", nth, ", ", call, "; its log:\n", log);
  }
  CHECK(ended > 0);
  MESSAGE(ended, " starts ended with 74, ", passed, " got over it");
}

TEST_CASE("a reader of which any call on the ledger fails never calls it damaged") {
  SoundLedger ledger;
  int ended = 0;
  int bad = 0;
  constexpr int kBadMax = 8;
  for (uint64_t nth = 1 + SampleSeed() % StartStep(); bad < kBadMax; nth += StartStep()) {
    const int error = ErrorOf(nth);
    const Finished verified =
        RunProgram({NOWCALLS_BIN_DIR "/nowcalls-admin", "verify", "--data-dir", ledger.data_dir()},
                   ledger.Failing(nth, error, ledger.data_dir()));
    const std::string call = ledger.note();
    if (call.empty()) break;
    if (verified.exit_code == 0) continue;
    ++ended;
    const std::string problem =
        JudgeEnd(verified.exit_code, verified.out + verified.err, std::strerror(error));
    if (problem.empty()) continue;
    ++bad;
    FAIL_CHECK(problem, ": call ", nth, ", ", call, "; it says:\n", verified.out, verified.err);
  }
  CHECK(ended > 0);
}

TEST_CASE("a repair that is refused a process ends with 74, and leaves out no sound file") {
  SoundLedger ledger;
  const TempDir dir;
  int ended = 0;
  for (uint64_t nth = 1;; ++nth) {
    const Finished repaired = RunProgram({testing::ProductBinary("nowcalls-admin"), "repair",
                                          "--data-dir", ledger.data_dir(), "--to", dir.Sub("to")},
                                         ledger.Failing(nth, EAGAIN, "fork"));
    if (ledger.note().empty()) break;
    ++ended;
    CAPTURE(nth);
    CHECK(JudgeEnd(repaired.exit_code, repaired.err,
                   "cannot start a process that tries to read the ledger: ")
              .empty());
    CHECK_MESSAGE(!Contains(repaired.out, "lost:"), repaired.out);
    fs::remove_all(dir.Sub("to"));
  }
  CHECK(ended > 1);
}

TEST_CASE("a start that cannot tell the boot of the machine says so, and makes no ledger") {
  const TempDir dir;
  ServerOptions options;
  const char* boot_id = "/proc/sys/kernel/random/boot_id";
  options.environment = FailingCall(1, ENOENT, boot_id);
  ServerProcess server(dir.path(), options);
  server.StartWithoutWaiting();
  CHECK(server.process().Wait() == kIoErrorExit);
  CHECK(server.LogHas(std::string("cannot open ") + boot_id +
                      ": No such file or directory; mount "
                      "all of /proc (without subset=pid)"));
  CHECK_FALSE(fs::exists(server.data_dir()));
}

// RocksDB writes behind some allocations that are refused; AddressSanitizer ends that by itself.
TEST_CASE("a start that is refused memory anywhere ends with 74 and a line" *
          doctest::skip(testing::kAddressSanitized)) {
  SoundLedger ledger;
  int ended = 0;
  const uint64_t step = 61 * StartStep();
  const auto check = [&](uint64_t nth) {
    ledger.server().options().environment = ledger.Failing(nth, ENOMEM, "malloc");
    const size_t before = ledger.server().log().size();
    ledger.server().StartWithoutWaiting();
    const bool served = ledger.server().WaitUntilServing();
    const std::string call = ledger.note();
    if (served) {
      ledger.server().Kill9();
      return !call.empty();
    }
    ++ended;
    const int code = ledger.server().process().Wait().value_or(-1000);
    const std::string log = ledger.server().log().substr(before);
    CHECK_MESSAGE(code == kIoErrorExit, "allocation ", nth, ": ", code, "\n", log);
    CHECK_MESSAGE(log.find("memory") != std::string::npos, "allocation ", nth, "\n", log);
    return true;
  };
  for (uint64_t nth = 1; nth <= 40; ++nth) check(nth);
  for (uint64_t nth = 41 + SampleSeed() % step; check(nth); nth += step) {
  }
  CHECK(ended > 0);
  CHECK(ledger.CheckServes().empty());
}

}  // namespace
}  // namespace nowcalls::faults
