// Copies verified by another process: what it reports, and every way in which it may end.
#include "backup/verify_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "backup/backup.h"
#include "base/exit_codes.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/backup/served_ledger.h"

namespace nowcalls::backup {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ProductBinary;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

const std::atomic<bool> kGoesOn{false};

// A closed ledger with 300 tokens, in DIR/data.
class Closed {
 public:
  Closed() {
    ServedLedger served(data());
    served.Rules();
    served.Take("alice", 300);
  }
  std::string data() const { return dir.Sub("data"); }

  TempDir dir;
};

// A program of the shell's that is started in place of one that verifies.
class Script {
 public:
  explicit Script(const std::string& text) : path_(dir_.Sub("script")) {
    WriteStringToFile(path_, "#!/bin/sh\n" + text + "\n");
    fs::permissions(path_, fs::perms::owner_all);
  }
  Result<VerifySummary> Run(const std::atomic<bool>& stop = kGoesOn) const {
    return VerifyInProcess(path_, dir_.Sub("copy"), stop);
  }
  std::string Sub(const std::string& name) const { return dir_.Sub(name); }

 private:
  const TempDir dir_;
  const std::string path_;
};

TEST_CASE_FIXTURE(Closed, "another process finds the counts and the seal that this one finds") {
  const Result<VerifySummary> here = VerifyCopy(data(), kGoesOn);
  REQUIRE(here.ok());
  REQUIRE(here->tokens == 300);
  for (const char* program : {"nowcalls-server", "nowcalls-admin"}) {
    CAPTURE(program);
    const Result<VerifySummary> there = VerifyInProcess(ProductBinary(program), data(), kGoesOn);
    REQUIRE_MESSAGE(there.ok(), there.status().ToString());
    CHECK(there->ok());
    CHECK(there->batch_number == here->batch_number);
    CHECK(there->tokens == here->tokens);
    CHECK(there->now_calls == here->now_calls);
    CHECK(there->sessions == here->sessions);
    CHECK(there->rules == here->rules);
    CHECK(there->history == here->history);
    CHECK(there->seal == here->seal);
  }
}

TEST_CASE_FIXTURE(Closed, "another process fails as this one does, with the same message") {
  const auto compare = [&] {
    const Status here = VerifyCopy(data(), kGoesOn).status();
    const Status there =
        VerifyInProcess(ProductBinary("nowcalls-server"), data(), kGoesOn).status();
    CHECK_FALSE(here.ok());
    CHECK(there.ToString() == here.ToString());
    return here.code();
  };
  for (const auto& entry : fs::directory_iterator(data() + "/ledger")) {
    if (entry.path().extension() == ".sst") fs::remove(entry.path());
  }
  CHECK(compare() == StatusCode::kCorruption);
  fs::remove_all(data());
  CHECK(compare() == StatusCode::kNotFound);
}

TEST_CASE("a process that crashes or ends without a report has not verified the copy") {
  struct Case {
    std::string does;
    std::string says;
  };
  const Case cases[] = {
      {"kill -SEGV $$", "with SIGSEGV: it said nothing"},
      {"echo here; kill -ABRT $$", "with SIGABRT: here"},
      {"echo 'fatal: a.cc:7: x failed; the ledger is damaged: restore it' >&2; exit 65",
       "with exit code 65: a.cc:7: x failed; look with"},
      {"exit 0", "without a report: it said nothing"},
      {"echo garbage", "without a report: garbage"},
      {"printf '\\001\\377'", "without a report: it said '\\x01\\xff'"},
      {"echo '{\"tokens\":1}'", "without a report"},
      {"echo '{\"code\":0,\"message\":\"none\"}'", "none"},
      {"echo '{\"code\":77,\"message\":\"none\"}'", "none"},
      {"head -c 3000000 /dev/zero", "without a report"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.does);
    const Status status = Script(c.does).Run().status();
    CHECK(status.code() == StatusCode::kCorruption);
    CHECK_MESSAGE(Contains(status.message(), c.says), status.message());
    CHECK_FALSE(Contains(status.message(), "restore it"));
  }
}

TEST_CASE("a process that is killed, fails or cannot be started says nothing about the copy") {
  struct Case {
    std::string does;
    std::string says;
  };
  const Case cases[] = {
      {"kill -KILL $$", "could not be verified: the process that read it ended with SIGKILL"},
      {"echo 'fatal: out of memory' >&2; exit 74", "with exit code 74: out of memory"},
      {"exit 127", "with exit code 127"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.does);
    const Status status = Script(c.does).Run().status();
    CHECK(status.code() == StatusCode::kIoError);
    CHECK_MESSAGE(Contains(status.message(), c.says), status.message());
  }
  const TempDir dir;
  WriteStringToFile(dir.Sub("plain"), "");
  for (const char* name : {"absent", "plain"}) {
    const Status status = VerifyInProcess(dir.Sub(name), dir.Sub("copy"), kGoesOn).status();
    CHECK(status.code() == StatusCode::kIoError);
    CHECK_MESSAGE(Contains(status.message(), "cannot be started (" + dir.Sub(name)),
                  status.message());
  }
}

TEST_CASE("a verification that is stopped has ended, and its process with it") {
  const Script script("echo $$ > \"$2.pid\"; exec sleep 1000");
  const std::string pid_path = script.Sub("copy.pid");
  std::atomic<bool> stop{false};
  std::thread stopper([&] {
    testing::PollUntil(testing::kPatienceMs,
                       [&] { return ReadFileToString(pid_path).ends_with('\n'); });
    stop = true;
  });
  CHECK(script.Run(stop).status().code() == StatusCode::kUnavailable);
  stopper.join();
  const std::string pid = ReadFileToString(pid_path);
  REQUIRE_FALSE(pid.empty());
  CHECK(kill(std::stoi(pid), 0) == -1);
}

TEST_CASE("a process that verifies has no file of its parent's") {
  const TempDir dir;
  const std::string path = dir.Sub("inherited");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);  // NOLINT: not closed by exec.
  REQUIRE(fd >= 0);
  const Script script("ls -l /proc/$$/fd > \"$2.files\"");
  CHECK(script.Run().status().code() == StatusCode::kCorruption);
  close(fd);
  const std::string files = ReadFileToString(script.Sub("copy.files"));
  CHECK_MESSAGE(Contains(files, "0 -> /dev/null"), files);
  CHECK_FALSE(Contains(files, path));
}

TEST_CASE_FIXTURE(Closed, "a program verifies for its parent alone, and only when asked rightly") {
  const auto run = [&](const std::string& parent) {
    return testing::RunProgram({ProductBinary("nowcalls-server"), "--verify-copy", data(), parent});
  };
  const testing::Finished mine = run(std::to_string(getpid()));
  CHECK(mine.exit_code == kExitOk);
  CHECK(Contains(mine.out, "\"tokens\":300"));
  // As when it had ended before.
  const testing::Finished orphan = run("1");
  CHECK(orphan.exit_code == kExitIoError);
  CHECK(orphan.out.empty());
  const testing::Finished wrong =
      testing::RunProgram({ProductBinary("nowcalls-server"), "--verify-copy", data()});
  CHECK(wrong.exit_code == kExitUsage);
}

}  // namespace
}  // namespace nowcalls::backup
