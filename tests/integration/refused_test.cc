// What the system refuses the programs: directories of others, too few descriptors. The message
// must name the cause, and the exit code is 74.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/process.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

// A ledger and a backup of it; the server has ended.
class Stopped {
 public:
  Stopped() : server_({RuleJson(1, 100)}) {
    RpcClient alice = server_.Connect("alice");
    AcquireMany(&alice, 1, 10);
    const Source live = Source::Live(server_.address());
    REQUIRE(RunAdmin(live, {"backup", "--to", backup()}).exit_code == 0);
    REQUIRE(server_.server().Terminate() == 0);
  }

  std::string data() const { return server_.data_dir(); }
  std::string backup() const { return server_.Sub("backup"); }
  std::string Sub(const std::string& name) const { return server_.Sub(name); }
  const std::string& dir() const { return server_.dir(); }

 private:
  TestServer server_;
};

// Runs a program as a user who owns nothing.
Finished RunAsNobody(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                   "--clear-groups", ProductBinary(program)};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return RunProgram(argv);
}

bool CanBeNobody() {
  const bool can = geteuid() == 0 && ::access("/usr/bin/setpriv", X_OK) == 0 &&
                   RunAsNobody("nowcalls-admin", {"--version"}).exit_code == 0;
  if (!can) MESSAGE("skipped: only root, with setpriv, may be another user");
  return can;
}

TEST_CASE_FIXTURE(Stopped, "a directory that may not be entered is told as that, not as absent") {
  if (!CanBeNobody()) return;
  REQUIRE(chmod(dir().c_str(), 0755) == 0);
  fs::create_directory(Sub("open"));
  REQUIRE(chmod(Sub("open").c_str(), 0777) == 0);
  const std::string copy = Sub("copy");
  fs::copy(backup(), copy, fs::copy_options::recursive);
  REQUIRE(chmod(copy.c_str(), 0755) == 0);
  REQUIRE(chmod((copy + "/backup.json").c_str(), 0644) == 0);
  const struct {
    std::string program;
    std::vector<std::string> arguments;
    std::string path;
  } cases[] = {
      {"nowcalls-admin",
       {"restore", "--from", backup(), "--data-dir", Sub("open/new")},
       backup() + "/backup.json"},
      {"nowcalls-admin",
       {"restore", "--from", copy, "--data-dir", Sub("open/new")},
       copy + "/ledger/"},
      {"nowcalls-admin",
       {"repair", "--data-dir", data(), "--to", Sub("open/new")},
       data() + "/ledger"},
      {"nowcalls-admin",
       {"backup", "--data-dir", data(), "--to", Sub("open/new")},
       data() + "/ledger"},
      {"nowcalls-admin", {"verify", "--data-dir", data()}, data() + "/ledger"},
      {"nowcalls-admin", {"dump", "--data-dir", data()}, data() + "/ledger"},
      {"nowcalls-server", {"--data-dir", data(), "--listen", "127.0.0.1:0"}, data() + "/ledger"},
  };
  for (const auto& c : cases) {
    const Finished refused = RunAsNobody(c.program, c.arguments);
    CAPTURE(c.arguments[0]);
    CAPTURE(refused.err);
    CHECK(refused.exit_code == 74);
    CHECK(Contains(refused.err, "cannot look at " + c.path));
    CHECK(Contains(refused.err, ": Permission denied"));
    CHECK(fs::is_empty(Sub("open")));
  }
}

Finished RunWithLimit(const std::string& ulimit, std::vector<std::string> arguments) {
  std::vector<std::string> argv = {"/bin/sh", "-c", "ulimit " + ulimit + "; exec \"$@\"", "sh",
                                   ProductBinary("nowcalls-admin")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return RunProgram(argv);
}

TEST_CASE_FIXTURE(Stopped, "too few descriptors are told with the limit to raise") {
  constexpr int kLeast = 5;
  size_t advised = 0;
  for (int files = kLeast; files < 40; ++files) {
    CAPTURE(files);
    const std::string to = Sub("repaired" + std::to_string(files));
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"verify", "--data-dir", data()}, {"repair", "--data-dir", data(), "--to", to}}) {
      const Finished run = RunWithLimit("-n " + std::to_string(files), command);
      CAPTURE(command[0]);
      CAPTURE(run.err);
      CAPTURE(run.out);
      // Nothing that could be read with more of them is taken for lost or damaged.
      CHECK_FALSE(Contains(run.out, "lost:"));
      if (run.exit_code == 0) continue;
#ifdef __SANITIZE_ADDRESS__
      // UBSan wants descriptors itself to look at an object, and takes it for none without.
      if (Contains(run.err, "<memory cannot be printed>")) continue;
      if (Contains(run.err, "its reader was ended")) continue;  // So did that of a repair.
#endif
      CHECK(run.exit_code == 74);
      CHECK(Contains(run.err, "Too many open files"));
      CHECK_FALSE(Contains(run.err, "check the disk"));
      if (Contains(run.err, "raise the limit of open files (ulimit -n, or LimitNOFILE=")) ++advised;
    }
  }
  // Most runs of a sanitized program were passed over.
  CHECK(advised >= (testing::kAddressSanitized ? 1 : 5));
  // A soft limit alone is in nobody's way.
  const Finished verified =
      RunWithLimit("-S -n " + std::to_string(kLeast), {"verify", "--data-dir", data()});
  CAPTURE(verified.err);
  CHECK(verified.exit_code == 0);
}

// In a directory that is absent, and in one of another user.
TEST_CASE_FIXTURE(Stopped, "restore and repair tell alike that a directory cannot be made") {
  const std::vector<std::string> restore = {"restore", "--from", backup(), "--data-dir"};
  const std::vector<std::string> repair = {"repair", "--data-dir", data(), "--to"};
  for (std::vector<std::string> command : {restore, repair}) {
    CAPTURE(command[0]);
    command.push_back(Sub("absent/new"));
    command.insert(command.begin(), ProductBinary("nowcalls-admin"));
    const Finished refused = RunProgram(command);
    CAPTURE(refused.err);
    CHECK(refused.exit_code == 74);
    CHECK(Contains(refused.err, "cannot make directory " + Sub("absent/new")));
    CHECK(Contains(refused.err, ": No such file or directory; make " + Sub("absent") + " first"));
  }
  if (!CanBeNobody()) return;
  fs::permissions(dir(), static_cast<fs::perms>(0755));
  for (const std::string& mine : {data(), backup()}) {
    fs::permissions(mine, static_cast<fs::perms>(0755));
    for (const auto& entry : fs::recursive_directory_iterator(mine)) {
      fs::permissions(entry.path(), static_cast<fs::perms>(entry.is_directory() ? 0755 : 0644));
    }
  }
  for (std::vector<std::string> command : {restore, repair}) {
    CAPTURE(command[0]);
    command.push_back(Sub("new"));
    const Finished refused = RunAsNobody("nowcalls-admin", command);
    CAPTURE(refused.err);
    CHECK(refused.exit_code == 74);
    CHECK(Contains(refused.err, "cannot make directory " + Sub("new")));
    CHECK(Contains(refused.err, ": Permission denied"));
  }
}

}  // namespace
}  // namespace nowcalls::testing
