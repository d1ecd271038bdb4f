// Ledgers whose last batches were answered before they were on the disk, as a crash of the machine
// may leave them: with damage anywhere behind what the witness knows they open with all batches
// before it, and what followed does not come back.
#include <doctest/doctest.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "ledger/witness.h"
#include "store/disk/file_names.h"
#include "store/log/log_end.h"
#include "store/log/log_scan.h"
#include "store/rocks/ledger_reader.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/sample.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::kPatienceMs;
using testing::PollUntil;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

// Puts a witness in the place of the one there is, which says so of the batches.
void Witness(const std::string& data_dir, uint64_t batch_number, bool unsynced) {
  const std::string path = data_dir + "/ledger/witness";
  auto witness = ledger::DecodeWitnessFile(ReadFileToString(path)).witness;
  REQUIRE(witness.has_value());
  witness->batch_number = batch_number;
  witness->unsynced = unsynced;
  std::string bytes(ledger::kWitnessFileBytes, '\0');
  const std::string slot = ledger::EncodeWitnessSlot(*witness);
  bytes.replace(witness->sequence % 2 * ledger::kWitnessSlotStride, slot.size(), slot);
  WriteStringToFile(path, bytes);
}

ledger::Witness WitnessOf(const std::string& data_dir) {
  const auto found = ledger::DecodeWitnessFile(ReadFileToString(data_dir + "/ledger/witness"));
  REQUIRE(found.witness.has_value());
  return *found.witness;
}

// As a kill leaves a server that did not sync.
struct Unsynced {
  // Once `witnessed_min` batches are witnessed, which takes flushes.
  Unsynced(int batches, int records, size_t write_buffer_bytes, uint64_t witnessed_min = 0) {
    RocksStoreOptions options = TinyOptions();
    options.write_buffer_bytes = write_buffer_bytes;
    const auto store = RocksStore::Open(dir.path(), options);
    REQUIRE(store.ok());
    for (int i = 0; i < batches; ++i) {
      states.push_back(script.Expected());
      CommitMany(&script, 1, records, store->get());
      ends.push_back(SizeOf(LedgerFiles(dir.path(), ".log").back()));
    }
    states.push_back(script.Expected());
    REQUIRE(PollUntil(kPatienceMs,
                      [&] { return WitnessOf(dir.path()).batch_number >= witnessed_min; }));
  }
  void CopyTo(const TempDir& to) const {
    fs::remove_all(to.Sub("ledger"));
    fs::copy(dir.Sub("ledger"), to.Sub("ledger"));
  }

  const TempDir dir;
  LedgerScript script{61};
  std::vector<Dump> states;    // By the number of the last batch.
  std::vector<uint64_t> ends;  // Of each batch in its log.
};

// One log has all batches.
struct OneLog : Unsynced {
  OneLog() : Unsynced(kBatches, 6, 8 * 1024 * 1024) {}

  static constexpr int kBatches = 12;
  const std::string name = fs::path(LedgerFiles(dir.path(), ".log").back()).filename();
};

// The bytes of its files, but for RocksDB's words.
std::map<std::string, std::string> LedgerOf(const TempDir& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(dir.Sub("ledger"))) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("LOG")) files[name] = ReadFileToString(entry.path());
  }
  return files;
}

// A reader beside a server that has not got further than its lock finds what one at rest does.
void CheckWhileOneStarts(const std::string& data_dir,
                         const Result<std::unique_ptr<LedgerReader>>& at_rest) {
  const auto lock = LedgerLock::Take(data_dir);
  REQUIRE(lock.ok());
  const auto reader = LedgerReader::Open(data_dir);
  CAPTURE(reader.status().ToString());
  CAPTURE(at_rest.status().ToString());
  REQUIRE(reader.ok() == at_rest.ok());
  CHECK(reader.status().message() == at_rest.status().message());
  if (!reader.ok()) return;
  CHECK((*reader)->mode() == ReadMode::kBesideServer);
  CHECK(((*reader)->notes() == (*at_rest)->notes()));
  CHECK(DifferenceOf(DumpOf(reader->get()), DumpOf(at_rest->get())) == "");
}

// The last batch of what readers and servers find, which is the same, also at a second start, and a
// whole beginning; nothing if they refuse it, and then it is as it was.
std::optional<uint64_t> Found(const Unsynced& ledger, const TempDir& dir) {
  const auto before = LedgerOf(dir);
  auto reader = LedgerReader::Open(dir.path());
  CheckWhileOneStarts(dir.path(), reader);
  auto store = RocksStore::Open(dir.path(), TinyOptions());
  CAPTURE(store.status().ToString());
  CHECK(reader.ok() == store.ok());
  if (!store.ok() || !reader.ok()) {
    CHECK(store.status().code() == StatusCode::kCorruption);
    CHECK((LedgerOf(dir) == before));
    return std::nullopt;
  }
  const Dump dump = DumpOf(reader->get());
  const uint64_t batch = BatchNumberOf(dump);
  REQUIRE(batch < ledger.states.size());
  CHECK(DifferenceOf(dump, ledger.states[batch]) == "");
  CHECK(DifferenceOf(DumpOf(store->get()), dump) == "");
  // What a crash before Accept leaves.
  store->reset();
  const auto again = RocksStore::Open(dir.path(), TinyOptions());
  REQUIRE_MESSAGE(again.ok(), again.status().ToString());
  CHECK(DifferenceOf(DumpOf(again->get()), dump) == "");
  CHECK((*again)->Accept().ok());
  CHECK(WitnessOf(dir.path()).batch_number == batch);
  return batch;
}

TEST_CASE("of a log that was not synced, damage at any byte ends the ledger before its batch") {
  const OneLog ledger;
  const TempDir dir;
  ledger.CopyTo(dir);
  constexpr uint64_t kWitnessed = 4;
  ledger::Witness witness = WitnessOf(dir.path());
  witness.batch_number = kWitnessed;
  REQUIRE(witness.unsynced);
  const std::string path = dir.Sub("ledger/" + ledger.name);
  const std::string whole = ReadFileToString(path);
  const auto files = rocksdb::FileSystem::Default();
  uint64_t batch = 0;  // The last that is whole.
  for (const uint64_t at : testing::SampleOf(whole.size(), 400)) {
    while (batch < ledger.ends.size() && ledger.ends[batch] <= at) ++batch;
    for (const int mask : {0x01, 0xff}) {
      FlipByte(path, at, mask);
      LogEnd end;
      REQUIRE(FindLogEnd(files.get(), dir.Sub("ledger"), witness, witness.floor, &end).ok());
      const bool last = batch + 1 == ledger.ends.size();
      CAPTURE(at);
      // Of the last batch, one that seems cut short is a batch that was being written.
      if (!last) CHECK(end.early == (batch >= kWitnessed));
      if (end.early) CHECK(end.batch == batch);
      LogViews views(files, LogViews::State::kAtRest);
      views.Hide(end.hidden);
      uint64_t size = 0;
      const auto sized = views.GetFileSize(path, {}, &size, nullptr);
      CHECK(sized.ok() == (batch >= kWitnessed || last));
      if (sized.ok()) CHECK(size == (batch == 0 ? 0 : ledger.ends[batch - 1]));
      FlipByte(path, at, mask);
    }
  }
}

TEST_CASE("a ledger whose log was not synced opens with the batches before the damage") {
  const OneLog ledger;
  constexpr uint64_t kWitnessed = 4;
  const std::string whole = ReadFileToString(ledger.dir.Sub("ledger/" + ledger.name));
  size_t opened = 0;
  size_t refused = 0;
  const std::vector<uint64_t> batches = testing::SampleOf(ledger.ends.size(), 4);
  for (const uint64_t batch : batches) {
    CAPTURE(batch);
    const uint64_t begin = batch == 0 ? 0 : ledger.ends[batch - 1];
    for (const uint64_t at : {begin, begin + 9, ledger.ends[batch] - 1}) {
      for (const bool unsynced : {true, false}) {
        const TempDir dir;
        ledger.CopyTo(dir);
        Witness(dir.path(), kWitnessed, unsynced);
        FlipByte(dir.Sub("ledger/" + ledger.name), at, 0x40);
        const auto found = Found(ledger, dir);
        if (batch + 1 < ledger.ends.size()) {
          CHECK(found.has_value() == (unsynced && batch >= kWitnessed));
        }
        if (found.has_value()) CHECK(*found == batch);
        ++(found.has_value() ? opened : refused);
      }
    }
  }
  CHECK(opened > batches.size());
  CHECK(refused > 2 * batches.size());
}

TEST_CASE("a witness that is damaged, or of an older version, forgives nothing") {
  const OneLog ledger;
  const TempDir dir;
  ledger.CopyTo(dir);
  FlipByte(dir.Sub("ledger/" + ledger.name), ledger.ends[6] + 9, 0x40);
  const std::string witness = dir.Sub("ledger/witness");
  const std::string whole = ReadFileToString(witness);
  SUBCASE("none") { fs::remove(witness); }
  SUBCASE("damaged") { WriteStringToFile(witness, std::string(whole.size(), 'x')); }
  SUBCASE("older") {
    const ledger::Witness now = WitnessOf(dir.path());
    std::string slot = '\1' + ledger::EncodeWitnessSlot(now).substr(1);
    slot.resize(ledger::kWitnessSlotBytesV1 - sizeof(uint32_t));
    AppendBigEndian(&slot, Crc32c(slot));
    std::string bytes(whole.size(), '\0');
    bytes.replace(now.sequence % 2 * ledger::kWitnessSlotStride, slot.size(), slot);
    WriteStringToFile(witness, bytes);
    CHECK(WitnessOf(dir.path()).batch_number == now.batch_number);
  }
  CHECK_FALSE(Found(ledger, dir).has_value());
}

TEST_CASE("the end that was found is told, and what followed does not come back") {
  const OneLog ledger;
  const TempDir dir;
  ledger.CopyTo(dir);
  const std::string path = dir.Sub("ledger/" + ledger.name);
  FlipByte(path, ledger.ends[5] + 9, 0x40);
  const std::string torn = ReadFileToString(path);
  for (const Durability durability : {Durability::kSync, Durability::kNone}) {
    RocksStoreOptions options = TinyOptions();
    options.durability = durability;
    LedgerScript other(62);
    uint64_t last = 0;
    {
      const auto store = RocksStore::Open(dir.path(), options);
      REQUIRE_MESSAGE(store.ok(), store.status().ToString());
      last = BatchNumberOf(DumpOf(store->get()));
      const bool first = durability == Durability::kSync;
      REQUIRE((*store)->notes().size() == (first ? 1 : 0));
      CHECK((*store)->MayLackBatches() == first);
      if (first) {
        CHECK(last == 6);
        const std::string said = (*store)->notes()[0];
        CAPTURE(said);
        CHECK(said.find("ends with batch 6, at byte " + std::to_string(ledger.ends[5]) + " of " +
                        path) != std::string::npos);
      }
      ledger::CommitBatch batch;
      for (uint64_t number = 1; number <= last; ++number) other.NextBatch(1, &batch);
      other.NextBatch(3, &batch);
      REQUIRE((*store)->Commit(batch).ok());
    }
    // The deletion of the old log did not reach the disk.
    CHECK_FALSE(fs::exists(path));
    WriteStringToFile(path, torn);
    CHECK(WitnessOf(dir.path()).unsynced == (durability != Durability::kSync));
    auto reader = LedgerReader::Open(dir.path());
    REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
    CHECK(BatchNumberOf(DumpOf(reader->get())) == last + 1);
    CHECK((*reader)->notes().empty());
    // Nor does it come back in a copy.
    const TempDir copy;
    fs::create_directory(copy.Sub("ledger"));
    REQUIRE((*reader)->CopyTo(copy.Sub("ledger"), false).ok());
    auto copied = LedgerReader::Open(copy.path());
    REQUIRE_MESSAGE(copied.ok(), copied.status().ToString());
    CHECK(BatchNumberOf(DumpOf(copied->get())) == last + 1);
  }
}

TEST_CASE(
    "what was not synced may be lacking at each start until a batch is there that knows of it") {
  const OneLog ledger;
  for (const Durability durability : {Durability::kSync, Durability::kNone}) {
    CAPTURE(static_cast<int>(durability));
    const TempDir dir;
    ledger.CopyTo(dir);
    RocksStoreOptions options = TinyOptions();
    options.durability = durability;
    const auto open = [&] {
      auto store = RocksStore::Open(dir.path(), options);
      REQUIRE_MESSAGE(store.ok(), store.status().ToString());
      return *std::move(store);
    };
    // Killed before the first commit, and ended in order before it.
    for (const bool close : {false, true, false}) {
      const auto store = open();
      CHECK(store->MayLackBatches());
      CHECK(store->Accept().ok());
      if (close) CHECK(store->Close().ok());
    }
    LedgerScript script = ledger.script;
    {
      const auto store = open();
      CHECK(store->MayLackBatches());
      CommitMany(&script, 2, 3, store.get());
    }
    const bool unsynced = durability != Durability::kSync;
    CHECK(WitnessOf(dir.path()).unsynced == unsynced);
    {
      const auto store = open();
      CHECK(store->MayLackBatches() == unsynced);
      CommitMany(&script, 2, 3, store.get());
      CHECK(store->Close().ok());
    }
    CHECK_FALSE(WitnessOf(dir.path()).unsynced);
    const auto store = open();
    CHECK_FALSE(store->MayLackBatches());
    CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
  }
}

TEST_CASE("a first batch that is synced ends at once what may be forgiven") {
  const OneLog ledger;
  const TempDir dir;
  ledger.CopyTo(dir);
  RocksStoreOptions options = TinyOptions();
  options.durability = Durability::kSync;
  const auto store = RocksStore::Open(dir.path(), options);
  REQUIRE(store.ok());
  LedgerScript script = ledger.script;
  CommitMany(&script, 1, 3, store->get());
  const std::string bytes = ReadFileToString(dir.Sub("ledger/witness"));
  for (size_t slot = 0; slot < ledger::kWitnessSlots; ++slot) {
    CAPTURE(slot);
    const auto said = ledger::DecodeWitnessSlot(std::string_view{bytes}.substr(
        slot * ledger::kWitnessSlotStride, ledger::kWitnessSlotBytes));
    REQUIRE(said.has_value());
    CHECK_FALSE(said->unsynced);
    CHECK(said->batch_number == script.batch_number());
  }
}

TEST_CASE("with a witness that cannot be read nobody knows whether batches are lacking") {
  const TempDir dir;
  LedgerScript script(3);
  {
    const auto store = RocksStore::Open(dir.path(), {});
    REQUIRE(store.ok());
    CommitMany(&script, 2, 3, store->get());
  }
  CHECK_FALSE((*RocksStore::Open(dir.path(), {}))->MayLackBatches());
  WriteStringToFile(dir.Sub("ledger/witness"), std::string(ledger::kWitnessFileBytes, 'x'));
  CHECK((*RocksStore::Open(dir.path(), {}))->MayLackBatches());
}

TEST_CASE("a copy of a ledger that ends early ends there, too") {
  const OneLog ledger;
  const TempDir dir;
  ledger.CopyTo(dir);
  FlipByte(dir.Sub("ledger/" + ledger.name), ledger.ends[5] + 9, 0x40);
  auto reader = LedgerReader::Open(dir.path());
  REQUIRE(reader.ok());
  const TempDir copy;
  fs::create_directory(copy.Sub("ledger"));
  REQUIRE((*reader)->CopyTo(copy.Sub("ledger"), false).ok());
  auto copied = LedgerReader::Open(copy.path());
  REQUIRE_MESSAGE(copied.ok(), copied.status().ToString());
  CHECK(DifferenceOf(DumpOf(copied->get()), ledger.states[6]) == "");
}

// Three logs have the batches; the disk got them in any order.
TEST_CASE("logs behind one that is gone, or not whole, are left out") {
  const OneLog ledger;
  const std::string whole = ReadFileToString(ledger.dir.Sub("ledger/" + ledger.name));
  REQUIRE(whole.size() < LogScan::kBlockBytes);
  const uint64_t number = LogNumber(ledger.name);
  const auto path = [&](const TempDir& dir, uint64_t log) {
    const std::string digits = std::to_string(number + log);
    return dir.Sub("ledger/" + std::string(6 - digits.size(), '0') + digits + ".log");
  };
  for (const uint64_t lost : {0, 1, 2}) {
    for (const bool unsynced : {true, false}) {
      for (const std::string how : {"gone", "empty", "cut short", "damaged", "without its end"}) {
        CAPTURE(lost);
        CAPTURE(unsynced);
        CAPTURE(how);
        const TempDir dir;
        ledger.CopyTo(dir);
        Witness(dir.path(), 2, unsynced);
        const std::vector<uint64_t> begins = {0, ledger.ends[3], ledger.ends[7], whole.size()};
        for (size_t log = 0; log < 3; ++log) {
          WriteStringToFile(path(dir, log),
                            whole.substr(begins[log], begins[log + 1] - begins[log]));
        }
        const std::string bad = path(dir, lost);
        uint64_t batch = lost * 4;
        if (how == "gone") fs::remove(bad);
        if (how == "empty") fs::resize_file(bad, 0);
        if (how == "cut short") fs::resize_file(bad, SizeOf(bad) - 3);
        if (how == "damaged") FlipByte(bad, SizeOf(bad) - 3, 0x10);
        if (how == "without its end") {
          fs::resize_file(bad, ledger.ends[batch + 2] - begins[lost]);
        }
        const bool whole_log = how == "gone" || how == "empty";
        if (!whole_log) batch += 3;
        const auto found = Found(ledger, dir);
        if (lost < 2) {
          CHECK(found.has_value() == (unsynced && batch >= 2));
        }
        if (found.has_value()) CHECK(*found == batch);
      }
    }
  }
}

// RocksDB syncs the logs before it names data files of what they have, so these cases are not what
// a crash leaves but a disk that forgets: the data files know better.
TEST_CASE("logs that are damaged before what data files have end no ledger") {
  const Unsynced ledger(90, 60, kTinyBufferBytes, 11);
  const std::vector<std::string> logs = LedgerFiles(ledger.dir.path(), ".log");
  REQUIRE(logs.size() > 3);
  size_t opened = 0;
  size_t refused = 0;
  const size_t parts = testing::Whole() ? 6 : 3;
  for (const std::string& log : logs) {
    CAPTURE(log);
    const std::string name = fs::path(log).filename();
    std::vector<uint64_t> places = PayloadOffsets(log);
    for (size_t i = 0; i <= places.size(); i += 1 + places.size() / parts) {
      const TempDir dir;
      ledger.CopyTo(dir);
      Witness(dir.path(), 1, true);
      const std::string path = dir.Sub("ledger/" + name);
      if (i == places.size()) {
        fs::remove(path);
      } else {
        FlipByte(path, places[i], 0x04);
      }
      const auto found = Found(ledger, dir);
      ++(found.has_value() ? opened : refused);
    }
  }
  CHECK(refused > 2);
  CHECK(opened > 0);
  MESSAGE(opened, " opened, ", refused, " refused");
}

TEST_CASE("what RocksDB has synced for a flush is witnessed") {
  const Unsynced ledger(90, 60, kTinyBufferBytes, 11);
  CHECK(WitnessOf(ledger.dir.path()).batch_number < 90);
}

}  // namespace
}  // namespace nowcalls::store
