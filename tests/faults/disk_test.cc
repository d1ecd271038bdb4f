// What the model of a disk leaves: all that it must, nothing that it cannot, and each of the rest.
#include "faults/disk.h"

#include <doctest/doctest.h>

#include <set>

namespace nowcalls::faults {
namespace {

using Kind = DiskChange::Kind;

constexpr uint64_t kSeeds = 3'000;

DiskChange Make(const std::string& name, uint64_t file) {
  return {Kind::kMake, file, 0, name, {}, {}};
}
DiskChange Write(uint64_t file, uint64_t offset, const std::string& bytes) {
  return {Kind::kWrite, file, offset, {}, {}, bytes};
}
DiskChange Truncate(uint64_t file, uint64_t size) {
  return {Kind::kTruncate, file, size, {}, {}, {}};
}
DiskChange Sync(uint64_t file) { return {Kind::kSyncFile, file, 0, {}, {}, {}}; }
DiskChange Rename(uint64_t file, const std::string& from, const std::string& to) {
  return {Kind::kRename, file, 0, from, to, {}};
}
DiskChange Delete(const std::string& name) { return {Kind::kDelete, 0, 0, name, {}, {}}; }
DiskChange SyncDirectory() { return {}; }

std::set<DiskImage> AllLeft(const Disk& disk) {
  std::set<DiskImage> images;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) images.insert(disk.CutPower(seed));
  return images;
}

Disk After(const DiskImage& image, const std::vector<DiskChange>& changes) {
  Disk disk(image);
  for (const DiskChange& change : changes) disk.Apply(change);
  return disk;
}

TEST_CASE("what was synced is always there, with its name") {
  const Disk disk = After({{"a", "old"}}, {Make("b", 2), Write(2, 0, "new"), Sync(2),
                                           SyncDirectory(), Write(1, 0, "xyz!"), Sync(1)});
  CHECK(AllLeft(disk) == std::set<DiskImage>{{{"a", "xyz!"}, {"b", "new"}}});
}

TEST_CASE("a file that was synced, in a directory that was not, may have no name") {
  const Disk disk = After({}, {Make("b", 1), Write(1, 0, "new"), Sync(1)});
  CHECK(AllLeft(disk) == std::set<DiskImage>{{}, {{"b", "new"}}});
}

TEST_CASE("a directory that was synced gives a file its name, not its content") {
  const Disk disk = After({}, {Make("b", 1), Write(1, 0, "ne"), SyncDirectory()});
  const std::string lost(2, '\0');
  CHECK(AllLeft(disk) ==
        std::set<DiskImage>{
            {{"b", ""}}, {{"b", lost.substr(1)}}, {{"b", "n"}}, {{"b", lost}}, {{"b", "ne"}}});
}

TEST_CASE("of an unsynced write over what was there any sectors are old, the others new") {
  const size_t sector = Disk::kSectorBytes;
  const Disk disk =
      After({{"a", std::string(3 * sector, 'o')}}, {Write(1, 1, std::string(3 * sector - 1, 'n'))});
  std::set<std::string> kinds;
  for (const DiskImage& image : AllLeft(disk)) {
    const std::string& bytes = image.at("a");
    REQUIRE(bytes.size() == 3 * sector);
    CHECK(bytes[0] == 'o');
    std::string kind;
    for (size_t at = 0; at < bytes.size(); at += sector) {
      const char first = bytes[at == 0 ? 1 : at];
      kind += first;
      CHECK(bytes.find_first_not_of(first, at + 1) >= at + sector);
    }
    kinds.insert(kind);
  }
  CHECK(kinds.size() == 8);
}

TEST_CASE("a sector is as it was after any of the writes to it") {
  const Disk disk = After({{"a", "..."}}, {Write(1, 0, "1"), Write(1, 1, "2"), Write(1, 2, "3")});
  CHECK(AllLeft(disk) ==
        std::set<DiskImage>{{{"a", "..."}}, {{"a", "1.."}}, {{"a", "12."}}, {{"a", "123"}}});
}

TEST_CASE("names change in any order, and a rename is never half done") {
  const DiskImage before = {{"CURRENT", "1"}, {"tmp", "2"}, {"x", ""}};
  const Disk disk = After(before, {Rename(2, "tmp", "CURRENT"), Delete("x")});
  CHECK(AllLeft(disk) == std::set<DiskImage>{before,
                                             {{"CURRENT", "2"}, {"x", ""}},
                                             {{"CURRENT", "1"}, {"tmp", "2"}},
                                             {{"CURRENT", "2"}}});
  Disk synced = disk;
  synced.Apply(SyncDirectory());
  CHECK(AllLeft(synced) == std::set<DiskImage>{{{"CURRENT", "2"}}});
}

TEST_CASE("a file that is cut off at its end may be as long as before, or empty of its end") {
  const Disk disk = After({{"a", "ab"}}, {Truncate(1, 1)});
  const std::string hole = std::string("a") + '\0';
  CHECK(AllLeft(disk) == std::set<DiskImage>{{{"a", "ab"}}, {{"a", "a"}}, {{"a", hole}}});
}

TEST_CASE("two seeds leave nothing and all of what is pending, and a seed always the same") {
  const Disk disk = After({{"a", "o"}}, {Write(1, 0, "new"), Make("b", 2), Write(2, 0, "2")});
  CHECK(disk.CutPower(Disk::kSeedNothing) == DiskImage{{"a", "o"}});
  CHECK(disk.CutPower(Disk::kSeedAll) == DiskImage{{"a", "new"}, {"b", "2"}});
  for (uint64_t seed = 0; seed < 100; ++seed) CHECK(disk.CutPower(seed) == disk.CutPower(seed));
}

}  // namespace
}  // namespace nowcalls::faults
