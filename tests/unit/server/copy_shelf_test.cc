// Pieces of a copy, and its end.
#include "server/cluster/copy_shelf.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

struct Shelf {
  Shelf() {
    REQUIRE(PrepareCopies(dir.path()).ok());
    std::filesystem::create_directories(copies.dir() + "/ledger");
    testing::WriteStringToFile(copies.dir() + "/ledger/1.sst", content);
  }
  // A piece that is not in memory comes when it is asked for again.
  Result<std::string_view> Read(const std::string& file, uint64_t offset) {
    Result<std::string_view> piece = std::string_view();
    testing::PollUntil(testing::kPatienceMs, [&] {
      piece = copies.Read(file, offset, now_ms);
      return piece.status().code() != StatusCode::kResourceExhausted;
    });
    return piece;
  }

  testing::TempDir dir;
  CopyShelf copies{dir.path()};
  const std::string content = std::string(CopyShelf::kPieceBytesMax, 'a') + "b";
  int64_t now_ms = 1'000'000;
};

TEST_CASE("a file of a copy comes in pieces, and a piece without bytes ends it") {
  Shelf shelf;
  std::string read;
  for (;;) {
    const Result<std::string_view> piece = shelf.Read("ledger/1.sst", read.size());
    REQUIRE(piece.ok());
    if (piece->empty()) break;
    CHECK(piece->size() <= CopyShelf::kPieceBytesMax);
    read += *piece;
  }
  CHECK(read == shelf.content);
  CHECK(shelf.Read("ledger/2.sst", 0).status().code() == StatusCode::kNotFound);
  CHECK(shelf.Read("ledger/1.sst", UINT64_MAX).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("pieces of the next copy are not those of the one before") {
  Shelf shelf;
  REQUIRE(shelf.Read("ledger/1.sst", 0).ok());
  REQUIRE(PrepareCopies(shelf.dir.path()).ok());
  CHECK(shelf.Read("ledger/1.sst", 0).status().code() == StatusCode::kNotFound);
  std::filesystem::create_directories(shelf.copies.dir() + "/ledger");
  testing::WriteStringToFile(shelf.copies.dir() + "/ledger/1.sst", "new");
  CHECK(*shelf.Read("ledger/1.sst", 0) == "new");
}

TEST_CASE("a copy that is taken is not replaced, and one that nobody takes any more goes") {
  Shelf shelf;
  TestLoop loop;
  CHECK_FALSE(shelf.copies.busy(shelf.now_ms));
  REQUIRE(shelf.Read("ledger/1.sst", 0).ok());
  CHECK(shelf.copies.busy(shelf.now_ms + CopyShelf::kTakenMsMax - 1));
  CHECK_FALSE(shelf.copies.busy(shelf.now_ms + CopyShelf::kTakenMsMax));
  shelf.copies.DropUnused(loop.get(), shelf.now_ms + CopyShelf::kKeptMsMax - 1);
  CHECK(std::filesystem::exists(shelf.copies.dir()));
  const int64_t later_ms = shelf.now_ms + CopyShelf::kKeptMsMax;
  shelf.copies.DropUnused(loop.get(), later_ms);
  CHECK(shelf.copies.busy(later_ms));
  CHECK(loop.RunUntil([&] { return !shelf.copies.busy(later_ms); }));
  CHECK_FALSE(std::filesystem::exists(shelf.copies.dir()));
}

}  // namespace
}  // namespace nowcalls::server
