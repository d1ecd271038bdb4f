// The faulty server is killed where it is told to be, which the whitebox runs of the crash loop
// rely on.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "faults/rocks_kill_points.h"
#include "support/server_process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::faults {
namespace {

using testing::Environment;
using testing::TempDir;

class DyingServer {
 public:
  explicit DyingServer(const Environment& environment)
      : server_(dir_.path(), {.arguments = {},
                              .environment = environment,
                              .program = NOWCALLS_TEST_BIN_DIR "/nowcalls-faulty-server"}) {
    if (server_.options().environment.contains("FAULTY_DISK")) {
      server_.options().environment["FAULTY_DISK_NOTE"] = dir_.Sub("note");
    }
    server_.StartWithoutWaiting();
  }

  testing::ServerProcess& server() { return server_; }
  // The call that it was killed at; empty: none.
  std::string Note() const {
    const std::string note = testing::ReadFileToString(dir_.Sub("note"));
    return note.substr(note.find(' ') + 1);
  }

 private:
  TempDir dir_;
  testing::ServerProcess server_;
};

TEST_CASE("a server is killed at the call that was chosen, and told which it was") {
  for (const char* when : {"before", "middle", "after"}) {
    CAPTURE(when);
    DyingServer dying(Environment{{"FAULTY_DISK", "20 kill-" + std::string(when)}});
    CHECK(dying.server().process().Wait() == -SIGKILL);
    CHECK_FALSE(dying.Note().empty());
  }
}

TEST_CASE("before a file is made it is not there, after that it is") {
  // The first call that writes, in a new ledger.
  for (const bool after : {false, true}) {
    CAPTURE(after);
    const std::string when = after ? "after" : "before";
    DyingServer dying(Environment{{"FAULTY_DISK", "1 writes kill-" + when}});
    CHECK(dying.server().process().Wait() == -SIGKILL);
    const std::string note = dying.Note();
    REQUIRE(note.starts_with("make "));
    const std::string made = dying.server().data_dir() + "/ledger/" + note.substr(5);
    CHECK(std::filesystem::exists(made) == after);
  }
}

TEST_CASE("a kill point of RocksDB kills, and is no SIGTERM") {
  if (!RocksKillPointsAvailable()) {
    MESSAGE("skipped: RocksDB " << RocksVersion() << " was built without kill points");
    return;
  }
  DyingServer dying(Environment{{"ROCKSDB_KILL_ODDS", "1"}});
  CHECK(dying.server().process().Wait() == -SIGKILL);
  CHECK(dying.server().LogHas("Crashing at "));
}

TEST_CASE("without a kill point the faulty server serves, and ends at SIGTERM in good order") {
  DyingServer living(Environment{{"ROCKSDB_KILL_ODDS", "0"}});
  REQUIRE(living.server().WaitUntilServing());
  CHECK(living.server().Terminate() == 0);
}

}  // namespace
}  // namespace nowcalls::faults
