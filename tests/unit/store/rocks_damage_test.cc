// Damaged files: what a crash leaves behind is taken for what it is, everything else is refused by
// the name of the file. Damage is never passed over in silence.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "store/rocks/ledger_reader.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

// The failure of opening or loading the ledger; `dump` is what was loaded otherwise.
Status OpenAndLoad(const std::string& data_dir, Dump* dump) {
  auto opened = RocksStore::Open(data_dir, TinyOptions());
  if (!opened.ok()) return opened.status();
  *dump = DumpOf(opened->get());
  if (dump->size() == 1 && dump->front().starts_with("corruption: ")) {
    return Status::Corruption(dump->front().substr(12));
  }
  return {};
}

void CheckRefused(const Status& status, const std::string& file) {
  CHECK(status.code() == StatusCode::kCorruption);
  CAPTURE(status.message());
  CHECK(status.message().find(file) != std::string::npos);
  CHECK(status.message().find("restore it from a backup") != std::string::npos);
}

void Copy(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

// A ledger whose last batches are in its log only: made by `script`, states[n] is what batch n
// left.
std::vector<Dump> MakeUnflushed(const std::string& data_dir, LedgerScript* script, int batches) {
  const auto opened = RocksStore::Open(data_dir, {});
  REQUIRE(opened.ok());
  std::vector<Dump> states = {{}};
  for (int i = 0; i < batches; ++i) {
    CommitMany(script, 1, 20, opened->get());
    states.push_back(script->Expected());
  }
  return states;
}

// A ledger of several files, all flushed.
void MakeFlushed(const std::string& data_dir, LedgerScript* script) {
  const auto store = OpenTiny(data_dir);
  CommitMany(script, 60, 60, store.get());
  REQUIRE(store->Close().ok());
}

std::string TheLog(const std::string& data_dir) {
  std::string largest;
  for (const std::string& path : LedgerFiles(data_dir, ".log")) {
    if (largest.empty() || SizeOf(path) > SizeOf(largest)) largest = path;
  }
  return largest;
}

// A witness refuses most of this (rocks_chain_test.cc); without one the log decides alone.
TEST_CASE("a log cut short anywhere opens with the whole batches before the cut") {
  const TempDir dir;
  LedgerScript script(10);
  const std::vector<Dump> states = MakeUnflushed(dir.Sub("whole"), &script, 20);
  fs::remove(dir.Sub("whole/ledger/witness"));
  const uint64_t size = SizeOf(TheLog(dir.Sub("whole")));
  size_t least = states.size();
  for (uint64_t cut = 1; cut < size; cut += 1 + size / 12) {
    CAPTURE(cut);
    Copy(dir.Sub("whole"), dir.Sub("cut"));
    fs::resize_file(TheLog(dir.Sub("cut")), size - cut);
    Dump dump;
    const Status status = OpenAndLoad(dir.Sub("cut"), &dump);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    const auto state = std::find(states.begin(), states.end(), dump);
    REQUIRE(state != states.end());
    const auto batches = static_cast<size_t>(state - states.begin());
    CHECK(batches < 20);
    CHECK(batches <= least);
    least = batches;
  }
  CHECK(least < 5);
}

TEST_CASE("a log with a changed byte before its last block is refused by name") {
  const TempDir dir;
  LedgerScript script(11);
  MakeUnflushed(dir.Sub("whole"), &script, 100);
  const std::vector<uint64_t> offsets = PayloadOffsets(TheLog(dir.Sub("whole")));
  REQUIRE(offsets.size() > 90);
  for (size_t i = 0; i < offsets.size() * 2 / 3; i += 15) {
    CAPTURE(offsets[i]);
    Copy(dir.Sub("whole"), dir.Sub("bad"));
    const std::string log = TheLog(dir.Sub("bad"));
    FlipByte(log, offsets[i], 0x01);
    Dump dump;
    CheckRefused(OpenAndLoad(dir.Sub("bad"), &dump), log);
  }
}

TEST_CASE("a changed byte in a data file is refused by name or changes nothing") {
  const TempDir dir;
  LedgerScript script(12);
  MakeFlushed(dir.Sub("whole"), &script);
  const Dump expected = script.Expected();
  const std::vector<std::string> files = LedgerFiles(dir.Sub("whole"), ".sst");
  REQUIRE(files.size() >= 3);
  int refused = 0;
  int tried = 0;
  for (const std::string& whole : files) {
    const std::string name = fs::path(whole).filename();
    const uint64_t size = SizeOf(whole);
    for (uint64_t offset = 10; offset < size; offset += 1 + size / 3) {
      CAPTURE(name);
      CAPTURE(offset);
      Copy(dir.Sub("whole"), dir.Sub("bad"));
      FlipByte(dir.Sub("bad/ledger/") + name, offset, 0x40);
      ++tried;
      Dump dump;
      const Status status = OpenAndLoad(dir.Sub("bad"), &dump);
      if (status.ok()) {
        CHECK(DifferenceOf(dump, expected) == "");
        continue;
      }
      CheckRefused(status, name);
      ++refused;
    }
  }
  CHECK(refused * 2 > tried);
}

TEST_CASE("a missing data file is refused by name") {
  const TempDir dir;
  LedgerScript script(13);
  MakeFlushed(dir.path(), &script);
  const std::string file = LedgerFiles(dir.path(), ".sst").front();
  fs::remove(file);
  Dump dump;
  CheckRefused(OpenAndLoad(dir.path(), &dump), fs::path(file).filename());
}

TEST_CASE("a changed byte in the manifest is refused by name") {
  const TempDir dir;
  LedgerScript script(14);
  MakeFlushed(dir.Sub("whole"), &script);
  std::string name;
  for (const auto& entry : fs::directory_iterator(dir.Sub("whole/ledger"))) {
    const std::string file = entry.path().filename();
    if (file.starts_with("MANIFEST-")) name = file;
  }
  const std::vector<uint64_t> offsets = PayloadOffsets(dir.Sub("whole/ledger/") + name);
  REQUIRE(offsets.size() > 8);
  for (size_t i = 0; i < offsets.size(); i += 1 + offsets.size() / 6) {
    CAPTURE(offsets[i]);
    Copy(dir.Sub("whole"), dir.Sub("bad"));
    FlipByte(dir.Sub("bad/ledger/") + name, offsets[i], 0x10);
    Dump dump;
    CheckRefused(OpenAndLoad(dir.Sub("bad"), &dump), name);
    CheckRefused(LedgerReader::Open(dir.Sub("bad")).status(), name);
  }
}

TEST_CASE("a damaged CURRENT is refused by name") {
  const TempDir dir;
  LedgerScript script(15);
  MakeFlushed(dir.path(), &script);
  FlipByte(dir.Sub("ledger/CURRENT"), 0, 0x01);
  Dump dump;
  CheckRefused(OpenAndLoad(dir.path(), &dump), dir.Sub("ledger/CURRENT"));
}

// Every family in one file; the path of that of `family`.
std::string CompactedFileOf(const std::string& data_dir, const std::string& family) {
  std::string path;
  ChangeBare(data_dir, [&](rocksdb::DB* db, auto* handles) {
    for (rocksdb::ColumnFamilyHandle* handle : *handles) {
      REQUIRE(db->CompactRange({}, handle, nullptr, nullptr).ok());
    }
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& file : files) {
      if (file.column_family_name == family) path = data_dir + "/ledger" + file.name;
    }
  });
  REQUIRE_FALSE(path.empty());
  return path;
}

// Counts tokens, and goes on behind what cannot be read.
struct Survivors : ledger::EntityVisitor {
  Status OnEntity(const ledger::Entity& entity) override {
    const auto* const token = ledger::As<ledger::Token>(entity);
    if (token != nullptr) ++tokens[token->key.family];
    return {};
  }
  Status OnUnreadable(ledger::Family family, Status what) override {
    unreadable.emplace_back(family);
    reason = std::move(what);
    return {};
  }

  std::map<ledger::Family, size_t> tokens;
  std::vector<ledger::Family> unreadable;
  Status reason;
};

TEST_CASE("a visitor may go on behind a family that cannot be read") {
  const TempDir dir;
  LedgerScript script(16);
  MakeFlushed(dir.path(), &script);
  const std::string file = CompactedFileOf(dir.path(), "tokens_short");
  Survivors before;
  REQUIRE(OpenTiny(dir.path())->Load(&before).ok());
  REQUIRE(before.unreadable.empty());
  REQUIRE(before.tokens[ledger::Family::kTokensShort] > 0);
  REQUIRE(before.tokens[ledger::Family::kTokensLong] > 0);

  FlipByte(file, 10, 0x40);
  auto reader = LedgerReader::Open(dir.path());
  REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
  Survivors after;
  CHECK((*reader)->Load(&after).ok());
  CHECK(after.unreadable == std::vector{ledger::Family::kTokensShort});
  CheckRefused(after.reason, fs::path(file).filename());
  CHECK(after.tokens[ledger::Family::kTokensShort] == 0);
  CHECK(after.tokens[ledger::Family::kTokensMedium] ==
        before.tokens[ledger::Family::kTokensMedium]);
  CHECK(after.tokens[ledger::Family::kTokensLong] == before.tokens[ledger::Family::kTokensLong]);
}

}  // namespace
}  // namespace nowcalls::store
