// AppendMemtable beside RocksDB's own skiplist: the same changes give the same database.
#include "store/memtable/append_memtable.h"

#include <doctest/doctest.h>
#include <rocksdb/db.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "store/memtable/memtable_items.h"
#include "support/sample.h"
#include "support/temp_dir.h"

namespace nowcalls::store {
namespace {

using testing::TempDir;
using RowList = std::vector<std::pair<std::string, std::string>>;

rocksdb::Options OptionsWith(std::shared_ptr<rocksdb::MemTableRepFactory> memtable) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.allow_concurrent_memtable_write = false;
  options.flush_verify_memtable_count = false;
  options.memtable_factory = std::move(memtable);
  return options;
}

class Database {
 public:
  Database(std::string path, std::shared_ptr<rocksdb::MemTableRepFactory> memtable)
      : path_(std::move(path)), options_(OptionsWith(std::move(memtable))) {
    Open();
  }
  void Open() {
    db_.reset();
    rocksdb::DB* opened = nullptr;
    REQUIRE(rocksdb::DB::Open(options_, path_, &opened).ok());
    db_.reset(opened);
  }
  rocksdb::DB& db() { return *db_; }

  std::unique_ptr<rocksdb::Iterator> NewIterator() {
    return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(rocksdb::ReadOptions()));
  }
  // From the first key at or behind `from` on.
  RowList Forward(const std::string& from) {
    RowList rows;
    const auto it = NewIterator();
    for (it->Seek(from); it->Valid(); it->Next()) {
      rows.emplace_back(it->key().ToString(), it->value().ToString());
    }
    return rows;
  }
  // From the last key at or before `from` back.
  RowList Backward(const std::string& from) {
    RowList rows;
    const auto it = NewIterator();
    for (it->SeekForPrev(from); it->Valid(); it->Prev()) {
      rows.emplace_back(it->key().ToString(), it->value().ToString());
    }
    return rows;
  }

 private:
  const std::string path_;
  const rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
};

// Lengths around the 16 bytes that are compared as integers, and many equal beginnings.
std::string RandomKey(Prng* prng) {
  constexpr uint64_t kLengthMax = 20;
  std::string key(prng->Below(2) == 0 ? 16 : prng->Below(kLengthMax + 1), '\0');
  for (size_t i = 0; i < key.size(); ++i) {
    if (i == 0 || i + 2 >= key.size()) key[i] = static_cast<char>(prng->Below(4) * 85);
  }
  return key;
}

// Puts and single-deletes keys once each in turn, as a ledger does, and overwrites and deletes
// others.
class RandomChanges {
 public:
  RandomChanges(uint64_t seed, std::vector<Database*> databases)
      : prng_(seed), databases_(std::move(databases)) {}

  Prng& prng() { return prng_; }

  void Step() {
    const std::string key = RandomKey(&prng_);
    if (prng_.Below(2) == 0) {
      const std::string once = "1" + key;
      if (live_.erase(once) > 0) {
        ForEach([&](rocksdb::DB* db) { return db->SingleDelete({}, once); });
      } else {
        live_.insert(once);
        Put(once);
      }
    } else if (prng_.Below(3) == 0) {
      ForEach([&](rocksdb::DB* db) { return db->Delete({}, key); });
    } else {
      Put("2" + key);
      Put(key);
    }
  }
  void Flush() {
    ForEach([](rocksdb::DB* db) { return db->Flush({}); });
  }

 private:
  void Put(const std::string& key) {
    const std::string value = std::to_string(prng_.Next());
    ForEach([&](rocksdb::DB* db) { return db->Put({}, key, value); });
  }
  template <typename Change>
  void ForEach(Change change) {
    for (Database* database : databases_) REQUIRE(change(&database->db()).ok());
  }

  Prng prng_;
  const std::vector<Database*> databases_;
  std::set<std::string> live_;
};

TEST_CASE("random changes read the same as with a skiplist, in memory, flushed and reopened") {
  const int rounds = testing::Whole() ? 60 : 20;
  for (const uint64_t seed : testing::SampleOf(5, 2)) {
    CAPTURE(seed);
    const TempDir dir;
    Database ours(dir.Sub("ours"), std::make_shared<AppendMemtableFactory>());
    Database theirs(dir.Sub("theirs"), std::make_shared<rocksdb::SkipListFactory>());
    RandomChanges changes(seed, {&ours, &theirs});
    for (int round = 0; round < rounds; ++round) {
      for (uint64_t n = changes.prng().Below(200); n > 0; --n) changes.Step();
      const std::string from = std::to_string(changes.prng().Below(3)) + RandomKey(&changes.prng());
      REQUIRE(ours.Forward("") == theirs.Forward(""));
      REQUIRE(ours.Forward(from) == theirs.Forward(from));
      REQUIRE(ours.Backward(from) == theirs.Backward(from));
      REQUIRE(ours.Backward("\xff") == theirs.Backward("\xff"));
      std::string our_value;
      std::string their_value;
      const bool found = ours.db().Get({}, from, &our_value).ok();
      REQUIRE(found == theirs.db().Get({}, from, &their_value).ok());
      REQUIRE(our_value == their_value);
      if (changes.prng().Below(6) == 0) changes.Flush();
      if (changes.prng().Below(12) == 0) {
        ours.Open();
        theirs.Open();
      }
    }
  }
}

TEST_CASE("an iterator shows what was there when it was made, whatever comes or is flushed later") {
  const TempDir dir;
  Database ours(dir.path(), std::make_shared<AppendMemtableFactory>());
  for (const char* key : {"a", "b", "c"}) REQUIRE(ours.db().Put({}, key, key).ok());
  const auto before = ours.NewIterator();
  before->SeekToFirst();
  REQUIRE(ours.db().SingleDelete({}, "b").ok());
  REQUIRE(ours.db().Put({}, "bb", "new").ok());
  const auto between = ours.NewIterator();
  REQUIRE(ours.db().Flush({}).ok());
  std::string seen;
  for (; before->Valid(); before->Next()) seen += before->key().ToString() + " ";
  CHECK(seen == "a b c ");
  seen.clear();
  for (between->SeekToFirst(); between->Valid(); between->Next()) {
    seen += between->key().ToString() + " ";
  }
  CHECK(seen == "a bb c ");
}

TEST_CASE("what was put and single-deleted before a flush does not reach a data file") {
  const TempDir dir;
  Database ours(dir.path(), std::make_shared<AppendMemtableFactory>());
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "key " + std::to_string(i);
    REQUIRE(ours.db().Put({}, key, "value").ok());
    if (i >= 10) REQUIRE(ours.db().SingleDelete({}, key).ok());
  }
  REQUIRE(ours.db().Flush({}).ok());
  std::vector<rocksdb::LiveFileMetaData> files;
  ours.db().GetLiveFilesMetaData(&files);
  REQUIRE(files.size() == 1);
  CHECK(files[0].num_entries == 10);
  CHECK(ours.Forward("").size() == 10);
}

TEST_CASE("readers beside the writer see a prefix of what it wrote") {
  const TempDir dir;
  Database ours(dir.path(), std::make_shared<AppendMemtableFactory>());
  constexpr int kKeys = 20'000;
  std::thread writer([&] {
    for (int i = 0; i < kKeys; ++i) {
      char key[16];
      snprintf(key, sizeof(key), "%08d", i);
      if (!ours.db().Put({}, key, "").ok()) return;
    }
  });
  size_t rows = 0;
  bool ordered = true;
  while (rows < kKeys && ordered) {
    const RowList seen = ours.Forward("");
    ordered = seen.size() >= rows;
    rows = seen.size();
    ordered &= rows == 0 || std::stoul(seen.back().first) == rows - 1;
  }
  writer.join();
  CHECK(ordered);
  CHECK(rows == kKeys);
}

}  // namespace
}  // namespace nowcalls::store
