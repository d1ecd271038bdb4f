// Opening a ledger: making one, finishing a half-made one, refusing what is not ours.
#include <doctest/doctest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ledger/codec.h"
#include "store/disk/data_dir.h"
#include "store/disk/ledger_files.h"
#include "store/rocks/ledger_reader.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

Status OpenStatus(const std::string& data_dir) {
  return RocksStore::Open(data_dir, TinyOptions()).status();
}

// A closed ledger with tokens in it.
void MakeLedger(const std::string& data_dir) {
  const auto store = OpenTiny(data_dir);
  LedgerScript script(5);
  CommitMany(&script, 3, 50, store.get());
  REQUIRE(store->Close().ok());
}

bool Contains(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string::npos;
}

struct FormatVisitor : ledger::EntityVisitor {
  Status OnEntity(const ledger::Entity& entity) override {
    if (const auto* seen = ledger::As<ledger::Format>(entity)) format = *seen;
    rates += ledger::As<ledger::RateBucket>(entity) != nullptr ? 1 : 0;
    return {};
  }
  ledger::Format format;
  int rates = 0;
};

ledger::Format FormatOf(LedgerSource* store) {
  FormatVisitor visitor;
  REQUIRE(store->Load(&visitor).ok());
  return visitor.format;
}

TEST_CASE("an absent data directory is made for its owner only and formatted") {
  const TempDir dir;
  const std::string data_dir = dir.Sub("data");
  const auto store = OpenTiny(data_dir);
  CHECK(store->formatted_now());
  for (const std::string& path : {data_dir, data_dir + "/ledger"}) {
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
  }
}

TEST_CASE("no ledger is made beside one further down, and of a backup it is said how to use it") {
  const TempDir dir;
  const std::string below = dir.Sub("below");
  MakeLedger(below);
  const auto refused = [&](std::string_view with) {
    const Status status = OpenStatus(dir.path());
    CAPTURE(status.message());
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(Contains(status, "but one in " + below + "/ledger, and a new one would be empty"));
    CHECK(Contains(status, with));
    return Contains(status, " or name " + below + " as the data directory");
  };
  CHECK(refused("bring its files to " + dir.Sub("ledger")));
  testing::WriteStringToFile(below + "/" + kBackupManifestName, "{}");
  CHECK_FALSE(refused("`nowcalls-admin restore --from " + below + " --data-dir NEW`"));
  fs::rename(below + "/" + kBackupManifestName, below + "/" + kBackupUnfinishedName);
  CHECK_FALSE(refused(below + " is a backup that was never finished"));
}

TEST_CASE("a ledger keeps its format from one open to the next, and two ledgers have other keys") {
  const TempDir dir;
  auto store = OpenTiny(dir.Sub("a"));
  const ledger::Format first = FormatOf(store.get());
  CHECK(first.version == ledger::kFormatVersion);
  store.reset();
  store = OpenTiny(dir.Sub("a"));
  CHECK_FALSE(store->formatted_now());
  CHECK(FormatOf(store.get()).token_id_key == first.token_id_key);
  CHECK(FormatOf(store.get()).created_wall_ms == first.created_wall_ms);
  const auto other = OpenTiny(dir.Sub("b"));
  CHECK(FormatOf(other.get()).token_id_key != first.token_id_key);
}

TEST_CASE("a data directory that cannot be made is an I/O error that names it") {
  const TempDir dir;
  const Status status = OpenStatus(dir.Sub("no/such/parent"));
  CHECK(status.code() == StatusCode::kIoError);
  CHECK(Contains(status, dir.Sub("no/such/parent")));
  CHECK(OpenStatus("").code() == StatusCode::kInvalidArgument);
}

TEST_CASE("what is no file in a ledger's directory is refused by name before it is opened") {
  const TempDir dir;
  MakeLedger(dir.path());
  for (const char* name : {"CURRENT", "witness", "LOCK", "IDENTITY", "anything"}) {
    CAPTURE(name);
    const std::string path = dir.Sub("ledger/") + name;
    std::error_code ignored;
    fs::rename(path, dir.Sub("away"), ignored);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    const Status read = LedgerReader::Open(dir.path()).status();
    CHECK(read.code() == StatusCode::kCorruption);
    CHECK(read.message().starts_with(path + " is a named pipe"));
    if (std::string_view(name) != "LOCK") CHECK(OpenStatus(dir.path()).message() == read.message());
    fs::remove(path);
    fs::rename(dir.Sub("away"), path, ignored);
  }
  CHECK(OpenStatus(dir.path()).ok());
}

TEST_CASE("readers and servers tell alike that a ledger is gone but for its witness") {
  const TempDir dir;
  MakeLedger(dir.path());
  for (const auto& entry : fs::directory_iterator(dir.Sub("ledger"))) {
    if (entry.path().filename() != "witness") fs::remove(entry.path());
  }
  const Status read = LedgerReader::Open(dir.path()).status();
  CHECK(read.code() == StatusCode::kCorruption);
  CHECK(Contains(read, "is gone: there is no CURRENT, though"));
  CHECK(OpenStatus(dir.path()).message() == read.message());
}

TEST_CASE("an unknown format version is refused with both versions and what to do") {
  const TempDir dir;
  MakeLedger(dir.path());
  ChangeBare(dir.path(), [](rocksdb::DB* db, auto*) {
    // A version that also has another layout and other families must still be told as a version.
    REQUIRE(db->Put({}, "format", std::string("\0\0\0\x09zz", 6)).ok());
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    REQUIRE(db->CreateColumnFamily({}, "parameters", &handle).ok());
    REQUIRE(db->DestroyColumnFamilyHandle(handle).ok());
  });
  for (const Status& status : {OpenStatus(dir.path()), LedgerReader::Open(dir.path()).status()}) {
    CHECK(status.code() == StatusCode::kFailedPrecondition);
    CHECK(Contains(status, "format version 9"));
    CHECK(Contains(status, "only versions 1 to 4"));
    CHECK(Contains(status, "run the nowcalls release that wrote it"));
  }
}

TEST_CASE("a damaged format record is refused as corruption") {
  const TempDir dir;
  MakeLedger(dir.path());
  ChangeBare(dir.path(),
             [](rocksdb::DB* db, auto*) { REQUIRE(db->Put({}, "format", "abc").ok()); });
  CHECK(OpenStatus(dir.path()).code() == StatusCode::kCorruption);
}

// Makes of a ledger what a program of format version 2 would have left.
void MakeVersion2(const std::string& data_dir) {
  ChangeBare(data_dir, [](rocksdb::DB* db, auto* handles) {
    std::string format;
    REQUIRE(db->Get({}, "format", &format).ok());
    format[3] = 2;
    REQUIRE(db->Put({}, "format", format).ok());
    for (rocksdb::ColumnFamilyHandle* handle : *handles) {
      if (handle->GetName() == "rates") REQUIRE(db->DropColumnFamily(handle).ok());
    }
  });
}

ledger::CommitBatch RateBatch(uint64_t number) {
  ledger::CommitBatch batch;
  batch.RateSet({{FlowId(1), kScriptStartMs}, 5, 0});
  batch.Sealed({.batch_number = number});
  return batch;
}

TEST_CASE("a ledger of version 2 is read as it is, and gets the family of rates when served") {
  const TempDir dir;
  {
    const auto store = OpenTiny(dir.path());
    ledger::CommitBatch batch;
    batch.SessionOpened({SessionId(7), ledger::SessionKind::kNamed, 1, "orders", "cart"});
    batch.Sealed({.batch_number = 1, .next_fence = 8});
    REQUIRE(store->Commit(batch).ok());
    REQUIRE(store->Close().ok());
  }
  MakeVersion2(dir.path());
  auto reader = LedgerReader::Open(dir.path());
  REQUIRE(reader.ok());
  CHECK(FormatOf(reader->get()).version == 2);
  reader->reset();
  // A store that nobody serves from leaves the families as they are: a restore, for one.
  for (const uint64_t number : {2, 3}) {
    const auto store = OpenTiny(dir.path());
    CHECK(FormatOf(store.get()).version == 2);
    if (number == 3) REQUIRE(store->Accept().ok());
    if (number == 3) REQUIRE(store->Accept().ok());
    ledger::CommitBatch batch;
    batch.Sealed({.batch_number = number, .next_fence = 8});
    REQUIRE(store->Commit(number == 3 ? RateBatch(3) : batch).ok());
    REQUIRE(store->Close().ok());
    std::vector<std::string> names;
    REQUIRE(rocksdb::DB::ListColumnFamilies({}, dir.Sub("ledger"), &names).ok());
    CHECK(names.size() == (number == 3 ? 8 : 7));
  }
  reader = LedgerReader::Open(dir.path());
  REQUIRE(reader.ok());
  FormatVisitor shown;
  REQUIRE((*reader)->Load(&shown).ok());
  CHECK(shown.rates == 1);
}

TEST_CASE("a ledger of version 3 or later without the family of rates is refused") {
  const TempDir dir;
  MakeLedger(dir.path());
  ChangeBare(dir.path(), [](rocksdb::DB* db, auto* handles) {
    for (rocksdb::ColumnFamilyHandle* handle : *handles) {
      if (handle->GetName() == "rates") REQUIRE(db->DropColumnFamily(handle).ok());
    }
  });
  CHECK(Contains(OpenStatus(dir.path()), "lacks the column family 'rates'"));
}

TEST_CASE("a missing column family is refused by name") {
  const TempDir dir;
  MakeLedger(dir.path());
  ChangeBare(dir.path(), [](rocksdb::DB* db, auto* handles) {
    for (rocksdb::ColumnFamilyHandle* handle : *handles) {
      if (handle->GetName() == "tokens_long") REQUIRE(db->DropColumnFamily(handle).ok());
    }
  });
  for (const Status& status : {OpenStatus(dir.path()), LedgerReader::Open(dir.path()).status()}) {
    CHECK(status.code() == StatusCode::kCorruption);
    CHECK(Contains(status, "lacks the column family 'tokens_long'"));
    CHECK(Contains(status, dir.path()));
  }
}

TEST_CASE("an unknown column family is refused by name") {
  const TempDir dir;
  MakeLedger(dir.path());
  ChangeBare(dir.path(), [](rocksdb::DB* db, auto*) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    REQUIRE(db->CreateColumnFamily({}, "surprise", &handle).ok());
    REQUIRE(db->DestroyColumnFamilyHandle(handle).ok());
  });
  const Status status = OpenStatus(dir.path());
  CHECK(status.code() == StatusCode::kCorruption);
  CHECK(Contains(status, "unknown column family 'surprise'"));
}

TEST_CASE("a ledger with records but no format record is refused") {
  const TempDir dir;
  MakeLedger(dir.path());
  ChangeBare(dir.path(), [](rocksdb::DB* db, auto*) { REQUIRE(db->Delete({}, "format").ok()); });
  for (const Status& status : {OpenStatus(dir.path()), LedgerReader::Open(dir.path()).status()}) {
    CHECK(status.code() == StatusCode::kCorruption);
    CHECK(Contains(status, "no format record"));
  }
}

TEST_CASE("a ledger whose making was cut short at any step is finished by the next open") {
  const std::vector<std::string> order = {
      "rules", "sessions", "tokens_short", "tokens_medium", "tokens_long", "history", "rates"};
  for (size_t made = 0; made <= order.size(); ++made) {
    CAPTURE(made);
    const TempDir dir;
    ChangeBare(dir.path(), [&](rocksdb::DB* db, auto* handles) {
      for (size_t i = 0; i < made; ++i) {
        rocksdb::ColumnFamilyHandle* handle = nullptr;
        REQUIRE(db->CreateColumnFamily({}, order[i], &handle).ok());
        handles->push_back(handle);
      }
    });
    CHECK(LedgerReader::Open(dir.path()).status().code() == StatusCode::kNotFound);
    const auto store = OpenTiny(dir.path());
    CHECK(store->formatted_now());
    LedgerScript script(6);
    CommitMany(&script, 2, 50, store.get());
    CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
  }
}

TEST_CASE("leftovers of a database that was never finished do not stop a new one") {
  const TempDir dir;
  ChangeBare(dir.path(), [](rocksdb::DB*, auto*) {});
  // The first manifest is there before there are CURRENT and a log, and before a second one.
  fs::rename(dir.Sub("ledger/" + CurrentManifest(dir.Sub("ledger"))),
             dir.Sub("ledger/MANIFEST-000001"));
  fs::remove(dir.path() + "/ledger/CURRENT");
  for (const std::string& log : LedgerFiles(dir.path(), ".log")) fs::remove(log);
  CHECK(OpenTiny(dir.path())->formatted_now());
}

// Cannot make a log, as if the process had been killed just before it does.
class NoLogs : public rocksdb::FileSystemWrapper {
 public:
  NoLogs() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "NoLogs"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    if (path.ends_with(".log")) return rocksdb::IOStatus::IOError("killed");
    return FileSystemWrapper::NewWritableFile(path, options, file, context);
  }
};

TEST_CASE("a ledger whose making was cut short before its first log is finished") {
  const TempDir dir;
  const auto env = rocksdb::NewCompositeEnv(std::make_shared<NoLogs>());
  RocksStoreOptions options = TinyOptions();
  options.env = env.get();
  CHECK(RocksStore::Open(dir.path(), options).status().code() == StatusCode::kIoError);
  REQUIRE(fs::exists(dir.Sub("ledger/CURRENT")));
  REQUIRE(LedgerFiles(dir.path(), ".log").empty());
  CHECK(OpenTiny(dir.path())->formatted_now());
}

TEST_CASE("a ledger without a log is refused, whether it is new, was killed or was closed") {
  for (const std::string state : {"new", "killed", "closed"}) {
    CAPTURE(state);
    const TempDir dir;
    LedgerScript script(9);
    auto store = OpenTiny(dir.path());
    if (state != "new") CommitMany(&script, 3, 50, store.get());
    if (state == "closed") REQUIRE(store->Close().ok());
    store.reset();
    REQUIRE(OpenStatus(dir.path()).ok());
    for (const std::string& log : LedgerFiles(dir.path(), ".log")) fs::remove(log);
    for (const Status& status : {OpenStatus(dir.path()), LedgerReader::Open(dir.path()).status()}) {
      CHECK(status.code() == StatusCode::kCorruption);
      CHECK(Contains(status, dir.path() + "/ledger has lost its log"));
    }
    // A directory of such a name is none.
    fs::create_directory(dir.Sub("ledger/000099.log"));
    CHECK(OpenStatus(dir.path()).code() == StatusCode::kCorruption);
  }
}

TEST_CASE("a new ledger whose log was emptied is refused, and without a witness not made anew") {
  const TempDir dir;
  auto store = OpenTiny(dir.path());
  const ledger::Format format = FormatOf(store.get());
  LedgerScript script(9);
  CommitMany(&script, 3, 50, store.get());
  store.reset();
  for (const std::string& log : LedgerFiles(dir.path(), ".log")) fs::resize_file(log, 0);
  CHECK(OpenStatus(dir.path()).code() == StatusCode::kCorruption);
  fs::remove(dir.Sub("ledger/witness"));
  store = OpenTiny(dir.path());
  CHECK_FALSE(store->formatted_now());
  CHECK(FormatOf(store.get()).token_id_key == format.token_id_key);
}

TEST_CASE("data without CURRENT is refused instead of being formatted over") {
  const TempDir dir;
  MakeLedger(dir.path());
  fs::remove(dir.path() + "/ledger/CURRENT");
  const auto check = [&] {
    for (const Status& status : {OpenStatus(dir.path()), LedgerReader::Open(dir.path()).status()}) {
      CHECK(status.code() == StatusCode::kCorruption);
      CHECK(Contains(status, dir.path() + "/ledger/CURRENT is missing"));
    }
  };
  check();
  fs::remove(dir.Sub("ledger/witness"));
  for (const std::string_view suffix : {".sst", ".log"}) {
    for (const std::string& file : LedgerFiles(dir.path(), suffix)) fs::remove(file);
  }
  check();
}

TEST_CASE("reading where there is no ledger is not found, and makes none") {
  const TempDir dir;
  CHECK(LedgerReader::Open(dir.Sub("absent")).status().code() == StatusCode::kNotFound);
  CHECK(LedgerReader::Open(dir.path()).status().code() == StatusCode::kNotFound);
  CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("the directory of a ledger is no data directory, and the one meant is named") {
  const TempDir dir;
  MakeLedger(dir.path());
  const std::string ledger = dir.Sub("ledger");
  for (const std::string& too_deep : {ledger, ledger + "/", dir.path() + "/./ledger//"}) {
    CAPTURE(too_deep);
    for (const Status& status : {OpenStatus(too_deep), LedgerReader::Open(too_deep).status(),
                                 LedgerLock::Take(too_deep).status()}) {
      CHECK(status.code() == StatusCode::kInvalidArgument);
      CHECK(Contains(status, "but the ledger of one: " + dir.path() + " is probably meant"));
    }
  }
  CHECK_FALSE(fs::exists(ledger + "/ledger"));
  CHECK(OpenStatus(dir.path()).ok());
}

TEST_CASE("a database of another name is no data directory either") {
  const TempDir dir;
  MakeLedger(dir.path());
  fs::rename(dir.Sub("ledger"), dir.Sub("copy"));
  const Status status = OpenStatus(dir.Sub("copy"));
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(Contains(status, dir.Sub("copy") + " holds a database itself"));
  CHECK(Contains(status, "name the directory whose 'ledger' is the ledger"));
  CHECK_FALSE(fs::exists(dir.Sub("copy/ledger")));
}

TEST_CASE("opening twice in one process is refused with its pid") {
  const TempDir dir;
  const auto store = OpenTiny(dir.path());
  const Status status = OpenStatus(dir.path());
  CHECK(status.code() == StatusCode::kAlreadyExists);
  CHECK(Contains(status, "pid " + std::to_string(getpid())));
}

TEST_CASE("close leaves no log to replay, and nothing is taken after it") {
  const TempDir dir;
  LedgerScript script(7);
  {
    const auto store = OpenTiny(dir.path());
    CommitMany(&script, 5, 50, store.get());
    REQUIRE(store->Close().ok());
    CHECK(store->Close().ok());
    ledger::CommitBatch batch;
    script.NextBatch(1, &batch);
    CHECK(store->Commit(batch).code() == StatusCode::kFailedPrecondition);
    CHECK(DumpOf(store.get()).front() == "failed_precondition: the ledger is closed");
  }
  for (const std::string& log : LedgerFiles(dir.path(), ".log")) CHECK(SizeOf(log) == 0);
  const auto store = OpenTiny(dir.path());
  CHECK(DumpOf(store.get()).size() > 10);
}

TEST_CASE("a reader sees tokens below the watermark, which a server passes over") {
  const TempDir dir;
  LedgerScript script(8);
  {
    const auto store = OpenTiny(dir.path());
    CommitMany(&script, 1, 200, store.get());
    ledger::CommitBatch batch;
    batch.WatermarkRaised(kScriptStartMs * 2);
    batch.Sealed({2, 1, kScriptStartMs * 2, 0, 0, 0});
    REQUIRE(store->Commit(batch).ok());
    for (const std::string& line : DumpOf(store.get())) CHECK_FALSE(line.starts_with("token "));
    REQUIRE(store->Close().ok());
  }
  auto reader = LedgerReader::Open(dir.path());
  REQUIRE(reader.ok());
  size_t tokens = 0;
  for (const std::string& line : DumpOf(reader->get())) tokens += line.starts_with("token ");
  CHECK(tokens == script.tokens().size());
  CHECK(tokens > 5);
}

TEST_CASE("a ledger in several data files is loaded whole and once, tokens behind all else") {
  const TempDir dir;
  LedgerScript script(77);
  {
    const auto store = OpenTiny(dir.path());
    CommitMany(&script, 30, 100, store.get());
    REQUIRE(store->Close().ok());
  }
  REQUIRE(script.tokens().size() > 100);
  REQUIRE(LedgerFiles(dir.path(), ".sst").size() > 3);
  const Dump dump = DumpOf(OpenTiny(dir.path()).get());
  const auto is_token = [](const std::string& line) { return line.starts_with("token "); };
  CHECK(std::all_of(std::find_if(dump.begin(), dump.end(), is_token), dump.end(), is_token));
  CHECK(DifferenceOf(dump, script.Expected()) == "");
}

TEST_CASE("rows that do not decode go to the visitor with their place") {
  const TempDir dir;
  MakeLedger(dir.path());
  ChangeBare(dir.path(), [](rocksdb::DB* db, auto* handles) {
    REQUIRE(db->Put({}, "extra", "1").ok());
    for (rocksdb::ColumnFamilyHandle* handle : *handles) {
      if (handle->GetName() == "default") continue;
      REQUIRE(db->Put({}, handle, "key", "value").ok());
    }
  });
  const auto store = OpenTiny(dir.path());
  Dump bad;
  for (const std::string& line : DumpOf(store.get())) {
    if (line.starts_with("bad ")) bad.push_back(line);
  }
  const Dump expected = {
      "bad corruption: default, key 6578747261: the key is unknown",
      ("bad corruption: rules, key 6b6579: rule key: is not a namespace, a zero byte and 8 bytes "
       "of "
       "flow id"),
      "bad corruption: sessions, key 6b6579: session key: has 3 bytes instead of 8",
      "bad corruption: history, key 6b6579: history key: has 3 bytes instead of 8",
      "bad corruption: rates, key 6b6579: rate key: has 3 bytes instead of 16",
      "bad corruption: tokens_short, key 6b6579: token key: has 3 bytes instead of 16",
      "bad corruption: tokens_medium, key 6b6579: token key: has 3 bytes instead of 16",
      "bad corruption: tokens_long, key 6b6579: token key: has 3 bytes instead of 16"};
  CHECK(DifferenceOf(bad, expected) == "");
  FormatVisitor strict;
  CHECK(store->Load(&strict).code() == StatusCode::kCorruption);
  ledger::ScanRequest request;
  request.upper_ms = INT64_MAX;
  ledger::ScanResult result;
  store->Scan(request, &result);
  CHECK(result.status.code() == StatusCode::kCorruption);
  CHECK_FALSE(result.more);
}

}  // namespace
}  // namespace nowcalls::store
