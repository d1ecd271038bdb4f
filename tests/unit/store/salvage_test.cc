// What is read of damaged copies, and logs of their sound records.
#include "store/salvage/salvage.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "store/log/log_scan.h"
#include "store/salvage/log_salvage.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

// Counts tokens, and the places that cannot be read.
struct Counter : ledger::EntityVisitor {
  Status OnEntity(const ledger::Entity& entity) override {
    tokens += ledger::As<ledger::Token>(entity) != nullptr ? 1 : 0;
    return {};
  }
  Status OnUnreadable(ledger::Family, Status what) override {
    ++unreadable;
    last = std::move(what);
    return {};
  }
  size_t tokens = 0;
  size_t unreadable = 0;
  Status last;  // What was unreadable.
};

// Tokens of one deadline, as many as fill several blocks, in one data file.
std::string MakeTokens(const std::string& data_dir, size_t tokens) {
  const auto opened = RocksStore::Open(data_dir, {});
  REQUIRE(opened.ok());
  ledger::CommitBatch batch;
  for (size_t i = 1; i <= tokens; ++i) {
    ledger::Token token;
    token.key = {ledger::Family::kTokensLong, kScriptStartMs, TokenId(i * 0x1234567890123)};
    token.flow = FlowId(1);
    token.session = SessionId(1);
    token.count = 1;
    token.fence = Fence(i);
    batch.TokenIssued(token);
  }
  batch.Sealed({1, tokens + 1, 0, tokens, tokens, 0});
  REQUIRE((*opened)->Commit(batch).ok());
  REQUIRE((*opened)->Close().ok());
  std::string largest;
  for (const std::string& file : LedgerFiles(data_dir, ".sst")) {
    if (largest.empty() || SizeOf(file) > SizeOf(largest)) largest = file;
  }
  return largest;
}

TEST_CASE("a copy is read on behind a damaged block, also among tokens of one deadline") {
  constexpr size_t kTokens = 1000;
  const TempDir dir;
  const std::string file = MakeTokens(dir.path(), kTokens);
  REQUIRE(SizeOf(file) > 40'000);
  for (const uint64_t at : {uint64_t{10}, uint64_t{6'000}, uint64_t{30'000}}) {
    FlipByte(file, at, 0x10);
    SalvagedLedger copy(dir.Sub("ledger"), "/the/ledger");
    const StoreError opened = copy.Open();
    REQUIRE_MESSAGE(opened.ok(), opened.what());
    Counter counter;
    CHECK(copy.Load(&counter).ok());
    // It is about the ledger, and without the advice to do what is being done.
    CHECK(counter.last.code() == StatusCode::kCorruption);
    CHECK(counter.last.message().find("/the/ledger/") != std::string::npos);
    CHECK(counter.last.message().find(dir.path()) == std::string::npos);
    CHECK(counter.last.message().find("repair") == std::string::npos);
    CHECK(counter.unreadable == 1);
    CHECK(counter.tokens > kTokens - 100);
    CHECK(counter.tokens < kTokens);
    FlipByte(file, at, 0x10);
  }
}

TEST_CASE("the sound records of a log make a log, and what is between them is told") {
  const TempDir dir;
  LedgerScript script(96);
  {
    const auto store = RocksStore::Open(dir.path(), {});
    REQUIRE(store.ok());
    CommitMany(&script, 30, 60, store->get());
    CommitMany(&script, 1, 3000, store->get());
    CommitMany(&script, 10, 60, store->get());
  }
  const std::string log = LedgerFiles(dir.path(), ".log").back();
  const std::string whole = ReadFileToString(log);
  REQUIRE(whole.size() > 3 * LogScan::kBlockBytes);
  std::vector<uint64_t> batches;
  std::string made;
  std::vector<SkippedBytes> skipped;
  const auto salvage = [&] {
    batches.clear();
    made.clear();
    skipped.clear();
    return SalvageLog(
        log,
        [&](const SalvagedRecord& record) {
          if (record.batch.has_value()) batches.push_back(*record.batch);
          AppendLogRecord(record.bytes, &made);
        },
        [&](const SkippedBytes& bytes) { skipped.push_back(bytes); });
  };
  REQUIRE(salvage().ok());
  CHECK(made == whole);
  CHECK(skipped.empty());
  CHECK(batches.size() == 41);
  for (const uint64_t at : {uint64_t{20}, whole.size() / 3, whole.size() - 3}) {
    CAPTURE(at);
    FlipByte(log, at, 0x04);
    REQUIRE(salvage().ok());
    CHECK(batches.size() == 40);
    REQUIRE(skipped.size() == 1);
    CHECK(skipped[0].begin <= at);
    CHECK(skipped[0].end > at);
    CHECK(made.size() < whole.size());
    FlipByte(log, at, 0x04);
  }
  WriteStringToFile(log, whole + std::string(5000, '\0'));
  REQUIRE(salvage().ok());
  CHECK(made == whole);
  CHECK(skipped.empty());
}

TEST_CASE("a log keeps its batches when a sound record is none") {
  const TempDir dir;
  LedgerScript script(5);
  {
    const auto store = RocksStore::Open(dir.path(), {});
    REQUIRE(store.ok());
    CommitMany(&script, 20, 30, store->get());
  }
  const std::string log = LedgerFiles(dir.path(), ".log").back();
  const std::string whole = ReadFileToString(log);
  for (const std::string& none : {std::string(), std::string("y"), std::string(40, 'y')}) {
    CAPTURE(none);
    std::string bytes = whole;
    AppendLogRecord(none, &bytes);
    WriteStringToFile(log, bytes);
    SalvageReport report;
    const auto salvaged = OpenSalvaged(dir.path(), dir.Sub("scratch"), &report);
    REQUIRE_MESSAGE(salvaged.ok(), salvaged.status().ToString());
    CHECK(DifferenceOf(DumpOf(salvaged->get()), script.Expected()) == "");
    REQUIRE(report.lost.size() == 1);
    CHECK(report.lost[0] == log + ": bytes " + std::to_string(whole.size()) + " to " +
                                std::to_string(bytes.size() - 1) +
                                " are a sound record, but no batch");
    fs::remove_all(dir.Sub("scratch"));
  }
}

}  // namespace
}  // namespace nowcalls::store
