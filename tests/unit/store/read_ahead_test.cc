#include "store/read_ahead.h"

#include <doctest/doctest.h>
#include <rocksdb/iterator.h>

#include <string>

#include "nowcalls/status.h"

namespace nowcalls::store {
namespace {

// As many rows as it is told, then a failure if it is told so. Keys and values have all sizes.
class Rows : public rocksdb::Iterator {
 public:
  Rows(size_t rows, bool fails) : rows_(rows), fails_(fails) { Make(); }

  bool Valid() const override { return at_ < rows_; }
  void Next() override {
    ++at_;
    Make();
  }
  rocksdb::Slice key() const override { return key_; }
  rocksdb::Slice value() const override { return value_; }
  rocksdb::Status status() const override {
    return !Valid() && fails_ ? rocksdb::Status::Corruption("torn") : rocksdb::Status::OK();
  }
  void Seek(const rocksdb::Slice&) override {}
  void SeekForPrev(const rocksdb::Slice&) override {}
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Prev() override {}

  static std::string KeyOf(size_t at) { return std::string(at % 40, 'k') + std::to_string(at); }
  static std::string ValueOf(size_t at) { return std::string(at % 300, 'v'); }

 private:
  // What it shows is gone with the next.
  void Make() {
    key_ = KeyOf(at_);
    value_ = ValueOf(at_);
  }

  const size_t rows_;
  const bool fails_;
  size_t at_ = 0;
  std::string key_;
  std::string value_;
};

// Rows in the order of the iterator, up to `rows_max`; false: others were shown.
bool Show(ReadAhead* ahead, size_t rows_max, size_t* shown) {
  bool right = true;
  while (const RowBlock* block = ahead->Next()) {
    const Status ended = block->ForEach([&](std::string_view key, std::string_view value) {
      right = right && key == Rows::KeyOf(*shown) && value == Rows::ValueOf(*shown);
      ++*shown;
      return *shown < rows_max ? Status::Ok() : Status::Unavailable("enough");
    });
    if (!ended.ok()) break;
  }
  return right;
}

TEST_CASE("all rows are shown in order, however many blocks they fill") {
  for (const size_t rows : {0, 1, 100, 700, 20'000}) {
    CAPTURE(rows);
    Rows it(rows, false);
    size_t shown = 0;
    {
      ReadAhead ahead(&it);
      CHECK(Show(&ahead, rows + 1, &shown));
      CHECK(ahead.Next() == nullptr);
    }
    CHECK(shown == rows);
    CHECK(it.status().ok());
  }
}

TEST_CASE("rows before a failure are shown, and the iterator has it") {
  Rows it(5'000, true);
  size_t shown = 0;
  {
    ReadAhead ahead(&it);
    CHECK(Show(&ahead, 6'000, &shown));
  }
  CHECK(shown == 5'000);
  CHECK(it.status().IsCorruption());
}

TEST_CASE("who has seen enough need not see the rest") {
  Rows it(1'000'000, false);
  size_t shown = 0;
  {
    ReadAhead ahead(&it);
    CHECK(Show(&ahead, 1'500, &shown));
  }
  CHECK(shown == 1'500);
  CHECK(it.Valid());
}

}  // namespace
}  // namespace nowcalls::store
