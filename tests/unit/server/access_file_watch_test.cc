// The access file while a server runs: good changes come into force, others keep the list of
// before, and the log says so once.
#include "server/security/access_file_watch.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

using testing::TempDir;
using testing::WriteStringToFile;

std::string PrincipalNamed(const std::string& name) {
  return "[[principal]]\nname = '" + name + "'\nrole = 'client'\ncertificates = '" + name + "'\n";
}

class WatchedAccess {
 public:
  explicit WatchedAccess(const std::string& text) {
    config_.access_file = dir_.path() + "/access.toml";
    Write(text);
    const Result<AccessListPtr> list = ReadAccess(config_);
    REQUIRE(list.ok());
    watch_.emplace(
        config_.access_file,
        [this](const AccessListPtr& applied) {
          names_.clear();
          for (const auto& entry : applied->entries()) names_ += entry.principal.name;
        },
        [this](Severity level, LogTopic topic, const std::string& line, const LogFields&) {
          log_ += std::string(SeverityName(level)) + (topic == LogTopic::kAct ? " act " : " ") +
                  line + "\n";
        },
        FileWatchOptions{.settle_ms = 5, .settle_ms_max = 50, .poll_ms = 20, .idle_look_ms = 20});
    watch_->PutInForce(*list);
    CHECK(TakeLog() == "info act access file " + file() + ": 1 principal\n");
    watch_->Start(loop_.get());
    RunUntilIdle();
  }
  ~WatchedAccess() {
    RunUntilIdle();
    watch_->Stop();
    uv_run(loop_.get(), UV_RUN_DEFAULT);  // Its handles are closed before it goes.
  }

  const std::string& file() const { return config_.access_file; }
  const std::string& names() const { return names_; }
  AccessFileWatch* operator->() { return &*watch_; }

  void Write(const std::string& text) const {
    const std::string fresh = file() + "~";
    WriteStringToFile(fresh, text);
    REQUIRE(chmod(fresh.c_str(), 0640) == 0);
    REQUIRE(std::rename(fresh.c_str(), file().c_str()) == 0);
  }
  bool RunUntilNames(const std::string& names) {
    return loop_.RunUntil([&] { return names_ == names; });
  }
  std::string WaitForLog() {
    CHECK(loop_.RunUntil([&] { return !log_.empty(); }));
    return TakeLog();
  }
  void RunUntilIdle() {
    CHECK(loop_.RunUntil([&] { return watch_->idle(); }));
  }
  std::string TakeLog() { return std::exchange(log_, ""); }

 private:
  const TempDir dir_;
  TestLoop loop_;
  ServerConfig config_;
  std::string names_;
  std::string log_;
  std::optional<AccessFileWatch> watch_;
};

TEST_CASE("a good access file comes into force when it changes, and the log counts principals") {
  WatchedAccess access(PrincipalNamed("a"));
  CHECK(access.names() == "a");
  access.Write(PrincipalNamed("a") + PrincipalNamed("b"));
  CHECK(access.RunUntilNames("ab"));
  CHECK(access.TakeLog() == "info act access file " + access.file() + ": 2 principals\n");
  access.Write(PrincipalNamed("c"));
  CHECK(access.RunUntilNames("c"));
}

TEST_CASE("a broken access file keeps the principals of before, and is told of once") {
  WatchedAccess access(PrincipalNamed("a"));
  access.Write(PrincipalNamed("b") + "x = 1\n");
  const std::string told = "error access file: " + access.file() +
                           ":5: principal 'b': unknown key 'x'; the principals of before stay\n";
  CHECK(access.WaitForLog() == told);
  access->ReadNow();  // An operator who asks is told again.
  CHECK(access.WaitForLog() == told);
  CHECK(access.names() == "a");
  access.Write(PrincipalNamed("a"));
  CHECK(access.WaitForLog() ==
        "info act access file " + access.file() + ": 1 principal, as before\n");
  REQUIRE(std::remove(access.file().c_str()) == 0);
  CHECK(access.WaitForLog() == "error access file: cannot open " + access.file() +
                                   ": No such file or directory; the principals of before stay\n");
  CHECK(access.names() == "a");
  access.Write(PrincipalNamed("b"));
  CHECK(access.RunUntilNames("b"));
}

TEST_CASE("an access file that others may write now is not believed any more") {
  WatchedAccess access(PrincipalNamed("a"));
  REQUIRE(chmod(access.file().c_str(), 0666) == 0);
  CHECK(access.WaitForLog().find("can be written by others than its owner") != std::string::npos);
  REQUIRE(chmod(access.file().c_str(), 0600) == 0);
  CHECK(access.WaitForLog() ==
        "info act access file " + access.file() + ": 1 principal, as before\n");
}

TEST_CASE("a change of comments in an access file says nothing, unless somebody asks") {
  WatchedAccess access(PrincipalNamed("a"));
  access.Write("# ours\n" + PrincipalNamed("a"));
  access->ReadNow();
  CHECK(access.WaitForLog() ==
        "info act access file " + access.file() + ": 1 principal, as before\n");
  access.RunUntilIdle();
  CHECK(access.TakeLog().empty());
}

TEST_CASE("a start is refused for an access file that is missing or wrong") {
  ServerConfig config;
  config.access_file = "/nonexistent.toml";
  CHECK(ReadAccess(config).status().code() == StatusCode::kInvalidArgument);
  const TempDir dir;
  config.access_file = dir.path() + "/access.toml";
  WriteStringToFile(config.access_file, "");
  const Status empty = ReadAccess(config).status();
  CHECK(empty.code() == StatusCode::kInvalidArgument);
  CHECK(empty.message() == config.access_file +
                               ":1: there is no [[principal]]: add one with `nowcalls-admin access "
                               "add`");
}

TEST_CASE("without an access file nothing is watched") {
  CHECK(*ReadAccess({}) == nullptr);
  TestLoop loop;
  AccessFileWatch none(
      "", [](const AccessListPtr&) { FAIL("applied"); },
      [](Severity, LogTopic, const std::string&, const LogFields&) {});
  none.PutInForce(nullptr);
  none.Start(loop.get());
  none.ReadNow();
  CHECK(none.idle());
  none.Stop();
}

}  // namespace
}  // namespace nowcalls::server
