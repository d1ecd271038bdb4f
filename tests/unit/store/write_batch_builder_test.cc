#include "store/rocks/write_batch_builder.h"

#include <doctest/doctest.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nowcalls::store {
namespace {

using ledger::Family;
using rocksdb::Slice;

// Some number takes more than a byte as a varint.
constexpr FamilyNumbers kNumbers = {0, 1, 2, 3, 127, 128, 40'000};

struct Change {
  std::string kind;
  uint32_t family;
  std::string key;
  std::string value;

  bool operator==(const Change&) const = default;
};

// What RocksDB reads in a batch.
class Reading : public rocksdb::WriteBatch::Handler {
 public:
  rocksdb::Status PutCF(uint32_t family, const Slice& key, const Slice& value) override {
    return Add({"put", family, key.ToString(), value.ToString()});
  }
  rocksdb::Status SingleDeleteCF(uint32_t family, const Slice& key) override {
    return Add({"single delete", family, key.ToString(), ""});
  }
  rocksdb::Status DeleteCF(uint32_t family, const Slice& key) override {
    return Add({"delete", family, key.ToString(), ""});
  }
  void LogData(const Slice& blob) override { Add({"log data", 0, blob.ToString(), ""}); }

  std::vector<Change> changes;

 private:
  rocksdb::Status Add(Change change) {
    changes.push_back(std::move(change));
    return rocksdb::Status::OK();
  }
};

uint32_t NumberOf(Family family) { return kNumbers[static_cast<size_t>(family)]; }

// Bytes that differ by place and by size.
std::string BytesOf(size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 7 + size);
  return bytes;
}

TEST_CASE("RocksDB reads what was built, of every size, family and kind") {
  for (const size_t expected_bytes : {size_t{0}, size_t{100}, size_t{1'000'000}}) {
    CAPTURE(expected_bytes);
    WriteBatchBuilder builder(kNumbers, expected_bytes);
    std::vector<Change> built;
    for (size_t size = 0; size <= 300; ++size) {
      const Family family = ledger::kFamilies[size % ledger::kFamilyCount].family;
      const std::string key = BytesOf(size);
      const std::string value = BytesOf(300 - size);
      builder.Put(family, key, value);
      built.push_back({"put", NumberOf(family), key, value});
      builder.SingleDelete(family, key);
      built.push_back({"single delete", NumberOf(family), key, ""});
      builder.Delete(family, value);
      built.push_back({"delete", NumberOf(family), value, ""});
    }
    builder.Put(Family::kMeta, {}, {});
    built.push_back({"put", 0, "", ""});
    builder.LogData(BytesOf(20));
    built.push_back({"log data", 0, BytesOf(20), ""});
    const rocksdb::WriteBatch batch = builder.Finish();
    Reading reading;
    REQUIRE(batch.Iterate(&reading).ok());
    CHECK(batch.Count() == built.size() - 1);
    CHECK((reading.changes == built));
  }
}

TEST_CASE("a batch in which nothing was put is empty") {
  WriteBatchBuilder builder(kNumbers, 1'000);
  const rocksdb::WriteBatch batch = builder.Finish();
  CHECK(batch.Count() == 0);
  CHECK(batch.GetDataSize() == 12);
}

}  // namespace
}  // namespace nowcalls::store
