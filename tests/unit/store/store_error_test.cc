// What RocksDB's errors become, and what they advise.
#include "store/disk/store_error.h"

#include <doctest/doctest.h>
#include <rocksdb/io_status.h>

#include <cerrno>
#include <cstring>

namespace nowcalls::store {
namespace {

constexpr char kDir[] = "/data/ledger";
constexpr char kFile[] = "/data/ledger/000007.sst";

Status From(const rocksdb::Status& status) { return FromRocks(status, "open the ledger", kDir); }
StoreError ErrorOf(const rocksdb::Status& status) {
  return ErrorFromRocks(status, "open the ledger", kDir);
}

bool Has(const Status& status, const std::string& part) {
  return status.message().find(part) != std::string::npos;
}

TEST_CASE("what RocksDB runs together, or writes in lines, is told in one readable line") {
  const Status is_short = From(rocksdb::Status::Corruption(
      std::string("file is too short (20795 bytes) to be an sstable") + kFile));
  CHECK(Has(is_short, std::string("to be an sstable: ") + kFile));
  const Status lines =
      From(rocksdb::Status::Corruption(std::string(kFile) + " a\n" + kFile + " b\n"));
  CHECK(Has(lines, std::string(kFile) + " a; " + kFile + " b; the ledger is damaged"));
}

TEST_CASE("too few descriptors are told as that, whatever RocksDB takes them for") {
  const rocksdb::Status of_process[] = {
      rocksdb::Status::IOError(kFile, std::strerror(EMFILE)),
      rocksdb::Status::Corruption(kFile, std::strerror(EMFILE)),
      rocksdb::Status::InvalidArgument(kFile, std::strerror(EMFILE)),
  };
  for (const rocksdb::Status& status : of_process) {
    const Status told = From(status);
    CAPTURE(told.message());
    CHECK(told.code() == StatusCode::kIoError);
    CHECK(Has(told, kFile));
    CHECK(told.message().ends_with(
        "Too many open files; raise the limit of open files (ulimit -n, or LimitNOFILE= of the "
        "service), then try again"));
    CHECK(ErrorOf(status).Is(StoreError::Kind::kOutOfFiles));
  }
  const Status of_system = From(rocksdb::Status::IOError(kFile, std::strerror(ENFILE)));
  CHECK(Has(of_system, "fs.file-max"));
  CHECK_FALSE(Has(of_system, "ulimit"));
  CHECK(ErrorFromSystem(ENFILE, "open", kFile).Is(StoreError::Kind::kOutOfFiles));
}

TEST_CASE("the advice suits a tool as well as a server, and goes where it is being followed") {
  const rocksdb::Status statuses[] = {
      rocksdb::Status::IOError(kFile, std::strerror(EMFILE)),
      rocksdb::Status::IOError(kFile, std::strerror(ENFILE)),
      rocksdb::Status::IOError(kFile, std::strerror(EIO)),
      rocksdb::Status::NoSpace(kFile, std::strerror(ENOSPC)),
      rocksdb::Status::Corruption("block checksum mismatch", kFile),
  };
  for (const rocksdb::Status& status : statuses) {
    const Status told = From(status);
    CAPTURE(told.message());
    CHECK_FALSE(Has(told, "start again"));
    CHECK(Has(told, "; "));
    CHECK(ErrorOf(status).what() == "cannot open the ledger: " + status.ToString());
    CHECK(told.message().starts_with(ErrorOf(status).what() + "; "));
  }
  CHECK(Has(From(statuses[2]), "check the disk"));
}

TEST_CASE("the kind of a failure is told by what RocksDB met, not by what it calls it") {
  using Kind = StoreError::Kind;
  struct Case {
    rocksdb::Status status;
    Kind kind;
    StatusCode code;
  };
  const std::string of_file = std::string("IO error: ") + kFile + ": ";
  const Case cases[] = {
      {rocksdb::Status::IOError(kFile, std::strerror(EIO)), Kind::kIo, StatusCode::kIoError},
      {rocksdb::Status::NoSpace(kFile, "full"), Kind::kNoSpace, StatusCode::kIoError},
      {rocksdb::Status::Corruption(kFile, "bad block"), Kind::kDamaged, StatusCode::kCorruption},
      {rocksdb::Status::PathNotFound(kFile), Kind::kDamaged, StatusCode::kCorruption},
      // A file that cannot be read is not damaged; a file that is gone is.
      {rocksdb::Status::Corruption(of_file + std::strerror(EACCES)), Kind::kIo,
       StatusCode::kIoError},
      {rocksdb::Status::Corruption(of_file + std::strerror(ENOENT)), Kind::kDamaged,
       StatusCode::kCorruption},
      {rocksdb::Status::InvalidArgument(of_file + std::strerror(EACCES)), Kind::kIo,
       StatusCode::kIoError},
      {rocksdb::Status::InvalidArgument(kFile), Kind::kRefused, StatusCode::kFailedPrecondition},
      {rocksdb::IOStatus::IOFenced(kFile), Kind::kDisplaced, StatusCode::kAlreadyExists},
  };
  for (const Case& made : cases) {
    CAPTURE(made.status.ToString());
    const StoreError error = ErrorOf(made.status);
    CHECK(error.Is(made.kind));
    CHECK(error.code() == made.code);
    CHECK(Status(error).code() == made.code);
  }
  CHECK(ErrorOf(rocksdb::Status::OK()).ok());
  CHECK(Status(StoreError()).ok());
}

}  // namespace
}  // namespace nowcalls::store
