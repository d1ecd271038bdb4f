// What nowcalls says is done is on the disk: data directories, backups, restored and repaired
// ledgers, judged by every call that the programs make on files (shim/file_calls_shim.cc).
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "faults/file_calls_log.h"
#include "shim/file_calls.h"
#include "support/admin.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::faults {
namespace {

namespace fs = std::filesystem;

using testing::Finished;
using testing::TempDir;

std::string Text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool IsSaid(const FileCall& call) { return call.what == testing::kSaid; }

std::function<bool(const FileCall&)> NamesIt(const std::string& path) {
  return
      [path](const FileCall& call) { return call.what == testing::kRenamed && call.now == path; };
}

std::function<bool(const FileCall&)> RemovesIt(const std::string& path) {
  return
      [path](const FileCall& call) { return call.what == testing::kRemoved && call.path == path; };
}

// The disk before the first call that is meant. Fails the test if there is none.
DiskView Before(const std::vector<FileCall>& calls,
                const std::function<bool(const FileCall&)>& is_meant) {
  const auto end = std::find_if(calls.begin(), calls.end(), is_meant);
  REQUIRE(end != calls.end());
  DiskView disk;
  for (auto it = calls.begin(); it != end; ++it) disk.Apply(*it);
  return disk;
}

// That all of the tree at `root` is certain, and that the log of the calls has all of it.
void CheckCertain(const DiskView& disk, const std::string& root,
                  const std::vector<const char*>& parts) {
  CHECK(Text(disk.Loose(root)) == "");
  const std::set<std::string> files = disk.FilesIn(root);
  for (const char* part : parts) {
    CAPTURE(part);
    CHECK(std::any_of(files.begin(), files.end(), [&](const std::string& file) {
      return file.find(part) != std::string::npos;
    }));
  }
  for (const std::string& file : disk.UnwrittenIn(root)) {
    CAPTURE(file);
    std::error_code gone;
    const auto bytes = fs::file_size(file, gone);
    CHECK((gone || bytes == 0));
  }
}

const std::vector<const char*> kLedgerParts = {"ledger/CURRENT", "ledger/MANIFEST-", ".log", ".sst",
                                               "witness"};

// A directory without symbolic links in its path, as the log names it.
class Place {
 public:
  std::string Sub(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  const TempDir dir_;
  const std::string path_ = fs::canonical(dir_.path());
};

// A ledger at rest: a data directory with tokens in data files and in its log.
class Ledger {
 public:
  explicit Ledger(const testing::Environment& environment = {}) : server_(place_.path()) {
    testing::WriteStringToFile(place_.Sub("rules.json"),
                               testing::RuleSet(testing::RuleJson(1, 100'000)).dump());
    server_.options().arguments = {"--rules", place_.Sub("rules.json")};
    server_.options().environment = environment;
    server_.Start();
    Acquire(50);
  }

  void Acquire(int tokens) {
    testing::RpcClient client(server_.address());
    REQUIRE(client.Call("hello", {1, "default", "client"}).ok());
    for (int i = 0; i < tokens; ++i) REQUIRE(client.Call("acquire", {1, 1}).ok());
  }
  // With some tokens in data files, and some in a log.
  void Stop() {
    REQUIRE(server_.Terminate() == 0);
    server_.options().environment.clear();
    server_.Start();
    Acquire(20);
    server_.Kill9();
  }

  testing::ServerProcess& server() { return server_; }
  std::string data_dir() const { return place_.Sub("data"); }
  std::string Sub(const std::string& name) const { return place_.Sub(name); }

 private:
  const Place place_;
  testing::ServerProcess server_;
};

Finished Admin(std::vector<std::string> arguments, const testing::Environment& environment = {}) {
  arguments.insert(arguments.begin(), testing::ProductBinary("nowcalls-admin"));
  Finished finished = testing::RunProgram(std::move(arguments), environment);
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished;
}

TEST_CASE("what a server serves from is on the disk, down to the directories that it made") {
  const FileCallsLog log;
  Ledger ledger(log.environment());
  ledger.server().Kill9();
  DiskView disk = Before(log.Read(), NamesIt(ledger.Sub("port")));
  // A thread of its own may be writing it just then.
  disk.HasTwoSlots(ledger.data_dir() + "/ledger/witness");
  CheckCertain(disk, ledger.data_dir(), kLedgerParts);
}

// `calls` made a backup, and end with `done`.
void CheckBackup(const std::vector<FileCall>& calls, const std::string& to,
                 const std::function<bool(const FileCall&)>& done) {
  // What has a manifest counts. Only the name that it has until then need not be certain.
  const DiskView counting = Before(calls, NamesIt(to + "/backup.json"));
  std::vector<std::string> loose = counting.LooseWithin(to);
  std::erase_if(loose, [&](const std::string& line) {
    return line.starts_with(to + "/backup.json.new is a name");
  });
  CHECK(Text(loose) == "");
  const DiskView disk = Before(calls, done);
  CheckCertain(disk, to, {"backup.json", "ledger/CURRENT", "ledger/MANIFEST-", ".log", ".sst"});
}

TEST_CASE("a backup at rest is on the disk when it is said to be done, and counts last") {
  Ledger ledger;
  ledger.Stop();
  const FileCallsLog log;
  const std::string to = ledger.Sub("backup");
  Admin({"backup", "--data-dir", ledger.data_dir(), "--to", to}, log.environment());
  CheckBackup(log.Read(), to, IsSaid);
}

TEST_CASE("a backup of a server is on the disk before it is done, and counts last") {
  const FileCallsLog log;
  Ledger ledger(log.environment());
  const std::string to = ledger.Sub("backup");
  Admin({"backup", "--server", ledger.server().address(), "--to", to});
  ledger.server().Kill9();
  CheckBackup(log.Read(), to, RemovesIt(to + "/backup.unfinished"));
}

TEST_CASE("a restored ledger is on the disk when it is said to be done, and gets its name last") {
  Ledger ledger;
  ledger.Stop();
  const std::string backup = ledger.Sub("backup");
  Admin({"backup", "--data-dir", ledger.data_dir(), "--to", backup});
  const FileCallsLog log;
  const std::string to = ledger.Sub("restored");
  SUBCASE("in a directory that is made") {}
  SUBCASE("in one that is there") { fs::create_directory(to); }
  Admin({"restore", "--from", backup, "--data-dir", to}, log.environment());
  const std::vector<FileCall> calls = log.Read();
  const std::string parent = fs::path(to).parent_path();
  CHECK(std::any_of(calls.begin(), calls.end(), [&](const FileCall& call) {
    return call.what == testing::kSynced && call.path == parent;
  }));
  const DiskView whole = Before(calls, NamesIt(to + "/ledger"));
  CHECK(Text(whole.LooseWithin(to + "/restoring/ledger")) == "");
  const DiskView disk = Before(calls, IsSaid);
  CheckCertain(disk, to, kLedgerParts);
}

TEST_CASE("a repaired ledger is on the disk when it is said to be done, and gets its name last") {
  Ledger ledger;
  ledger.Stop();
  const FileCallsLog log;
  const std::string to = ledger.Sub("repaired");
  Admin({"repair", "--data-dir", ledger.data_dir(), "--to", to}, log.environment());
  const std::vector<FileCall> calls = log.Read();
  const DiskView half = Before(calls, NamesIt(to));
  CHECK(Text(half.LooseWithin(to + ".partial")) == "");
  const DiskView whole = Before(calls, NamesIt(to + "/ledger"));
  CHECK(Text(whole.LooseWithin(to + "/repairing/ledger")) == "");
  const DiskView disk = Before(calls, IsSaid);
  CheckCertain(disk, to, kLedgerParts);
}

}  // namespace
}  // namespace nowcalls::faults
