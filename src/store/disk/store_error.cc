#include "store/disk/store_error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "store/disk/ledger_files.h"

namespace nowcalls::store {
namespace {

using Kind = StoreError::Kind;

constexpr char kAdviceSpace[] = "; free space on the file system, then try again";
constexpr char kAdviceInodes[] =
    "; the file system has no inodes left, whatever space is free: delete files on it, then try "
    "again";
constexpr char kAdviceIo[] =
    "; check the disk and the permissions of the directory, then try again";
constexpr char kAdviceFiles[] =
    "; raise the limit of open files (ulimit -n, or LimitNOFILE= of the service), then try again";
constexpr char kAdviceFilesOfAll[] =
    "; raise the limit of open files of the system (fs.file-max), then try again";

bool Tells(std::string_view message, std::string_view of) {
  return message.find(of) != std::string_view::npos;
}
bool TellsErrno(std::string_view message, int error) {
  return Tells(message, std::strerror(error));
}

// Makes one readable line. RocksDB puts lists on lines, and appends the name of a short table to a
// word. It names a missing table by the last name that it tried, *.ldb, which no file had.
std::string Readable(std::string message) {
  constexpr std::string_view kShort = " bytes) to be an sstable";
  if (const size_t at = message.find(kShort); at != std::string::npos) {
    const size_t end = at + kShort.size();
    if (end < message.size() && message[end] != ':') message.insert(end, ": ");
  }
  while (message.ends_with('\n')) message.pop_back();
  for (size_t at = message.find('\n'); at != std::string::npos; at = message.find('\n', at)) {
    message.replace(at, 1, "; ");
  }
  if (const size_t ldb = message.find(".ldb"); ldb != std::string::npos) {
    message.replace(ldb, 4, ".sst");
  }
  // An error number alone says little.
  constexpr std::string_view kNumber = "Unexpected error(";
  if (const size_t at = message.find(kNumber); at != std::string::npos) {
    const int error = std::atoi(message.c_str() + at + kNumber.size());
    message += ": " + std::string(std::strerror(error));
  }
  return message;
}

// RocksDB wraps the system's words in its own and calls some failures damage, or an invalid
// argument. So the system's words decide first.
Kind KindOf(const rocksdb::Status& status, std::string_view message) {
  // LedgerFileSystem fences an operation when the ledger is no longer ours.
  if (status.IsIOFenced()) return Kind::kDisplaced;
  if (TellsErrno(message, EMFILE) || TellsErrno(message, ENFILE)) return Kind::kOutOfFiles;
  // A failed read is not damage, which is bytes that were read and are wrong. A missing file is
  // damage.
  const bool is_unread =
      status.IsCorruption() && Tells(message, "IO error: ") && !TellsErrno(message, ENOENT);
  if (!is_unread && (status.IsCorruption() || status.IsPathNotFound())) return Kind::kDamaged;
  if (status.IsNoSpace()) return Kind::kNoSpace;
  // An unreadable file becomes an invalid argument while options are checked. One readable at a
  // second try becomes "no direct I/O", which nobody uses.
  const bool is_io = Tells(message, "IO error") || Tells(message, "Direct I/O is not supported");
  if (!is_io && (status.IsNotSupported() || status.IsInvalidArgument())) return Kind::kRefused;
  return Kind::kIo;
}

// Asks `path`, or its parent where `path` is still to be made.
bool LacksInodes(const std::string& path) {
  std::optional<uint64_t> left = FreeInodes(path);
  if (!left.has_value()) left = FreeInodes(ParentOf(path));
  return left == uint64_t{0};
}

const char* AdviceFor(Kind kind, std::string_view message, const std::string& dir) {
  switch (kind) {
    case Kind::kIo: return kAdviceIo;
    case Kind::kNoSpace: return LacksInodes(dir) ? kAdviceInodes : kAdviceSpace;
    case Kind::kOutOfFiles: return TellsErrno(message, ENFILE) ? kAdviceFilesOfAll : kAdviceFiles;
    case Kind::kDamaged: return kDamagedAdvice;
    case Kind::kDisplaced:
    case Kind::kRefused: break;
  }
  return "";
}

}  // namespace

StatusCode StoreError::code() const {
  if (ok()) return StatusCode::kOk;
  switch (*kind_) {
    case Kind::kIo:
    case Kind::kNoSpace:
    case Kind::kOutOfFiles: return StatusCode::kIoError;
    case Kind::kDamaged: return StatusCode::kCorruption;
    case Kind::kDisplaced: return StatusCode::kAlreadyExists;
    case Kind::kRefused: return StatusCode::kFailedPrecondition;
  }
  return StatusCode::kIoError;
}

StoreError ErrorFromRocks(const rocksdb::Status& status, std::string_view doing,
                          const std::string& dir) {
  if (status.ok()) return {};
  std::string what = Readable("cannot " + std::string(doing) + ": " + status.ToString());
  const Kind kind = KindOf(status, what);
  // The message must name a place; for damage without a file, RocksDB's candidates.
  if (kind != Kind::kDisplaced && !Tells(what, dir)) {
    what += " in " + (kind == Kind::kDamaged ? DamagedFileIn(dir) : dir);
  }
  const char* const advice = AdviceFor(kind, what, dir);
  return {kind, std::move(what), advice};
}

StoreError ErrorFromSystem(int error, std::string_view doing, const std::string& path) {
  return ErrorFromRocks(rocksdb::Status::IOError(path, std::strerror(error)), doing, path);
}

bool IsAbsent(const rocksdb::Status& status) {
  return status.IsNotFound() || status.IsPathNotFound();
}

}  // namespace nowcalls::store
