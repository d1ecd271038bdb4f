// Ledgers that must be refused: another format, damaged files. Nothing is ever dropped in silence.
#include <doctest/doctest.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "ledger/entities.h"
#include "support/admin.h"
#include "support/server_process.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

// Opens the ledger with RocksDB alone, as no part of the product does.
class RawLedger {
 public:
  explicit RawLedger(const std::string& data_dir) {
    const std::string dir = data_dir + "/ledger";
    std::vector<std::string> names;
    REQUIRE(rocksdb::DB::ListColumnFamilies({}, dir, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.reserve(names.size());
    for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::DB* db = nullptr;
    const rocksdb::Status opened = rocksdb::DB::Open({}, dir, families, &handles_, &db);
    CAPTURE(opened.ToString());
    REQUIRE(opened.ok());
    db_.reset(db);
  }
  ~RawLedger() {
    for (auto* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  }
  RawLedger(const RawLedger&) = delete;
  RawLedger& operator=(const RawLedger&) = delete;

  rocksdb::ColumnFamilyHandle* Family(const std::string& name) {
    for (auto* handle : handles_) {
      if (handle->GetName() == name) return handle;
    }
    FAIL("no column family " << name);
    return nullptr;
  }
  rocksdb::DB* db() { return db_.get(); }

  // The first key and value of a family.
  std::pair<std::string, std::string> First(const std::string& family) {
    const std::unique_ptr<rocksdb::Iterator> it(
        db_->NewIterator(rocksdb::ReadOptions(), Family(family)));
    it->SeekToFirst();
    REQUIRE(it->Valid());
    return {it->key().ToString(), it->value().ToString()};
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

// A closed ledger with some tokens in files.
class LedgerFixture {
 public:
  LedgerFixture() : server({RuleJson(1, 100'000)}) {
    RpcClient alice = server.Connect("alice");
    AcquireMany(&alice, 1, kTokens);
    REQUIRE(server.server().Terminate() == 0);
  }

  Source offline() const { return Source::Offline(server.data_dir()); }
  std::string Files() const { return server.data_dir() + "/ledger"; }

  // The largest file of the ledger whose name ends or begins so.
  std::string FileLike(const std::string& part) const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(Files())) {
      if (!Contains(entry.path().filename().string(), part)) continue;
      if (found.empty() || entry.file_size() > fs::file_size(found)) found = entry.path();
    }
    REQUIRE_FALSE(found.empty());
    return found.string();
  }

  // The exit code of a server that is started on it, with what it logged in `err`.
  int ServerExit(std::string* log) {
    fs::remove(server.server().log_path());
    server.server().StartWithoutWaiting();
    if (server.server().WaitUntilServing()) {
      server.server().Kill9();
      *log = server.server().log();
      return 0;
    }
    *log = server.server().log();
    return server.server().process().Wait().value_or(-1000);
  }

  static constexpr size_t kTokens = 2'000;
  TestServer server;
};

// upgrading.md quotes the message and the exit code.
TEST_CASE_FIXTURE(LedgerFixture, "a newer ledger is refused by all programs, and left as it was") {
  const auto set_version = [&](uint32_t version) {
    RawLedger raw(server.data_dir());
    std::string value;
    REQUIRE(raw.db()->Get({}, raw.Family("default"), "format", &value).ok());
    value[3] = static_cast<char>(version);  // The last of the first four bytes, big-endian.
    REQUIRE(raw.db()->Put({}, raw.Family("default"), "format", value).ok());
  };
  const Finished before = RunAdmin(offline(), {"dump", "--format", "jsonl"});
  set_version(ledger::kFormatVersion + 1);
  const std::string message =
      "the ledger has format version " + std::to_string(ledger::kFormatVersion + 1) +
      ", this program reads only versions 1 to " + std::to_string(ledger::kFormatVersion) +
      ": run the nowcalls release that wrote it, or choose another data directory";
  const std::string page = ReadFileToString(NOWCALLS_SOURCE_DIR "/tools/manual/upgrading.md");
  const std::string begin = message.substr(0, message.find(": run"));
  CHECK(Contains(page, "    " + begin + ": run the\n    nowcalls release that wrote it"));
  std::string log;
  CHECK(ServerExit(&log) == 65);
  CHECK_MESSAGE(Contains(log, message), log);
  for (const char* command : {"dump", "stat", "verify"}) {
    const Finished finished = RunAdmin(offline(), {command});
    CHECK(finished.exit_code == 65);
    CHECK_MESSAGE(Contains(finished.err, message), finished.err);
    CHECK(finished.out.empty());
  }
  set_version(ledger::kFormatVersion);
  const Finished after = RunAdmin(offline(), {"dump", "--format", "jsonl"});
  CHECK(after.exit_code == 0);
  CHECK(after.out == before.out);
  CHECK(ServerExit(&log) == 0);
}

TEST_CASE_FIXTURE(LedgerFixture, "a damaged data file is refused and named") {
  const std::string file = FileLike(".sst");
  FlipByte(file, fs::file_size(file) / 3);
  std::string log;
  CHECK(ServerExit(&log) == 65);
  CAPTURE(log);
  CHECK(Contains(log, fs::path(file).filename().string()));
  CHECK(Contains(log, "nowcalls-admin verify --data-dir " + server.data_dir()));
  const Finished verified = RunAdmin(offline(), {"verify"});
  CAPTURE(verified.out);
  CHECK(verified.exit_code == 65);
  CHECK(Contains(verified.out, "unreadable: tokens_medium: "));
  CHECK(Contains(verified.out, fs::path(file).filename().string()));
  // The other families are read, and nobody is sent to where he is.
  CHECK(Contains(verified.out, ", 1 session, 1 rule, "));
  CHECK_FALSE(Contains(verified.out + verified.err, "nowcalls-admin verify"));
  const Finished dumped = RunAdmin(offline(), {"dump"});
  CHECK(dumped.exit_code == 65);
  CHECK(Contains(dumped.err, "nowcalls-admin verify"));
}

// RocksDB takes a data file's last blocks apart before it looks at their checksums, and asserts.
TEST_CASE_FIXTURE(LedgerFixture, "a bit that changed at the end of a data file aborts no program") {
  constexpr uint64_t kFooterBytes = 53;
  const std::string file = FileLike(".sst");
  const uint64_t size = fs::file_size(file);
  const std::string whole = ReadFileToString(file);
  for (uint64_t before_end = kFooterBytes + 1; before_end < kFooterBytes + 60; ++before_end) {
    CAPTURE(before_end);
    std::string bytes = whole;
    bytes[size - before_end] = static_cast<char>(bytes[size - before_end] ^ 0x80);
    WriteStringToFile(file, bytes);
    const Finished verified = RunAdmin(offline(), {"verify"});
    CAPTURE(verified.err);
    const bool sound = verified.exit_code == 0;
    CHECK((sound || verified.exit_code == 65));
    if (!Contains(verified.err, "fatal: ")) continue;
    CHECK(Contains(verified.err, "damaged"));
    std::string log;
    CHECK(ServerExit(&log) == 65);
    CHECK(Contains(log, "fatal: "));
  }
}

TEST_CASE_FIXTURE(LedgerFixture, "a missing data file is refused and named") {
  const std::string file = FileLike(".sst");
  fs::remove(file);
  std::string log;
  CHECK(ServerExit(&log) == 65);
  CAPTURE(log);
  CHECK(Contains(log, fs::path(file).filename().string()));
  CHECK(RunAdmin(offline(), {"verify"}).exit_code == 65);
}

TEST_CASE_FIXTURE(LedgerFixture, "a damaged manifest is refused") {
  const std::string file = FileLike("MANIFEST");
  FlipByte(file, fs::file_size(file) / 2);
  std::string log;
  CHECK(ServerExit(&log) == 65);
  CAPTURE(log);
  CHECK(Contains(log, "MANIFEST"));
  const Finished verified = RunAdmin(offline(), {"verify"});
  CHECK(verified.exit_code == 65);
  // Neither program sends anybody to one that cannot open it either.
  CHECK_FALSE(Contains(log + verified.err, "nowcalls-admin verify"));
}

TEST_CASE_FIXTURE(LedgerFixture, "a missing log is refused, whether the ledger was closed or not") {
  for (const bool closed : {true, false}) {
    if (!closed) {
      server.server().Start();
      server.server().Kill9();
    }
    std::vector<fs::path> logs;
    for (const auto& entry : fs::directory_iterator(Files())) {
      if (entry.path().extension() == ".log") logs.push_back(entry.path());
    }
    REQUIRE_FALSE(logs.empty());
    for (const fs::path& path : logs) fs::rename(path, path.string() + ".away");
    std::string log;
    CHECK(ServerExit(&log) == 65);
    CAPTURE(log);
    CHECK(Contains(log, Files() + " has lost its log"));
    CHECK_FALSE(Contains(log, "formatted"));
    CHECK(RunAdmin(offline(), {"verify"}).exit_code == 65);
    for (const fs::path& path : logs) fs::rename(path.string() + ".away", path);
    CHECK(RunAdmin(offline(), {"verify"}).exit_code == 0);
  }
}

TEST_CASE_FIXTURE(LedgerFixture, "starts refused for a manifest without its end take nothing") {
  server.server().Start();
  {
    RpcClient alice = server.Connect("alice");
    AcquireMany(&alice, 1, 50);
  }
  server.server().Kill9();
  const std::string manifest = FileLike("MANIFEST");
  const std::string whole = ReadFileToString(manifest);
  const std::string current = ReadFileToString(Files() + "/CURRENT");
  for (size_t cut = 1; cut < 8; ++cut) {
    CAPTURE(cut);
    fs::resize_file(manifest, whole.size() * cut / 8);
    std::string log;
    CHECK(ServerExit(&log) == 65);
    CAPTURE(log);
    CHECK(ReadFileToString(Files() + "/CURRENT") == current);
    WriteStringToFile(manifest, whole);
    CHECK(AdminRows(offline(), {"dump"}).size() == kTokens + 50);
    CHECK(RunAdmin(offline(), {"verify"}).exit_code == 0);
  }
}

TEST_CASE_FIXTURE(LedgerFixture, "a missing CURRENT file is refused, not taken for a new ledger") {
  fs::remove(Files() + "/CURRENT");
  std::string log;
  CHECK(ServerExit(&log) == 65);
  CAPTURE(log);
  CHECK(Contains(log, "CURRENT"));
  CHECK(RunAdmin(offline(), {"verify"}).exit_code == 65);
}

TEST_CASE_FIXTURE(LedgerFixture, "a token that vanished from the files is noticed") {
  {
    RawLedger raw(server.data_dir());
    const auto [key, value] = raw.First("tokens_medium");
    REQUIRE(raw.db()->SingleDelete({}, raw.Family("tokens_medium"), key).ok());
  }
  std::string log;
  CHECK(ServerExit(&log) == 65);
  CAPTURE(log);
  const Finished verified = RunAdmin(offline(), {"verify"});
  CAPTURE(verified.out);
  CHECK(verified.exit_code == 65);
  CHECK(Contains(verified.out, "seal"));
}

TEST_CASE_FIXTURE(LedgerFixture, "a token that was copied under another key is noticed") {
  {
    RawLedger raw(server.data_dir());
    auto [key, value] = raw.First("tokens_medium");
    key[15] = static_cast<char>(key[15] ^ 1);
    REQUIRE(raw.db()->Put({}, raw.Family("tokens_medium"), key, value).ok());
  }
  std::string log;
  CHECK(ServerExit(&log) == 65);
  const Finished verified = RunAdmin(offline(), {"verify"});
  CAPTURE(verified.out);
  CHECK(verified.exit_code == 65);
}

TEST_CASE_FIXTURE(LedgerFixture, "a record that does not decode is named with its family and key") {
  {
    RawLedger raw(server.data_dir());
    const auto [key, value] = raw.First("sessions");
    REQUIRE(raw.db()->SingleDelete({}, raw.Family("sessions"), key).ok());
    REQUIRE(raw.db()->Put({}, raw.Family("sessions"), key, value.substr(0, 3)).ok());
  }
  std::string log;
  CHECK(ServerExit(&log) == 65);
  CAPTURE(log);
  CHECK(Contains(log, "sessions"));
  const Finished verified = RunAdmin(offline(), {"verify"});
  CAPTURE(verified.out);
  CHECK(verified.exit_code == 65);
  CHECK(Contains(verified.out, "sessions"));
}

TEST_CASE_FIXTURE(LedgerFixture, "a copy of the files is a ledger of its own") {
  TempDir other;
  CopyTree(server.data_dir(), other.Sub("data"));
  const auto copy = Source::Offline(other.Sub("data"));
  CHECK(AdminRows(copy, {"dump"}).size() == kTokens);
  CHECK(RunAdmin(copy, {"verify"}).exit_code == 0);
}

}  // namespace
}  // namespace nowcalls::testing
