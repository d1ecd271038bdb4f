// The server under the system call filter of data/deploy/nowcalls.service, as unit_filter.py makes
// it; no systemd runs here.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/admin.h"
#include "support/etcd_cluster.h"
#include "support/server_process.h"
#include "support/tcp.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

const std::vector<std::string> kFilter = {"/usr/bin/python3",
                                          NOWCALLS_SOURCE_DIR "/tests/install/unit_filter.py",
                                          NOWCALLS_SOURCE_DIR "/data/deploy/nowcalls.service"};

Finished RunFiltered(const std::vector<std::string>& program) {
  std::vector<std::string> argv = kFilter;
  argv.insert(argv.end(), program.begin(), program.end());
  return RunProgram(argv);
}

bool CanFilter() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  MESSAGE("skipped: a sanitizer needs system calls that the filter forbids");
  return false;
#endif
  if (::access("/usr/bin/systemd-analyze", X_OK) == 0 &&
      RunProgram({"/usr/bin/python3", "-c", "import seccomp"}).exit_code == 0) {
    return true;
  }
  MESSAGE("skipped: no systemd-analyze, or no python3-seccomp");
  return false;
}

}  // namespace

TEST_CASE("the unit's filter refuses what the server never does") {
  if (!CanFilter()) return;
  const TempDir dir;
  WriteStringToFile(dir.Sub("file"), "");
  const std::string me = std::to_string(::getuid());
  CHECK(RunProgram({"/usr/bin/chown", me, dir.Sub("file")}).exit_code == 0);
  for (const std::vector<std::string>& denied : std::vector<std::vector<std::string>>{
           {"/usr/bin/chown", me, dir.Sub("file")},
           {"/usr/bin/python3", "-c", "import socket; socket.socket(socket.AF_NETLINK, 3)"},
           {"/usr/bin/python3", "-c", "import mmap; mmap.mmap(-1, 9, prot=6)"}}) {
    CAPTURE(denied.back());
    const Finished done = RunFiltered(denied);
    CHECK(done.exit_code == 1);
    CHECK(Contains(done.err, "not permitted"));
  }
}

TEST_CASE("under the unit's filter the server grants, keeps its ledger, backs up and ends") {
  if (!CanFilter()) return;
  for (const char* io_uring : {"true", "false"}) {
    CAPTURE(io_uring);
    ServerOptions options;
    options.launcher = kFilter;
    options.arguments = {"--http", "127.0.0.1:0"};
    if (io_uring == std::string("false")) options.arguments.emplace_back("--no-io-uring");
    TestServer server(RuleJson(1, 5), options);
    RpcClient client = server.Connect("a");
    CHECK(client.Call("acquire", {1, 1}).result.at(0) == 0);
    const Finished backup =
        RunAdmin(Source::Live(server.address()), {"backup", "--to", server.Sub("backup")});
    CHECK_MESSAGE(backup.exit_code == 0, backup.err);
    server.server().Restart();
    CHECK(AdminRows(Source::Live(server.address()), {"tokens"}).size() == 1);
    CHECK(server.server().Terminate() == 0);
    CHECK_FALSE(Contains(server.server().log(), "not permitted"));
  }
}

TEST_CASE("under the unit's filter a member of a cluster writes") {
  if (!CanFilter()) return;
  const EtcdCluster etcd(1);
  ServerOptions options;
  options.launcher = kFilter;
  options.port = FreePort();
  options.arguments = {"--cluster", "etcd://" + etcd.endpoints() + "/nowcalls/filter"};
  TestServer server(RuleJson(1, 5), options);
  CHECK(server.server().Terminate() == 0);
}

}  // namespace nowcalls::testing
