// nowcalls-admin repair: ledgers that were damaged on disk, what is salvaged of them, and that the
// result serves. The damaged one is never changed.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "integration/calls.h"
#include "integration/salvaged.h"
#include "ledger/fence_line.h"
#include "support/admin.h"
#include "support/machine.h"
#include "support/sample.h"
#include "support/server_process.h"
#include "support/small_disk.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kClosedTokens = 300;
constexpr size_t kLoggedTokens = 100;

// A server that was killed: some tokens are in data files, some in the log only.
class DamagedLedger {
 public:
  DamagedLedger() : server_({RuleJson(1, 100'000, {{"resourceTimeout", 600'000}})}) {
    for (const size_t tokens : {kClosedTokens, kLoggedTokens}) {
      RpcClient alice = server_.Connect("alice");
      AcquireMany(&alice, 1, tokens);
      const Grant last = Acquire(&alice, 1);
      last_fence_ = last.fence;
      if (tokens == kClosedTokens) {
        REQUIRE(server_.server().Terminate() == 0);
        closed_ = ReadContents(server_.data_dir());
        server_.server().Start();
      }
    }
    server_.server().Kill9();
    killed_ms_ = WallMs();
    before_ = ReadContents(server_.data_dir());
    REQUIRE(before_.tokens.size() == kClosedTokens + kLoggedTokens + 2);
  }

  std::string File(const std::string& part) const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(server_.data_dir() + "/ledger")) {
      if (!Contains(entry.path().filename().string(), part)) continue;
      if (found.empty() || entry.file_size() > fs::file_size(found)) found = entry.path();
    }
    REQUIRE_FALSE(found.empty());
    return found.string();
  }

  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(server_.data_dir())) {
      if (entry.is_regular_file()) files[entry.path()] = ReadFileToString(entry.path());
    }
    return files;
  }

  std::string to() const { return server_.Sub("salvaged"); }
  std::string from() const { return server_.data_dir(); }
  // Of a repair whose syncs take long.
  Process::Options SlowRepair(Machine* machine) const {
    machine->control().sync_takes_ms = kPatienceMs;
    Process::Options options;
    options.argv = {ProductBinary("nowcalls-admin"), "repair", "--data-dir", from(), "--to", to()};
    options.environment = machine->environment();
    return options;
  }
  const Contents& before() const { return before_; }
  const Contents& closed() const { return closed_; }  // What the data files have.

  Finished Repair() const {
    return RunAdmin(Source::Offline(server_.data_dir()), {"repair", "--to", to()});
  }

  // Repairs, and proves what holds whatever is damaged: the result is sound and serves, what is
  // told of it is so, its rows are those of before, and no fence comes twice. `sealed` as in
  // CheckTold.
  Told Salvage(const Contents* sealed) {
    const auto files = Files();
    const Finished repaired = Repair();
    CAPTURE(repaired.out);
    CAPTURE(repaired.err);
    REQUIRE(repaired.exit_code == 0);
    CHECK((Files() == files));
    Told told = ParseTold(repaired.out, to());
    // The reader has the ledger, and what is told to be done about it has been done.
    CHECK_FALSE(Contains(repaired.out, ".partial"));
    CHECK_FALSE(Contains(repaired.out, "restore it from a backup"));
    there_ = CheckTold(told, to(), sealed);
    // All have one session and one rule, which data files and log both have.
    Contents expected = before_;
    std::erase_if(expected.tokens,
                  [&](const auto& token) { return !there_.tokens.contains(token.first); });
    CheckSame(there_, expected);
    CheckServes(told);
    return told;
  }
  size_t kept() const { return there_.tokens.size(); }

 private:
  void CheckServes(const Told& told) const {
    const TempDir dir;
    fs::copy(to(), dir.Sub("data"), fs::copy_options::recursive);
    ServerProcess server(dir.path());
    server.Start();
    RpcClient bob(server.address());
    LoadRules(&bob, RuleJson(1, 100'000));
    CHECK(NowCalls(&bob, 1) == static_cast<int64_t>(told.now_calls));
    const Grant grant = Acquire(&bob, 1);
    CHECK(grant.status == kStatusOk);
    CHECK(grant.fence > last_fence_);
    CHECK(grant.fence >= ledger::FenceLine(killed_ms_));
    CHECK(grant.fence >= told.next_fence);
  }

  TestServer server_;
  uint64_t last_fence_ = 0;
  int64_t killed_ms_ = 0;
  Contents closed_;
  Contents before_;
  Contents there_;
};

TEST_CASE_FIXTURE(DamagedLedger, "of a ledger that is whole everything is salvaged") {
  const Told told = Salvage(&before());
  CHECK(told.tokens == kClosedTokens + kLoggedTokens + 2);
  CHECK(told.lost.empty());
  CHECK_FALSE(told.differs.has_value());
  CHECK(told.changed.empty());
}

TEST_CASE_FIXTURE(DamagedLedger, "of a log with a damaged batch the others are salvaged") {
  const std::string log = File(".log");
  FlipByte(log, ReadFileToString(log).find_last_not_of('\0') / 2);
  CHECK(RunAdmin(Source::Offline(from()), {"verify"}).exit_code == 65);
  const Told told = Salvage(&before());
  CHECK(kept() >= kClosedTokens);
  CHECK(kept() < before().tokens.size());
  REQUIRE(told.lost.size() == 1);
  CHECK(told.lost[0].starts_with(log + ": bytes "));
  CHECK(told.changed.empty());
}

TEST_CASE_FIXTURE(DamagedLedger, "of a ledger whose log was emptied the data files are salvaged") {
  const std::string log = File(".log");
  fs::resize_file(log, 0);
  const Finished verified = RunAdmin(Source::Offline(from()), {"verify"});
  CHECK(verified.exit_code == 65);
  CHECK(Contains(verified.err, "has lost batch"));
  const Told told = Salvage(&closed());
  CHECK(kept() == kClosedTokens + 1);
  // How far the ledger reached is known but for the last second.
  REQUIRE(told.lost.size() == 1);
  CHECK(told.lost[0].starts_with("batch"));
  CHECK(Contains(told.lost[0], " " + std::to_string(closed().batch() + 1)));
  CHECK(
      told.lost[0].ends_with(", and perhaps later ones that nothing tells of: the last that is "
                             "left is batch " +
                             std::to_string(closed().batch())));
  CHECK(told.changed.empty());
}

TEST_CASE_FIXTURE(DamagedLedger, "of a ledger with a damaged manifest everything is salvaged") {
  const std::string manifest = File("MANIFEST");
  SUBCASE("a byte") { FlipByte(manifest, fs::file_size(manifest) / 2); }
  SUBCASE("its end") { fs::resize_file(manifest, fs::file_size(manifest) / 2); }
  const Told told = Salvage(&before());
  CHECK(kept() == before().tokens.size());
  REQUIRE(told.lost.size() == 1);
  CHECK(Contains(told.lost[0], "it is put together from the data files"));
  CHECK(told.changed.empty());
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "wherever and however the manifest is damaged, everything is salvaged") {
  constexpr size_t kBytes = 64;
  const std::string manifest = File("MANIFEST");
  const std::string sound = ReadFileToString(manifest);
  for (const uint64_t piece : SampleOf(sound.size() / kBytes, 5)) {
    for (const char kind : {'\0', '\xff', 'x', '=', '-'}) {
      CAPTURE(piece);
      CAPTURE(kind);
      std::string damaged = sound;
      const std::string other = sound.substr(sound.size() / 2, kBytes);
      if (kind == '-') {
        damaged.erase(piece * kBytes, kBytes / 2);
      } else if (kind == '=') {
        damaged.replace(piece * kBytes, other.size(), other);  // Sound elsewhere.
      } else {
        damaged.replace(piece * kBytes, kBytes, std::string(kBytes, kind));
      }
      WriteStringToFile(manifest, damaged);
      const Finished repaired = Repair();
      CAPTURE(repaired.err);
      REQUIRE(repaired.exit_code == 0);
      CHECK_FALSE(fs::exists(to() + ".partial"));
      CHECK(RunAdmin(Source::Offline(to()), {"verify"}).exit_code == 0);
      CHECK(ReadContents(to()).tokens.size() == before().tokens.size());
      fs::remove_all(to());
    }
  }
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "what a repair that was cut short has left is removed by the next") {
  fs::create_directories(to() + ".partial/repairing/scratch/lost");
  WriteStringToFile(to() + ".partial/repairing/scratch/000001.log", "half");
  SUBCASE("half") {}
  SUBCASE("nothing yet") { fs::remove_all(to() + ".partial/repairing"); }
  Salvage(&before());
  CHECK(kept() == before().tokens.size());
  CHECK_FALSE(fs::exists(to() + ".partial"));
}

TEST_CASE_FIXTURE(DamagedLedger, "repair removes nothing that no repair has made") {
  fs::create_directories(to() + ".partial/repairing");
  WriteStringToFile(to() + ".partial/thesis", "mine");
  const Finished refused = Repair();
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, to() + ".partial exists: it has thesis, which no repair made"));
  CHECK(fs::exists(to() + ".partial/repairing"));
  CHECK(ReadFileToString(to() + ".partial/thesis") == "mine");
}

TEST_CASE_FIXTURE(DamagedLedger, "a data directory with the name of a left-over is not removed") {
  CopyTree(from(), to() + ".partial");
  const Finished refused = Repair();
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, to() + ".partial exists: it has ledger, which no repair made"));
  CHECK(fs::exists(to() + ".partial/ledger/CURRENT"));
}

TEST_CASE_FIXTURE(DamagedLedger, "a ledger whose repair was killed at its last step is served") {
  Salvage(&before());
  CHECK_FALSE(fs::exists(to() + "/repairing"));
  const TempDir dir;
  fs::copy(to(), dir.Sub("data"), fs::copy_options::recursive);
  fs::create_directory(dir.Sub("data/repairing"));
  ServerProcess server(dir.path());
  server.Start();
  CHECK(server.Terminate() == 0);
}

TEST_CASE_FIXTURE(DamagedLedger, "of two repairs to one directory the second is refused") {
  Machine machine;
  Process repair(SlowRepair(&machine));
  REQUIRE(PollUntil(kPatienceMs, [&] { return machine.control().syncs_begun > 0; }));
  const Finished refused = Repair();
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, "another repair to it runs"));
  machine.control().sync_takes_ms = 0;
  CHECK(repair.Wait() == 0);
  CheckSame(ReadContents(to()), before());
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "without CURRENT, and with a witness only in part, all is salvaged") {
  fs::remove(File("CURRENT"));
  FlipByte(File("witness"), 20);
  Salvage(&before());
  CHECK(kept() == before().tokens.size());
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "without the data file of the tokens those of the log are salvaged") {
  const std::string file = File(".sst");
  SUBCASE("gone") { fs::remove(file); }
  SUBCASE("its end is damaged") { FlipByte(file, fs::file_size(file) - 5); }
  const Told told = Salvage(&before());
  CHECK(kept() >= kLoggedTokens);
  CHECK(kept() < before().tokens.size());
  CHECK(told.differs.has_value());
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "of a data file with a damaged block the other blocks are salvaged") {
  const std::string file = File(".sst");
  REQUIRE(fs::file_size(file) > 12'000);
  FlipByte(file, 6'000);
  const Told told = Salvage(&before());
  CHECK(kept() > before().tokens.size() - 100);
  CHECK(kept() < before().tokens.size());
  REQUIRE(told.lost.size() == 1);
  CHECK(told.lost[0].starts_with("cannot read column family tokens_long: Corruption: "));
  CHECK(Contains(told.lost[0], " " + file + " "));
}

TEST_CASE_FIXTURE(DamagedLedger, "what is told of a ledger that cannot be opened names its files") {
  SUBCASE("a data file is gone") {
    const std::string file = File(".sst");
    fs::remove(file);
    const Told told = Salvage(&before());
    REQUIRE_FALSE(told.lost.empty());
    CHECK(Contains(told.lost[0], file));
  }
  SUBCASE("a byte of the manifest") {
    const std::string manifest = File("MANIFEST");
    FlipByte(manifest, fs::file_size(manifest) / 2);
    const Told told = Salvage(&before());
    REQUIRE(told.lost.size() == 1);
    CHECK(Contains(told.lost[0], manifest));
  }
  SUBCASE("CURRENT names no manifest") {
    WriteStringToFile(File("CURRENT"), "MANIFEST-999999\n");
    const Told told = Salvage(&before());
    REQUIRE(told.lost.size() == 1);
    CHECK(Contains(told.lost[0], from() + "/ledger"));
  }
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "while a ledger is salvaged no server gets it, but another repair may read it") {
  Machine machine;
  Process repair(SlowRepair(&machine));
  // The first file of the copy.
  REQUIRE(PollUntil(kPatienceMs, [&] { return machine.control().syncs_begun > 0; }));
  ServerProcess server(fs::path(from()).parent_path().string());
  server.StartWithoutWaiting();
  CHECK(server.process().Wait() == 74);
  CHECK(server.LogHas("is being salvaged by process " + std::to_string(repair.pid())));
  CHECK(RunAdmin(Source::Offline(from()), {"repair", "--to", to() + "2"}).exit_code == 0);
  CHECK(machine.control().syncs == 0);
  machine.control().sync_takes_ms = 0;
  CHECK(repair.Wait() == 0);
  CheckSame(ReadContents(to()), before());
  CheckSame(ReadContents(to() + "2"), before());
  server.Start();
}

TEST_CASE_FIXTURE(DamagedLedger, "a ledger that cannot be written is salvaged, LOCK or not") {
  const TempDir dir;
  SmallDisk disk(dir.Sub("disk"));
  if (!disk.Mount("64m")) return;
  const std::string data_dir = dir.Sub("disk/data");
  CopyTree(from(), data_dir);
  SUBCASE("with") {}
  SUBCASE("without") { fs::remove(data_dir + "/ledger/LOCK"); }
  SUBCASE("without CURRENT") { fs::remove(data_dir + "/ledger/CURRENT"); }
  REQUIRE(disk.MakeReadOnly());
  const Finished repaired = RunAdmin(Source::Offline(data_dir), {"repair", "--to", to()});
  CAPTURE(repaired.err);
  CHECK(repaired.exit_code == 0);
  CheckSame(ReadContents(to()), before());
}

TEST_CASE_FIXTURE(DamagedLedger, "a repair for which there is no room tells so before it begins") {
  const TempDir dir;
  SmallDisk disk(dir.Sub("disk"));
  if (!disk.Mount("64m")) return;
  const Finished refused =
      RunAdmin(Source::Offline(from()), {"repair", "--to", dir.Sub("disk/new")});
  CAPTURE(refused.err);
  CHECK(refused.exit_code == 74);
  CHECK(Contains(refused.err, " bytes are to be copied, 134217728 must be left for others, and " +
                                  std::to_string(disk.FreeBytes()) + " are free"));
  CHECK(fs::is_empty(dir.Sub("disk")));
}

TEST_CASE_FIXTURE(DamagedLedger, "a repair that cannot write tells why, and loses nothing by it") {
  std::string file;
  SUBCASE("a data file") { file = File(".sst"); }
  SUBCASE("a log") {
    file = File(".log");
    for (const auto& entry : fs::directory_iterator(from() + "/ledger")) {
      if (entry.path().extension() == ".sst") fs::remove(entry.path());
    }
  }
  // As if the disk were full behind some KiB.
  const Finished refused =
      RunProgram({"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh",
                  ProductBinary("nowcalls-admin"), "repair", "--data-dir", from(), "--to", to()});
  CAPTURE(refused.err);
  CHECK(refused.exit_code == 74);
  CHECK(refused.out.empty());
  CHECK(Contains(refused.err, "nowcalls-admin: cannot write " + to() +
                                  ".partial/repairing/scratch/" +
                                  fs::path(file).filename().string() + ": File too large\n"));
  CHECK_FALSE(fs::exists(to() + ".partial"));
}

TEST_CASE_FIXTURE(DamagedLedger, "a ledger without LOCK is salvaged, and none is made") {
  fs::remove(File("LOCK"));
  const Told told = Salvage(&before());
  CHECK(told.lost.empty());
  CHECK_FALSE(fs::exists(from() + "/ledger/LOCK"));
}

TEST_CASE_FIXTURE(DamagedLedger, "of a ledger of which nothing can be read repair makes none") {
  SUBCASE("all its files are of other bytes") {
    for (const auto& entry : fs::directory_iterator(from() + "/ledger")) {
      if (!fs::is_regular_file(entry)) continue;
      WriteStringToFile(entry.path(), std::string(fs::file_size(entry), 'j'));
    }
  }
  SUBCASE("it has none") {
    fs::remove_all(from() + "/ledger");
    fs::create_directory(from() + "/ledger");
  }
  const Finished refused = Repair();
  CHECK(refused.exit_code == 65);
  CHECK(Contains(refused.err, "nothing of the ledger in " + from() + "/ledger can be read"));
  CHECK_FALSE(fs::exists(to()));
  CHECK_FALSE(fs::exists(to() + ".partial"));
}

TEST_CASE_FIXTURE(DamagedLedger, "repair does not wait for a pipe in the place of a file") {
  const std::string pipe = from() + "/ledger/900001.sst";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const Finished refused = Repair();
  CHECK(refused.exit_code == 65);
  CHECK(Contains(refused.err, pipe + " is a named pipe"));
  CHECK_FALSE(fs::exists(to()));
  fs::remove(pipe);
  CHECK(Repair().exit_code == 0);
}

TEST_CASE_FIXTURE(DamagedLedger, "repair refuses a target that exists, no ledger, and a live one") {
  fs::create_directory(to());
  Finished refused = Repair();
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, to() + " exists"));
  CHECK(fs::is_empty(to()));
  refused = RunAdmin(Source::Offline(to()), {"repair", "--to", to() + "2"});
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, "nowcalls-admin: --data-dir: there is no ledger"));
  CHECK_FALSE(fs::exists(to() + "2"));
  for (const char* within : {"/repaired", "/ledger/repaired"}) {
    refused = RunAdmin(Source::Offline(from()), {"repair", "--to", from() + within});
    CHECK(refused.exit_code == 64);
    CHECK(Contains(refused.err, "nowcalls-admin: --to: "));
    CHECK(Contains(refused.err, "lies within the data directory that is repaired"));
    CHECK_FALSE(fs::exists(from() + within + ".partial"));
  }
  const TempDir other;
  WriteStringToFile(other.Sub("CURRENT"), "MANIFEST-000001\n");
  fs::create_directory(other.Sub("deep"));
  refused = RunAdmin(Source::Offline(from()), {"repair", "--to", other.Sub("deep/repaired")});
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, "would be among the files of a database, " + other.path()));
  CHECK(fs::is_empty(other.Sub("deep")));
  ServerProcess server(fs::path(from()).parent_path().string());
  server.Start();
  refused = RunAdmin(Source::Offline(from()), {"repair", "--to", to() + "2"});
  CHECK(refused.exit_code == 74);
  CHECK(Contains(refused.err, "stop it first"));
  CHECK_FALSE(fs::exists(to() + "2"));
}

}  // namespace
}  // namespace nowcalls::testing
