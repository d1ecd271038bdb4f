// What becomes of the deletes of ended tokens.
#include <doctest/doctest.h>
#include <rocksdb/table_properties.h>

#include "store/rocks/tombstone_collector.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

using ledger::Family;
using testing::TempDir;

ledger::Token TokenAt(int64_t deadline_ms, uint64_t id) {
  ledger::Token token;
  token.key = {Family::kTokensShort, deadline_ms, TokenId(id)};
  token.flow = FlowId(1);
  token.session = SessionId(1);
  token.count = 1;
  token.fence = Fence(id);
  return token;
}

struct Entries {
  uint64_t all = 0;
  uint64_t single_deletes = 0;
};

// What the data files of the family of short tokens hold.
Entries EntriesIn(const std::string& data_dir) {
  Entries entries;
  ChangeBare(data_dir, [&](rocksdb::DB* db, auto* handles) {
    for (rocksdb::ColumnFamilyHandle* handle : *handles) {
      if (handle->GetName() != FamilyName(Family::kTokensShort)) continue;
      rocksdb::TablePropertiesCollection files;
      REQUIRE(db->GetPropertiesOfAllTables(handle, &files).ok());
      for (const auto& [name, file] : files) {
        entries.all += file->num_entries;
        const auto found = file->user_collected_properties.find(kTombstonesProperty);
        REQUIRE(found != file->user_collected_properties.end());
        entries.single_deletes += std::stoull(found->second);
      }
    }
  });
  return entries;
}

class Writer {
 public:
  // Goes on behind batch `number`.
  explicit Writer(RocksStore* store, uint64_t number = 0) : store_(*store), number_(number) {}

  void Issue(uint64_t first, uint64_t last) {
    for (uint64_t id = first; id <= last; ++id) batch_.TokenIssued(TokenAt(1000, id));
    Commit();
  }
  void End(uint64_t first, uint64_t last) {
    for (uint64_t id = first; id <= last; ++id) {
      batch_.TokenEnded({Family::kTokensShort, 1000, TokenId(id)}, EndReason::kReleased);
    }
    Commit();
  }

 private:
  void Commit() {
    batch_.Sealed({++number_, 1, 0, 0, 0, 0});
    REQUIRE(store_.Commit(batch_).ok());
    batch_.Clear();
  }

  RocksStore& store_;
  ledger::CommitBatch batch_;
  uint64_t number_;
};

std::unique_ptr<RocksStore> OpenLarge(const std::string& data_dir) {
  auto opened = RocksStore::Open(data_dir, {});
  REQUIRE(opened.ok());
  return *std::move(opened);
}

TEST_CASE("a token that ends before its memtable is flushed leaves nothing in any file") {
  const TempDir dir;
  auto store = OpenLarge(dir.path());
  Writer writer(store.get());
  writer.Issue(1, 1000);
  writer.End(1, 600);
  writer.Issue(2001, 2010);
  writer.End(601, 1000);
  REQUIRE(store->Close().ok());
  const Entries entries = EntriesIn(dir.path());
  CHECK(entries.all == 10);
  CHECK(entries.single_deletes == 0);
}

TEST_CASE("a token kept within a memtable leaves only its last place") {
  const TempDir dir;
  auto store = OpenLarge(dir.path());
  ledger::CommitBatch batch;
  batch.TokenIssued(TokenAt(1000, 1));
  for (int64_t deadline_ms = 1001; deadline_ms <= 1100; ++deadline_ms) {
    batch.TokenKept({Family::kTokensShort, deadline_ms - 1, TokenId(1)}, TokenAt(deadline_ms, 1));
  }
  batch.Sealed({1, 1, 0, 0, 0, 0});
  REQUIRE(store->Commit(batch).ok());
  REQUIRE(store->Close().ok());
  CHECK(EntriesIn(dir.path()).all == 1);
}

TEST_CASE("files know how many tombstones they hold") {
  const TempDir dir;
  auto store = OpenLarge(dir.path());
  Writer(store.get()).Issue(1, 1000);
  REQUIRE(store->Close().ok());
  store = OpenLarge(dir.path());
  Writer(store.get(), 1).End(1, 100);
  REQUIRE(store->Close().ok());
  const Entries entries = EntriesIn(dir.path());
  CHECK(entries.all == 1100);
  CHECK(entries.single_deletes == 100);
}

TEST_CASE("a file asks for compaction when tombstones are many and half of it") {
  const auto factory = NewTombstoneCollectorFactory();
  const auto needs = [&](uint64_t puts, uint64_t single_deletes) {
    const std::unique_ptr<rocksdb::TablePropertiesCollector> collector(
        factory->CreateTablePropertiesCollector({}));
    for (uint64_t i = 0; i < puts; ++i) {
      REQUIRE(collector->AddUserKey("k", "v", rocksdb::kEntryPut, 1, 1).ok());
    }
    for (uint64_t i = 0; i < single_deletes; ++i) {
      REQUIRE(collector->AddUserKey("k", "", rocksdb::kEntrySingleDelete, 1, 1).ok());
    }
    return collector->NeedCompact();
  };
  CHECK(needs(0, kTombstonesDenseMin));
  CHECK(needs(kTombstonesDenseMin, kTombstonesDenseMin));
  CHECK_FALSE(needs(kTombstonesDenseMin + 1, kTombstonesDenseMin));
  CHECK_FALSE(needs(0, kTombstonesDenseMin - 1));
  CHECK_FALSE(needs(10'000, 0));
}

}  // namespace
}  // namespace nowcalls::store
