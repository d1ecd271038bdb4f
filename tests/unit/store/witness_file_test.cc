// When the witness is written, what is in its slots then, and what becomes of a disk that refuses.
#include "store/disk/witness_file.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "support/poll_until.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::store {
namespace {

using testing::kPatienceMs;
using testing::PollUntil;
using testing::ReadFileToString;
using testing::TempDir;

// Refuses to write in place while armed.
class RefusingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  RefusingFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "RefusingFileSystem"; }
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewRandomRWFile(path, options, file, context);
    if (status.ok()) *file = std::make_unique<File>(std::move(*file), refuses);
    return status;
  }

  std::atomic<bool> refuses{false};

 private:
  class File : public rocksdb::FSRandomRWFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSRandomRWFile> file, const std::atomic<bool>& refuses)
        : FSRandomRWFileOwnerWrapper(std::move(file)), refuses_(refuses) {}
    rocksdb::IOStatus Write(uint64_t at, const rocksdb::Slice& data,
                            const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* context) override {
      if (refuses_) return rocksdb::IOStatus::IOError("the disk is on fire");
      return FSRandomRWFileOwnerWrapper::Write(at, data, options, context);
    }

   private:
    const std::atomic<bool>& refuses_;
  };
};

// Has places that cannot be read, by their offset.
class UnreadablePlaces : public rocksdb::FileSystemWrapper {
 public:
  explicit UnreadablePlaces(std::set<uint64_t> places)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), places_(std::move(places)) {}

  const char* Name() const override { return "UnreadablePlaces"; }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
    if (status.ok()) *file = std::make_unique<File>(std::move(*file), places_);
    return status;
  }

 private:
  class File : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSRandomAccessFile> file, const std::set<uint64_t>& places)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), places_(places) {}
    rocksdb::IOStatus Read(uint64_t at, size_t size, const rocksdb::IOOptions& options,
                           rocksdb::Slice* result, char* scratch,
                           rocksdb::IODebugContext* context) const override {
      const auto place = places_.lower_bound(at);
      if (place != places_.end() && *place < at + size) {
        return rocksdb::IOStatus::IOError("unreadable sector");
      }
      return FSRandomAccessFileOwnerWrapper::Read(at, size, options, result, scratch, context);
    }

   private:
    const std::set<uint64_t>& places_;
  };

  const std::set<uint64_t> places_;
};

struct WitnessFixture {
  WitnessFixture() {
    auto taken = LedgerLock::Take(dir.path());
    REQUIRE(taken.ok());
    lock = *std::move(taken);
    witness.emplace(files, lock.get(), [this](const rocksdb::IOStatus&) { ++reports; });
  }
  std::string Bytes() const { return ReadFileToString(dir.Sub("ledger/witness")); }
  // Of one place.
  std::optional<ledger::Witness> Slot(size_t place) const {
    return ledger::DecodeWitnessSlot(Bytes().substr(place * ledger::kWitnessSlotStride));
  }

  const TempDir dir;
  std::unique_ptr<LedgerLock> lock;
  std::shared_ptr<RefusingFileSystem> files = std::make_shared<RefusingFileSystem>();
  std::atomic<int> reports{0};
  std::optional<WitnessFile> witness;
};

TEST_CASE_FIXTURE(WitnessFixture, "a witness is written soon, and by its end in both places") {
  witness->SetManifest(5, 416);
  REQUIRE(witness->Prepare(7).ok());
  REQUIRE(witness->Begin().ok());
  for (const size_t place : {0, 1}) CHECK(Slot(place)->floor == 7);
  witness->Advance(8);
  CHECK(PollUntil(kPatienceMs, [this] {
    return ledger::DecodeWitnessFile(Bytes()).witness->batch_number == 8;
  }));
  witness->Advance(9);
  witness->Stop();
  for (const size_t place : {0, 1}) {
    REQUIRE(Slot(place).has_value());
    CHECK(Slot(place)->batch_number == 9);
    CHECK(Slot(place)->floor == 7);
    CHECK(Slot(place)->manifest == 5);
    CHECK(Slot(place)->manifest_bytes == 416);
  }
  CHECK(reports == 0);
}

TEST_CASE_FIXTURE(WitnessFixture,
                  "a witness that was prepared counts as soon as CURRENT names its manifest") {
  const auto batch = [this] {
    std::optional<ledger::WitnessFound> found;
    REQUIRE(ReadWitness(files.get(), dir.Sub("ledger"), &found).ok());
    return found.has_value() ? std::optional(found->witness->batch_number) : std::nullopt;
  };
  const auto point_to = [this](const std::string& manifest) {
    testing::WriteStringToFile(dir.Sub("ledger/CURRENT"), manifest + "\n");
  };
  point_to("MANIFEST-000005");
  witness->SetManifest(9, 100);
  REQUIRE(witness->Prepare(7).ok());
  CHECK_FALSE(batch().has_value());
  point_to("MANIFEST-000009");
  CHECK(batch() == 7);
  point_to("MANIFEST-000005");
  witness->SetManifest(5, 100);
  REQUIRE(witness->Prepare(3).ok());
  REQUIRE(witness->Begin().ok());
  CHECK(batch() == 3);
  witness->Stop();
  WitnessFile next(files, lock.get(), nullptr);
  next.SetManifest(9, 100);
  REQUIRE(next.Prepare(8).ok());
  CHECK(batch() == 3);
  point_to("MANIFEST-000009");
  CHECK(batch() == 8);
  point_to("MANIFEST-000011");  // Of somebody who knows nothing of it.
  CHECK(batch() == 3);
  next.Withdraw();
  point_to("MANIFEST-000009");
  CHECK(batch() == 3);
  // One that is not whole, as a power cut leaves it.
  testing::WriteStringToFile(dir.Sub("ledger/witness.new"), "\x02");
  CHECK(batch() == 3);
}

TEST_CASE_FIXTURE(WitnessFixture, "a place that the disk does not give back leaves the other") {
  witness->SetManifest(5, 416);
  REQUIRE(witness->Prepare(100).ok());
  REQUIRE(witness->Begin().ok());
  witness->Stop();
  const std::array<std::optional<ledger::Witness>, 2> slots{Slot(0), Slot(1)};
  REQUIRE(slots[0].has_value());
  REQUIRE(slots[1].has_value());
  std::optional<ledger::WitnessFound> found;
  for (size_t i = 0; i < 2; ++i) {
    CAPTURE(i);
    UnreadablePlaces disk({i * ledger::kWitnessSlotStride + 7});
    REQUIRE(ReadWitness(&disk, dir.Sub("ledger"), &found).ok());
    REQUIRE(found.has_value());
    CHECK(found->damaged);
    CHECK(found->witness == slots[1 - i]);
  }
  UnreadablePlaces none({0, ledger::kWitnessSlotStride});
  const rocksdb::IOStatus status = ReadWitness(&none, dir.Sub("ledger"), &found);
  CHECK(status.ToString().find("unreadable sector") != std::string::npos);
  CHECK_FALSE(found.has_value());
  REQUIRE(ReadWitness(rocksdb::FileSystem::Default().get(), dir.Sub("nowhere"), &found).ok());
  CHECK_FALSE(found.has_value());
}

TEST_CASE_FIXTURE(WitnessFixture, "a floor is in both places when it may be relied on") {
  CHECK(witness->RaiseFloor(3).ok());
  REQUIRE(witness->Prepare(4).ok());
  REQUIRE(witness->Begin().ok());
  for (const uint64_t floor : {6, 5, 9}) {
    REQUIRE(witness->RaiseFloor(floor).ok());
    for (const size_t place : {0, 1}) CHECK(Slot(place)->floor == std::max<uint64_t>(floor, 6));
  }
}

TEST_CASE_FIXTURE(WitnessFixture,
                  "a witness that cannot be written is told once, and no floor is raised") {
  REQUIRE(witness->Prepare(4).ok());
  REQUIRE(witness->Begin().ok());
  files->refuses = true;
  witness->Advance(5);
  CHECK(PollUntil(kPatienceMs, [this] { return reports == 1; }));
  CHECK_FALSE(witness->RaiseFloor(5).ok());
  CHECK_FALSE(witness->RaiseFloor(6).ok());
  witness->Stop();
  CHECK(reports == 1);
  for (const size_t place : {0, 1}) CHECK(Slot(place)->batch_number == 4);
}

// Syncs wait while it is armed.
class HangingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  HangingFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "HangingFileSystem"; }
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewRandomRWFile(path, options, file, context);
    if (status.ok()) *file = std::make_unique<File>(std::move(*file), this);
    return status;
  }

  std::atomic<bool> hangs{false};
  std::atomic<int> hanging{0};

 private:
  class File : public rocksdb::FSRandomRWFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSRandomRWFile> file, HangingFileSystem* owner)
        : FSRandomRWFileOwnerWrapper(std::move(file)), owner_(*owner) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context) override {
      ++owner_.hanging;
      while (owner_.hangs) std::this_thread::yield();
      --owner_.hanging;
      return FSRandomRWFileOwnerWrapper::Sync(options, context);
    }

   private:
    HangingFileSystem& owner_;
  };
};

TEST_CASE("a floor that another thread is still writing may not be relied on yet") {
  const TempDir dir;
  auto taken = LedgerLock::Take(dir.path());
  REQUIRE(taken.ok());
  const auto files = std::make_shared<HangingFileSystem>();
  WitnessFile witness(files, taken->get(), nullptr);
  REQUIRE(witness.Prepare(4).ok());
  REQUIRE(witness.Begin().ok());
  files->hangs = true;
  std::thread flush([&] { CHECK(witness.RaiseFloor(20).ok()); });
  REQUIRE(PollUntil(kPatienceMs, [&] { return files->hanging > 0; }));
  std::atomic<bool> returned{false};
  std::thread backup([&] {
    CHECK(witness.RaiseFloor(10).ok());
    returned = true;
  });
  // Nothing above floor 4 is on the disk.
  CHECK_FALSE(PollUntil(500, [&] { return returned.load(); }));
  files->hangs = false;
  flush.join();
  backup.join();
  witness.Stop();
}

}  // namespace
}  // namespace nowcalls::store
