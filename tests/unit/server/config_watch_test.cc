// The configuration is read again when its file changes.
#include "server/config/config_watch.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

namespace fs = std::filesystem;
using testing::WriteStringToFile;

class WatchedConfig {
 public:
  explicit WatchedConfig(bool has_file = true)
      : watch_(
            has_file ? file() : "",
            [this]() -> Result<Invocation> {
              const std::string text = testing::ReadFileToString(file());
              if (text.empty()) return Status::InvalidArgument("empty");
              Invocation invocation;
              invocation.config.data_dir = text;
              return invocation;
            },
            [this](const Result<Invocation>& read, bool asked) {
              ++applied;
              asked_for += asked ? 1 : 0;
              last = read.ok() ? read->config.data_dir : read.status().message();
            },
            {.poll_ms = 2, .settle_ms = 6, .settle_ms_max = 20}) {
    WriteStringToFile(file(), "first");
    watch_.Start(loop_.get());
  }
  ~WatchedConfig() {
    watch_.Stop();
    loop_.RunUntil([this] { return watch_.idle(); });
  }
  WatchedConfig(const WatchedConfig&) = delete;
  WatchedConfig& operator=(const WatchedConfig&) = delete;

  std::string file() const { return dir_.Sub("nowcalls.toml"); }
  bool Comes(const std::string& what) {
    return loop_.RunUntil([&] { return last == what; });
  }
  bool Holds(const std::function<bool()>& what) { return loop_.RunUntil(what); }
  ConfigWatch& watch() { return watch_; }

  int applied = 0;
  int asked_for = 0;
  std::string last;

 private:
  testing::TempDir dir_;
  TestLoop loop_;
  ConfigWatch watch_;
};

TEST_CASE("the file is read at the start, for what has changed since the process read it") {
  WatchedConfig w;
  CHECK(w.Comes("first"));
  CHECK(w.asked_for == 0);
}

TEST_CASE("a file that is written, renamed over or linked anew is read") {
  WatchedConfig w;
  REQUIRE(w.Comes("first"));
  WriteStringToFile(w.file(), "second");
  CHECK(w.Comes("second"));
  WriteStringToFile(w.file() + "~", "third");
  fs::rename(w.file() + "~", w.file());
  CHECK(w.Comes("third"));
  WriteStringToFile(w.file() + ".a", "fourth");
  fs::remove(w.file());
  fs::create_symlink(w.file() + ".a", w.file());
  CHECK(w.Comes("fourth"));
}

TEST_CASE("a file that changes between any two looks is read, too") {
  WatchedConfig w;
  REQUIRE(w.Comes("first"));
  const int before = w.applied;
  std::string text = "more";
  CHECK(w.Holds([&] {
    WriteStringToFile(w.file(), text += "x");
    return w.applied > before;
  }));
}

TEST_CASE("a file that is gone or wrong is told, and read when it is back") {
  WatchedConfig w;
  REQUIRE(w.Comes("first"));
  fs::remove(w.file());
  CHECK(w.Comes("empty"));
  WriteStringToFile(w.file(), "back");
  CHECK(w.Comes("back"));
}

TEST_CASE("who asks is answered, also without a file to watch") {
  WatchedConfig w(/*has_file=*/false);
  w.watch().ReadNow();
  w.watch().ReadNow();
  CHECK(w.Comes("first"));
  CHECK(w.Holds([&] { return w.asked_for == 2; }));
}

TEST_CASE("a pipe is read at the start of the process only, and who asks is told so") {
  WatchedConfig w;
  REQUIRE(w.Comes("first"));
  fs::remove(w.file());
  REQUIRE(mkfifo(w.file().c_str(), 0600) == 0);
  w.watch().ReadNow();
  CHECK(w.Comes(w.file() + " is no regular file, so it is read at the start only"));
}

TEST_CASE("nothing is told after the end") {
  WatchedConfig w;
  REQUIRE(w.Comes("first"));
  const int before = w.applied;
  w.watch().ReadNow();
  w.watch().Stop();
  CHECK(w.Holds([&] { return w.watch().idle(); }));
  CHECK(w.applied == before);
}

}  // namespace
}  // namespace nowcalls::server
