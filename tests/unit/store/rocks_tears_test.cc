// Ledgers whose log is written over zeros: killed, cut off from power, read while they are written.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "store/log/log_scan.h"
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

// A ledger whose batches are all in its one log, with zeros behind them. Its witness does not know
// of the last one, which was being written when the power was cut.
struct Ledger {
  explicit Ledger(int last_records) {
    Write(last_records);
    WriteStringToFile(dir.Sub("ledger/witness"), witness);
  }
  void Write(int last_records) {
    const auto store = RocksStore::Open(dir.path(), {});
    REQUIRE(store.ok());
    name = fs::path(LedgerFiles(dir.path(), ".log").back()).filename();
    LedgerScript script(81);
    CommitMany(&script, 20, 40, store->get());
    before = script.Expected();
    witness = ReadFileToString(dir.Sub("ledger/witness"));
    begin_of_last = SizeOf(Path(dir));
    CommitMany(&script, 1, last_records, store->get());
    after = script.Expected();
    bytes = ReadFileToString(Path(dir));
  }
  std::string Path(const TempDir& in) const { return in.Sub("ledger/") + name; }

  // A copy with other bytes in its log, and zeros behind them.
  void CopyWith(const std::string& log, const TempDir& to) const {
    fs::remove_all(to.Sub("ledger"));
    fs::copy(dir.Sub("ledger"), to.Sub("ledger"));
    WriteStringToFile(Path(to), log + std::string(bytes.size() + 50'000 - log.size(), '\0'));
  }

  const TempDir dir;
  std::string name;
  std::string bytes;
  std::string witness;
  uint64_t begin_of_last = 0;
  Dump before;
  Dump after;
};

// What readers and servers find, which must be the same, also at a second start.
Dump Found(const std::string& data_dir) {
  auto reader = LedgerReader::Open(data_dir);
  REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
  Dump dump = DumpOf(reader->get());
  for (int start = 0; start < 2; ++start) {
    const auto store = RocksStore::Open(data_dir, {});
    REQUIRE_MESSAGE(store.ok(), store.status().ToString());
    CHECK(DifferenceOf(DumpOf(store->get()), dump) == "");
    if (start == 1) REQUIRE((*store)->Accept().ok());
  }
  CHECK(DifferenceOf(DumpOf(OpenTiny(data_dir).get()), dump) == "");
  return dump;
}

TEST_CASE("a ledger with zeros behind its log is whole") {
  const Ledger ledger(40);
  const TempDir dir;
  ledger.CopyWith(ledger.bytes, dir);
  CHECK(DifferenceOf(Found(dir.path()), ledger.after) == "");
}

TEST_CASE("a ledger whose last batch is written in part opens without it") {
  for (const int records : {60, 1000}) {
    const Ledger ledger(records);
    const uint64_t size = ledger.bytes.size() - ledger.begin_of_last;
    for (uint64_t cut = 1; cut < size; cut += 1 + size / 7) {
      CAPTURE(cut);
      const TempDir dir;
      ledger.CopyWith(ledger.bytes.substr(0, ledger.bytes.size() - cut), dir);
      CHECK(DifferenceOf(Found(dir.path()), ledger.before) == "");
    }
  }
}

TEST_CASE("a ledger whose last batch lacks sectors opens without it") {
  for (const int records : {60, 1000}) {
    const Ledger ledger(records);
    const uint64_t end = ledger.bytes.size();
    constexpr uint64_t kSector = LogScan::kSectorBytes;
    const uint64_t step = ((end - ledger.begin_of_last) / kSector / 8 + 1) * kSector;
    for (uint64_t at = ledger.begin_of_last; at < end; at = (at / kSector * kSector) + step) {
      CAPTURE(at);
      std::string torn = ledger.bytes;
      const uint64_t next = std::min(at / kSector * kSector + kSector, end);
      torn.replace(at, next - at, next - at, '\0');
      const TempDir dir;
      ledger.CopyWith(torn, dir);
      CHECK(DifferenceOf(Found(dir.path()), ledger.before) == "");
    }
  }
}

TEST_CASE("a ledger that lacks a sector of what was acknowledged is refused, and stays as it is") {
  const Ledger ledger(60);
  constexpr uint64_t kSector = LogScan::kSectorBytes;
  for (uint64_t at = 0; at < ledger.begin_of_last - kSector; at += 5 * kSector) {
    CAPTURE(at);
    std::string bad = ledger.bytes;
    bad.replace(at, kSector, kSector, '\0');
    const TempDir dir;
    ledger.CopyWith(bad, dir);
    for (const Status& status :
         {RocksStore::Open(dir.path(), {}).status(), LedgerReader::Open(dir.path()).status()}) {
      CHECK(status.code() == StatusCode::kCorruption);
      CHECK(status.message().find(ledger.Path(dir)) != std::string::npos);
    }
    ledger.CopyWith(ledger.bytes, dir);
    CHECK(DifferenceOf(Found(dir.path()), ledger.after) == "");
  }
}

TEST_CASE("readers see whole batches while a server writes over zeros") {
  constexpr int kBatches = 400;
  const TempDir dir;
  RocksStoreOptions options;
  options.write_buffer_bytes = kTinyBufferBytes;
  const auto store = RocksStore::Open(dir.path(), options);
  REQUIRE(store.ok());
  LedgerScript script(82);
  std::vector<Dump> states = {{}};
  std::vector<ledger::CommitBatch> batches(kBatches);
  for (ledger::CommitBatch& batch : batches) {
    script.NextBatch(30, &batch);
    states.push_back(script.Expected());
  }
  std::atomic<bool> done{false};
  std::atomic<uint64_t> acknowledged{0};
  std::thread writer([&] {
    for (const ledger::CommitBatch& batch : batches) {
      if (!(*store)->Commit(batch).ok()) break;
      acknowledged = batch.number();
    }
    done = true;
  });
  size_t readers = 0;
  for (bool last = false; !last;) {
    last = done;
    const uint64_t least = acknowledged;
    auto reader = LedgerReader::Open(dir.path());
    if (reader.status().code() == StatusCode::kUnavailable) continue;
    CAPTURE(reader.status().ToString());
    CHECK(reader.ok());
    if (!reader.ok()) break;
    const Dump dump = DumpOf(reader->get());
    CHECK(BatchNumberOf(dump) >= least);
    CHECK(DifferenceOf(dump, states[BatchNumberOf(dump)]) == "");
    ++readers;
  }
  writer.join();
  CHECK(acknowledged == kBatches);
  CHECK(readers > 0);
}

}  // namespace
}  // namespace nowcalls::store
