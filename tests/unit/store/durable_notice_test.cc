#include "store/log/durable_notice.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "store/rocks/rocks_store.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

// A notice behind a first batch in log 7.
struct Notice : DurableNotice {
  Notice() {
    Begin(tell);
    OnAppended(7);
    OnSynced(7);
    CHECK(told == 0);  // The name of the log is not on the disk yet.
    End(true);
  }
  int told = 0;
  const std::function<void()> tell = [this] { ++told; };
};

TEST_CASE_FIXTURE(Notice, "a batch is told of once, when the log that got it is synced") {
  Begin(tell);
  OnSynced(7);  // As it was before.
  CHECK(told == 0);
  OnAppended(7);
  CHECK(told == 0);
  OnSynced(7);
  CHECK(told == 1);
  OnSynced(7);
  End(true);
  CHECK(told == 1);
  Begin({});
  OnAppended(7);
  OnSynced(7);
  End(true);
  OnSynced(7);
  CHECK(told == 1);
}

TEST_CASE_FIXTURE(Notice, "the first batch of a log is not told of, whichever logs are synced") {
  Begin(tell);
  OnAppended(8);
  OnSynced(7);
  OnSynced(8);
  CHECK(told == 0);
  SUBCASE("the second is") {
    End(true);
    Begin(tell);
    OnAppended(8);
    OnSynced(7);
    CHECK(told == 0);
    OnSynced(8);
    CHECK(told == 1);
  }
  SUBCASE("nor is one behind a batch of which no more is known than that it failed") {
    End(false);
    Begin(tell);
    OnAppended(8);
    OnSynced(8);
    CHECK(told == 0);
  }
}

TEST_CASE_FIXTURE(Notice, "what other threads do to logs is not told of") {
  const auto elsewhere = [](const std::function<void()>& call) { std::thread(call).join(); };
  Begin(tell);
  elsewhere([this] { OnAppended(7); });
  OnSynced(7);
  CHECK(told == 0);
  OnAppended(7);
  elsewhere([this] { OnSynced(7); });
  CHECK(told == 0);
  OnSynced(7);
  CHECK(told == 1);
}

TEST_CASE("a batch that is told of is what the next load shows, before its commit has ended") {
  const testing::TempDir dir;
  RocksStoreOptions options;
  options.write_buffer_bytes = kTinyBufferBytes;
  const auto store = RocksStore::Open(dir.Sub("data"), options);
  REQUIRE(store.ok());
  LedgerScript script(5);
  int early = 0;
  ledger::CommitBatch batch;
  for (int number = 1; number <= 60; ++number) {
    script.NextBatch(40, &batch);
    int told = 0;
    const Status status = (*store)->CommitTelling(batch, [&] {
      ++told;
      if (number % 10 == 0) CopyLedger(dir.Sub("data"), dir.Sub("killed"));
    });
    REQUIRE_MESSAGE(status.ok(), status.message());
    REQUIRE(told <= 1);
    early += told;
    if (number == 1) CHECK(told == 0);
    if (told == 0 || number % 10 != 0) continue;
    const auto killed = RocksStore::Open(dir.Sub("killed"), options);
    REQUIRE_MESSAGE(killed.ok(), killed.status().message());
    CHECK(DifferenceOf(DumpOf(killed->get()), DumpOf(store->get())) == "");
    std::filesystem::remove_all(dir.Sub("killed"));
  }
  // All but the first of each log.
  CHECK(early > 30);
  CHECK(early < 60);
}

TEST_CASE("without a sync for each batch none is told of") {
  const testing::TempDir dir;
  for (const Durability durability : {Durability::kInterval, Durability::kNone}) {
    RocksStoreOptions options;
    options.durability = durability;
    const auto store =
        RocksStore::Open(dir.Sub(std::to_string(static_cast<int>(durability))), options);
    REQUIRE(store.ok());
    LedgerScript script(5);
    ledger::CommitBatch batch;
    for (int number = 1; number <= 5; ++number) {
      script.NextBatch(10, &batch);
      const auto tell = [] { FAIL("it is not on the disk"); };
      REQUIRE((*store)->CommitTelling(batch, tell).ok());
      REQUIRE((*store)->Sync().ok());
    }
  }
}

}  // namespace
}  // namespace nowcalls::store
