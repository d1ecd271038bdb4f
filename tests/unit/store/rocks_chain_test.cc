// Whole logs, and whole batches, that are gone: refused with the file and the batches, by servers
// and by readers, and the directory stays as it is.
#include <doctest/doctest.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "ledger/witness.h"
#include "store/disk/witness_file.h"
#include "store/log/log_chain.h"
#include "store/rocks/ledger_reader.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

// A ledger with several logs, which the rules need, and data files of the tokens; as a kill leaves
// it, when the witness has caught up.
struct Killed {
  explicit Killed(int batches = 60, uint64_t wal_bytes_max = SyncedOptions().wal_bytes_max) {
    RocksStoreOptions options = SyncedOptions();
    options.wal_bytes_max = wal_bytes_max;
    const auto store = RocksStore::Open(dir.path(), options);
    REQUIRE(store.ok());
    CommitMany(&script, batches, 60, store->get());
  }
  std::vector<std::string> Logs() const { return LedgerFiles(dir.path(), ".log"); }
  std::string Witness() const { return dir.Sub("ledger/witness"); }

  // What a reader and a server say, which must both refuse and change nothing.
  std::string Refusal() const {
    std::string said;
    for (const Status& status : {LedgerReader::Open(dir.path()).status(),
                                 RocksStore::Open(dir.path(), SyncedOptions()).status()}) {
      CHECK(status.code() == StatusCode::kCorruption);
      CHECK(status.message().find("restore it from a backup") != std::string::npos);
      said = status.message();
    }
    return said;
  }
  bool Opens() const {
    auto reader = LedgerReader::Open(dir.path());
    const auto store = RocksStore::Open(dir.path(), SyncedOptions());
    CHECK(reader.ok() == store.ok());
    if (!store.ok()) return false;
    CHECK(DifferenceOf(DumpOf(reader->get()), DumpOf(store->get())) == "");
    return DifferenceOf(DumpOf(store->get()), script.Expected()).empty();
  }

  const TempDir dir;
  LedgerScript script{91};
};

bool Says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  const bool says = text.find(part) != std::string::npos;
  CHECK(says);
  return says;
}

// Does something to a file, and puts back what was there.
void With(const std::string& path, const std::function<void()>& damage,
          const std::function<void()>& check) {
  const std::string whole = ReadFileToString(path);
  damage();
  check();
  WriteStringToFile(path, whole);
}

TEST_CASE("a ledger is refused when any of its logs is missing, empty, or lacks its last batch") {
  const Killed ledger;
  const std::vector<std::string> logs = ledger.Logs();
  REQUIRE(logs.size() > 3);
  for (const std::string& log : logs) {
    CAPTURE(log);
    const std::vector<uint64_t> records = PayloadOffsets(log);
    if (records.empty()) continue;
    std::string lost;
    With(
        log, [&] { fs::remove(log); },
        [&] {
          const std::string said = ledger.Refusal();
          lost = said.substr(0, said.find(": "));
        });
    Says(lost, "has lost batch");
    // Without its only batch, or before its first, a log is as good as missing.
    With(
        log, [&] { fs::resize_file(log, 0); }, [&] { Says(ledger.Refusal(), lost); });
    With(
        log, [&] { fs::resize_file(log, records.front() - 20); },
        [&] { Says(ledger.Refusal(), lost); });
    if (records.size() == 1) continue;
    With(
        log, [&] { fs::resize_file(log, records.back() - 20); },
        [&] { Says(ledger.Refusal(), log); });
  }
  CHECK(ledger.Opens());
}

TEST_CASE("the refusal of a missing log says which batches were in it") {
  const Killed ledger;
  const std::vector<std::string> logs = ledger.Logs();
  REQUIRE(logs.size() > 3);
  With(
      logs[1], [&] { fs::remove(logs[1]); },
      [&] {
        const std::string said = ledger.Refusal();
        Says(said, "has lost batches ");
        Says(said, logs[0] + " ends at byte ");
        Says(said, "and the next, " + logs[2] + ", begins with batch ");
      });
}

TEST_CASE("the newest log cut behind any of its batches is refused with the witness") {
  const Killed ledger(7);
  const std::string log = ledger.Logs().back();
  const std::string whole = ReadFileToString(log);
  size_t cuts = 0;
  for (const uint64_t payload : PayloadOffsets(log)) {
    fs::resize_file(log, payload);
    Says(ledger.Refusal(), "batch 7 was on the disk");
    // What follows the last whole record is evidence.
    CHECK(SizeOf(log) == payload);
    ++cuts;
  }
  CHECK(cuts >= 7);
  WriteStringToFile(log, whole);
  CHECK(ledger.Opens());
}

TEST_CASE("who has the lock of a ledger without its last batches may not read it either") {
  const Killed ledger(7);
  fs::resize_file(ledger.Logs().back(), PayloadOffsets(ledger.Logs().back()).back());
  Says(ledger.Refusal(), "batch 7 was on the disk");
  const auto lock = LedgerLock::Take(ledger.dir.path());
  REQUIRE(lock.ok());
  CHECK(LedgerReader::Open(**lock).status().code() == StatusCode::kCorruption);
}

TEST_CASE("a log without a batch in its middle is refused with the place") {
  const Killed ledger(7);
  const std::string log = ledger.Logs().back();
  const std::string whole = ReadFileToString(log);
  REQUIRE(whole.size() < 32768);
  const auto header = [&](size_t at) {
    return 7 + static_cast<uint8_t>(whole[at + 4]) +
           (static_cast<size_t>(static_cast<uint8_t>(whole[at + 5])) << 8);
  };
  size_t at = 0;
  size_t tried = 0;
  for (size_t next = header(0); next < whole.size(); at = next, next += header(next)) {
    if (at == 0) continue;
    WriteStringToFile(log, whole.substr(0, at) + whole.substr(next));
    Says(ledger.Refusal(), log + " is damaged at byte " + std::to_string(at));
    ++tried;
  }
  CHECK(tried >= 5);
  WriteStringToFile(log, whole);
  CHECK(ledger.Opens());
}

TEST_CASE("a batch that does not follow the last one is not taken") {
  const TempDir dir;
  const auto store = OpenTiny(dir.path());
  LedgerScript script(92);
  ledger::CommitBatch batch;
  script.NextBatch(5, &batch);
  script.NextBatch(5, &batch);
  CHECK(store->Commit(batch).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a witness of a manifest that is not the current one yet knows which logs are needed") {
  const Killed ledger;
  const std::string log = ledger.Logs().front();
  REQUIRE_FALSE(PayloadOffsets(log).empty());
  auto witness = ledger::DecodeWitnessFile(ReadFileToString(ledger.Witness())).witness;
  REQUIRE(witness.has_value());
  const auto open_without_log = [&](uint64_t manifest) {
    ledger::Witness told = *witness;
    told.manifest = manifest;
    std::string bytes(ledger::kWitnessFileBytes, '\0');
    const std::string slot = ledger::EncodeWitnessSlot(told);
    bytes.replace(told.sequence % 2 * ledger::kWitnessSlotStride, slot.size(), slot);
    WriteStringToFile(ledger.Witness(), bytes);
    bool refused = false;
    With(
        log, [&] { fs::remove(log); },
        [&] { refused = !LedgerReader::Open(ledger.dir.path()).ok(); });
    return refused;
  };
  CHECK(open_without_log(witness->manifest));
  CHECK(open_without_log(witness->manifest + 1));
}

TEST_CASE("an older ledger without a witness opens, and gets one") {
  const Killed ledger;
  fs::remove(ledger.Witness());
  CHECK(ledger.Opens());
  CHECK_FALSE(fs::exists(ledger.Witness()));
  const auto store = RocksStore::Open(ledger.dir.path(), SyncedOptions());
  REQUIRE(store.ok());
  CHECK((*store)->notes().empty());
  REQUIRE((*store)->Accept().ok());
  const auto found = ledger::DecodeWitnessFile(ReadFileToString(ledger.Witness()));
  REQUIRE(found.witness.has_value());
  CHECK_FALSE(found.damaged);
  CHECK(found.witness->batch_number == ledger.script.batch_number());
}

TEST_CASE("without a witness a missing log in the middle is still refused") {
  const Killed ledger;
  fs::remove(ledger.Witness());
  const std::vector<std::string> logs = ledger.Logs();
  REQUIRE(logs.size() > 3);
  for (size_t i = 1; i + 2 < logs.size(); ++i) {
    With(
        logs[i], [&] { fs::remove(logs[i]); }, [&] { Says(ledger.Refusal(), "has lost batch"); });
  }
}

TEST_CASE("a damaged witness is told, and the place that is sound still counts") {
  const Killed ledger;
  const std::string log = ledger.Logs().back();
  const std::string whole = ReadFileToString(ledger.Witness());
  for (const size_t place : {size_t{0}, ledger::kWitnessSlotStride}) {
    FlipByte(ledger.Witness(), place + 12, 0x10);
    const auto store = RocksStore::Open(ledger.dir.path(), SyncedOptions());
    REQUIRE(store.ok());
    REQUIRE((*store)->notes().size() == 1);
    Says((*store)->notes()[0], ledger.Witness());
    WriteStringToFile(ledger.Witness(), whole);
  }
  With(
      log, [&] { fs::resize_file(log, 0); },
      [&] {
        FlipByte(ledger.Witness(), 12, 0x10);
        Says(ledger.Refusal(), "has lost batch");
        WriteStringToFile(ledger.Witness(), whole);
      });
  FlipByte(ledger.Witness(), 12, 0x10);
  FlipByte(ledger.Witness(), ledger::kWitnessSlotStride + 12, 0x10);
  const auto store = RocksStore::Open(ledger.dir.path(), SyncedOptions());
  REQUIRE(store.ok());
  REQUIRE((*store)->notes().size() == 1);
  Says((*store)->notes()[0], "damaged in both places");
  REQUIRE((*store)->Accept().ok());
  CHECK_FALSE(ledger::DecodeWitnessFile(ReadFileToString(ledger.Witness())).damaged);
}

TEST_CASE("a directory of which only the witness is left is refused, not formatted") {
  const Killed ledger;
  for (const auto& entry : fs::directory_iterator(ledger.dir.Sub("ledger"))) {
    if (entry.path() != ledger.Witness()) fs::remove(entry.path());
  }
  const Status status = RocksStore::Open(ledger.dir.path(), SyncedOptions()).status();
  CHECK(status.code() == StatusCode::kCorruption);
  Says(status.message(), "is gone");
}

// With little room for logs, some went for records that are cut off here: nothing else has them.
TEST_CASE("a manifest cut short behind any of its records is refused or is the ledger") {
  for (const uint64_t wal_bytes_max : {SyncedOptions().wal_bytes_max, 4 * kTinyBufferBytes}) {
    const Killed ledger(120, wal_bytes_max);
    const std::string current = ReadFileToString(ledger.dir.Sub("ledger/CURRENT"));
    const std::string manifest = ledger.dir.Sub("ledger/") + current.substr(0, current.size() - 1);
    const std::string whole = ReadFileToString(manifest);
    size_t refused = 0;
    for (const uint64_t payload : PayloadOffsets(manifest)) {
      fs::resize_file(manifest, payload);
      const auto store = RocksStore::Open(ledger.dir.path(), SyncedOptions());
      refused += store.ok() ? 0 : 1;
      if (store.ok()) {
        CHECK(DifferenceOf(DumpOf(store->get()), ledger.script.Expected()) == "");
      }
      WriteStringToFile(manifest, whole);
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("logs that went because data files have their batches are not missed") {
  const TempDir dir;
  RocksStoreOptions options = SyncedOptions();
  options.wal_bytes_max = 4 * kTinyBufferBytes;
  LedgerScript script(93);
  std::set<std::string> seen;
  for (int run = 0; run < 4; ++run) {
    {
      const auto store = RocksStore::Open(dir.path(), options);
      REQUIRE_MESSAGE(store.ok(), store.status().ToString());
      CHECK(DifferenceOf(DumpOf(store->get()), script.Expected()) == "");
      for (int i = 0; i < 40; ++i) {
        CommitMany(&script, 5, 60, store->get());
        for (const std::string& log : LedgerFiles(dir.path(), ".log")) seen.insert(log);
      }
    }
    const auto found = ledger::DecodeWitnessFile(ReadFileToString(dir.Sub("ledger/witness")));
    REQUIRE(found.witness.has_value());
    CHECK(found.witness->batch_number == script.batch_number());
    CHECK(found.witness->floor > 0);
    auto reader = LedgerReader::Open(dir.path());
    REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
    CHECK(DifferenceOf(DumpOf(reader->get()), script.Expected()) == "");
  }
  CHECK(seen.size() > LedgerFiles(dir.path(), ".log").size() + 5);
}

// As when the process dies between a flush and the deletion of the log that it made needless.
TEST_CASE("a log that data files have made needless is not missed, and may still be there") {
  const TempDir dir;
  RocksStoreOptions options = SyncedOptions();
  options.wal_bytes_max = 4 * kTinyBufferBytes;
  LedgerScript script(96);
  const std::string witness = dir.Sub("ledger/witness");
  std::map<std::string, std::string> before;
  std::string gone;
  {
    const auto store = RocksStore::Open(dir.path(), options);
    REQUIRE(store.ok());
    for (int i = 0; i < 400 && gone.empty(); ++i) {
      std::vector<std::string> logs = LedgerFiles(dir.path(), ".log");
      logs.pop_back();  // It may still grow.
      before = {{witness, ReadFileToString(witness)}};
      bool whole = true;
      for (const std::string& log : logs) {
        before[log] = ReadFileToString(log);
        whole = whole && fs::exists(log);
      }
      CommitMany(&script, 1, 60, store->get());
      for (const std::string& log : logs) {
        if (whole && !fs::exists(log)) gone = log;
      }
    }
  }
  REQUIRE(gone != "");
  for (const auto& [path, bytes] : before) {
    if (!fs::exists(path) || path == witness) WriteStringToFile(path, bytes);
  }
  auto reader = LedgerReader::Open(dir.path());
  REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
  CHECK(DifferenceOf(DumpOf(reader->get()), script.Expected()) == "");
  const auto store = RocksStore::Open(dir.path(), options);
  REQUIRE_MESSAGE(store.ok(), store.status().ToString());
  CHECK(DifferenceOf(DumpOf(store->get()), script.Expected()) == "");
}

TEST_CASE("the witness knows the last batch of a ledger that was closed, and needs no log of it") {
  const TempDir dir;
  LedgerScript script(94);
  {
    const auto store = OpenTiny(dir.path());
    CommitMany(&script, 20, 60, store.get());
    REQUIRE(store->Close().ok());
  }
  const auto found = ledger::DecodeWitnessFile(ReadFileToString(dir.Sub("ledger/witness")));
  REQUIRE(found.witness.has_value());
  CHECK(found.witness->batch_number == 20);
  CHECK(found.witness->floor == 20);
}

TEST_CASE("without syncs the witness does not run ahead of what is on the disk") {
  const TempDir dir;
  LedgerScript script(95);
  const std::string path = dir.Sub("ledger/witness");
  {
    const auto store = OpenTiny(dir.path());
    CommitMany(&script, 20, 5, store.get());
  }
  CHECK(ledger::DecodeWitnessFile(ReadFileToString(path)).witness->batch_number == 1);
  {
    const auto store = OpenTiny(dir.path());
    CommitMany(&script, 5, 5, store.get());
    REQUIRE(store->Sync().ok());
    CommitMany(&script, 5, 5, store.get());
  }
  CHECK(ledger::DecodeWitnessFile(ReadFileToString(path)).witness->batch_number == 25);
}

// Logs of which only the batches are told.
std::map<uint64_t, LogSegment> Logs(const std::vector<std::pair<uint64_t, uint64_t>>& runs) {
  std::map<uint64_t, LogSegment> segments;
  for (const auto& [first, last] : runs) {
    const uint64_t number = segments.size() + 1;
    LogSegment& segment = segments[number];
    segment.path = std::to_string(number) + ".log";
    for (uint64_t batch = first; batch <= last; ++batch) segment.batches.Add(batch, batch * 100);
  }
  return segments;
}

bool IsWhole(const std::vector<std::pair<uint64_t, uint64_t>>& runs, uint64_t sealed,
             uint64_t witnessed, std::optional<uint64_t> floor) {
  return CheckChain("d", Logs(runs), {sealed, witnessed, floor}).ok();
}

TEST_CASE("a chain is whole when the logs have all that the data files need not have") {
  CHECK(IsWhole({}, 0, 0, 0));
  CHECK(IsWhole({}, 9, 9, 9));
  CHECK(IsWhole({}, 9, 9, std::nullopt));
  CHECK(IsWhole({{1, 4}, {5, 9}}, 9, 7, 0));
  CHECK(IsWhole({{3, 4}, {5, 9}}, 9, 9, 4));
  CHECK(IsWhole({{3, 4}, {8, 9}}, 9, 9, 7));
  CHECK(IsWhole({{3, 4}}, 9, 9, 9));
  CHECK(IsWhole({{5, 9}}, 9, 9, std::nullopt));
  CHECK_FALSE(IsWhole({}, 9, 9, 8));
  CHECK_FALSE(IsWhole({{1, 4}, {5, 9}}, 9, 10, 0));
  CHECK_FALSE(IsWhole({{2, 4}, {5, 9}}, 9, 9, 0));
  CHECK_FALSE(IsWhole({{3, 4}, {6, 9}}, 9, 9, 4));
  CHECK_FALSE(IsWhole({{3, 4}, {6, 9}}, 9, 9, std::nullopt));
  CHECK_FALSE(IsWhole({{3, 4}, {4, 9}}, 9, 9, 9));
  CHECK_FALSE(IsWhole({{3, 8}}, 9, 9, 8));
  CHECK_FALSE(IsWhole({{3, 8}}, 9, 9, std::nullopt));
}

// Of two logs that were deleted a power cut may bring back the first alone; a second one, between
// the next start's new CURRENT and its new witness, leaves a manifest of which no floor is known.
TEST_CASE("a deleted log that comes back hides nothing, whichever manifest the witness means") {
  const TempDir dir;
  LedgerScript script(92);
  RocksStoreOptions options = SyncedOptions();
  options.wal_bytes_max = 4 * kTinyBufferBytes;
  std::map<std::string, std::string> logs;
  {
    const auto store = RocksStore::Open(dir.path(), options);
    REQUIRE(store.ok());
    const auto gone_by_now = [&] {
      return std::count_if(logs.begin(), logs.end(),
                           [](const auto& log) { return !fs::exists(log.first); });
    };
    for (int batch = 0; batch < 120 || (batch < 5000 && gone_by_now() < 2); ++batch) {
      CommitMany(&script, 1, 60, store->get());
      for (const std::string& log : LedgerFiles(dir.path(), ".log")) {
        // RocksDB may delete it between the two.
        if (const std::string bytes = ReadFileToString(log); !bytes.empty()) logs[log] = bytes;
      }
    }
  }
  std::vector<std::string> gone;
  for (const auto& [log, bytes] : logs) {
    if (!fs::exists(log)) gone.push_back(log);
  }
  REQUIRE(gone.size() > 1);
  WriteStringToFile(gone.front(), logs.at(gone.front()));
  REQUIRE_FALSE(PayloadOffsets(gone.front()).empty());

  const std::string current = ReadFileToString(dir.Sub("ledger/CURRENT"));
  const auto env = rocksdb::NewCompositeEnv(std::make_shared<NoWitness>());
  options.env = env.get();
  {
    const auto store = RocksStore::Open(dir.path(), options);
    REQUIRE(store.ok());
    CHECK((*store)->Accept().code() == StatusCode::kIoError);
  }
  CHECK(ReadFileToString(dir.Sub("ledger/CURRENT")) != current);
  REQUIRE(fs::exists(gone.front()));
  const auto reader = LedgerReader::Open(dir.path());
  REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
  CHECK(DifferenceOf(DumpOf(reader->get()), script.Expected()) == "");
  const auto store = RocksStore::Open(dir.path(), SyncedOptions());
  REQUIRE_MESSAGE(store.ok(), store.status().ToString());
  CHECK(DifferenceOf(DumpOf(store->get()), script.Expected()) == "");
}

}  // namespace
}  // namespace nowcalls::store
