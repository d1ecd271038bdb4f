// What RocksDB's errors become, and what they advise.
#include "store/rocks_status.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>

namespace nowcalls::store {
namespace {

constexpr char kDir[] = "/data/ledger";
constexpr char kFile[] = "/data/ledger/000007.sst";

Status From(const rocksdb::Status& status) { return FromRocks(status, "open the ledger", kDir); }

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
    CHECK(IsOutOfFiles(told.message()));
  }
  const Status of_system = From(rocksdb::Status::IOError(kFile, std::strerror(ENFILE)));
  CHECK(Has(of_system, "fs.file-max"));
  CHECK_FALSE(Has(of_system, "ulimit"));
  CHECK(IsOutOfFiles(of_system.message()));
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
    CHECK(WithoutAdvice(told.message()) == "cannot open the ledger: " + status.ToString());
  }
  CHECK(Has(From(statuses[2]), "check the disk"));
  CHECK(WithoutAdvice("all is well; really") == "all is well; really");
}

}  // namespace
}  // namespace nowcalls::store
