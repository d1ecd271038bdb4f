#include "store/rocks_status.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "store/ledger_files.h"

namespace nowcalls::store {
namespace {

constexpr char kAdviceSpace[] = "; free space on the file system, then try again";
constexpr char kAdviceIo[] =
    "; check the disk and the permissions of the directory, then try again";
constexpr char kAdviceFiles[] =
    "; raise the limit of open files (ulimit -n, or LimitNOFILE= of the service), then try again";
constexpr char kAdviceFilesOfAll[] =
    "; raise the limit of open files of the system (fs.file-max), then try again";

// RocksDB makes lists of lines, and puts the name of a table that is too short right behind a word.
void PutInOrder(std::string* message) {
  constexpr std::string_view kShort = " bytes) to be an sstable";
  if (const size_t at = message->find(kShort); at != std::string::npos) {
    const size_t end = at + kShort.size();
    if (end < message->size() && (*message)[end] != ':') message->insert(end, ": ");
  }
  while (message->ends_with('\n')) message->pop_back();
  for (size_t at = message->find('\n'); at != std::string::npos; at = message->find('\n', at)) {
    message->replace(at, 1, "; ");
  }
}

}  // namespace

Status FromRocks(const rocksdb::Status& status, std::string_view doing, const std::string& dir) {
  if (status.ok()) return {};
  std::string message = "cannot " + std::string(doing) + ": " + status.ToString();
  PutInOrder(&message);
  // Of a missing file RocksDB names the last of the two names it tried, which no file ever had.
  if (const size_t ldb = message.find(".ldb"); ldb != std::string::npos) {
    message.replace(ldb, 4, ".sst");
  }
  // Found by LedgerFileSystem; nothing is wrong with the disk or the bytes.
  if (status.IsIOFenced()) return Status::AlreadyExists(std::move(message));
  // RocksDB has its own words around those of the system, and takes some for damage.
  const bool no_files = IsOutOfFiles(message);
  const bool unread = status.IsCorruption() && message.find("IO error: ") != std::string::npos &&
                      message.find(std::strerror(ENOENT)) == std::string::npos;
  const bool damaged = !no_files && !unread && (status.IsCorruption() || status.IsPathNotFound());
  if (message.find(dir) == std::string::npos) {
    message += damaged ? " in " + DamagedFileIn(dir) : " in " + dir;
  }
  if (damaged) return Status::Corruption(message + kDamagedAdvice);
  if (no_files) {
    const bool of_all = message.find(std::strerror(ENFILE)) != std::string::npos;
    return Status::IoError(message + (of_all ? kAdviceFilesOfAll : kAdviceFiles));
  }
  if (status.IsNoSpace()) return Status::IoError(message + kAdviceSpace);
  // A file that cannot be read while options are checked becomes an invalid argument on its way;
  // one that can be at a second try is taken for proof that there is no direct I/O, which nobody
  // uses.
  const bool refused = message.find("IO error") != std::string::npos ||
                       message.find("Direct I/O is not supported") != std::string::npos;
  if (!refused && (status.IsNotSupported() || status.IsInvalidArgument())) {
    return Status::FailedPrecondition(std::move(message));
  }
  return Status::IoError(message + kAdviceIo);
}

bool IsAbsent(const rocksdb::Status& status) {
  return status.IsNotFound() || status.IsPathNotFound();
}

bool IsOutOfFiles(std::string_view message) {
  return message.find(std::strerror(EMFILE)) != std::string_view::npos ||
         message.find(std::strerror(ENFILE)) != std::string_view::npos;
}

std::string WithoutAdvice(const std::string& message) {
  size_t end = message.size();
  for (const char* advice :
       {"; the ledger is damaged", "; restore it from a backup", ": restore it from a backup",
        kAdviceSpace, kAdviceIo, kAdviceFiles, kAdviceFilesOfAll}) {
    end = std::min(end, message.find(advice));
  }
  return message.substr(0, end);
}

}  // namespace nowcalls::store
