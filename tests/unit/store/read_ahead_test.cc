#include "store/rocks/read_ahead.h"

#include <doctest/doctest.h>
#include <rocksdb/iterator.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// What ReadAhead shows of one source, and what the iterator came to.
struct Source {
  size_t rows = 0;
  bool fails = false;
  size_t shown = 0;
  rocksdb::Status status = {};
};

// Shows up to `rows_max` rows; false: others were shown than are there, or in another order.
bool Show(std::vector<Source>* sources, size_t rows_max) {
  std::vector<ReadAhead::Open> opens;
  for (const Source& source : *sources) {
    opens.emplace_back([&source] { return std::make_unique<Rows>(source.rows, source.fails); });
  }
  ReadAhead ahead(std::move(opens));
  size_t all = 0;
  size_t last = 0;
  bool right = true;
  while (const ReadAhead::Part* part = ahead.Next()) {
    Source& source = (*sources)[part->source];
    right = right && part->source >= last && source.status.ok();
    last = part->source;
    const Status ended = part->rows.ForEach([&](std::string_view key, std::string_view value) {
      right = right && key == Rows::KeyOf(source.shown) && value == Rows::ValueOf(source.shown);
      ++source.shown;
      return ++all < rows_max ? Status::Ok() : Status::Unavailable("enough");
    });
    if (!ended.ok()) return right;
    source.status = part->status;
  }
  return right && ahead.Next() == nullptr;
}

TEST_CASE("all rows are shown in order, however many parts they fill") {
  for (const size_t rows : {0, 1, 100, 700, 20'000, 200'000}) {
    CAPTURE(rows);
    std::vector<Source> sources = {{.rows = rows}};
    CHECK(Show(&sources, SIZE_MAX));
    CHECK(sources[0].shown == rows);
    CHECK(sources[0].status.ok());
  }
}

TEST_CASE("sources are shown one behind the other, also empty ones, or none") {
  std::vector<Source> sources = {{}, {.rows = 5}, {.rows = 9'000}, {}, {.rows = 3'000}, {}};
  CHECK(Show(&sources, SIZE_MAX));
  for (const Source& source : sources) CHECK(source.shown == source.rows);
  std::vector<Source> none;
  CHECK(Show(&none, SIZE_MAX));
}

TEST_CASE("rows before a failure are shown, then the failure, then the next source") {
  std::vector<Source> sources = {
      {.rows = 5'000, .fails = true}, {.rows = 10}, {.rows = 0, .fails = true}, {.rows = 20}};
  CHECK(Show(&sources, SIZE_MAX));
  for (const Source& source : sources) {
    CHECK(source.shown == source.rows);
    CHECK(source.status.IsCorruption() == source.fails);
  }
}

TEST_CASE("who has seen enough need not see the rest") {
  std::vector<Source> sources = {{.rows = SIZE_MAX}, {.rows = 1}};
  CHECK(Show(&sources, 1'500));
  CHECK(sources[0].shown == 1'500);
  CHECK(sources[1].shown == 0);
}

}  // namespace
}  // namespace nowcalls::store
