#include "store/rocks/opening_mark.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "store/disk/file_names.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"
#include "store/log/log_views.h"

// A killed open leaves files as large as the logs' content. With too little memory, or an impatient
// supervisor, each start would leave more and fill the disk. No client was answered because of
// them.

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Inode of a regular file; nothing without one.
std::optional<uint64_t> InodeOf(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info.st_ino;
}

// A line: text, a space, the text's checksum. A torn or foreign line names no file.
std::string Line(const std::string& text) {
  return text + " " + std::to_string(Crc32c(text)) + "\n";
}

// "NAME INODE"; neither contains a space.
std::string MadeText(const std::string& name, uint64_t inode) {
  return name + " " + std::to_string(inode);
}

}  // namespace

OpeningMark::OpeningMark(rocksdb::FileSystem* files, std::string ledger_dir)
    : files_(files), dir_(std::move(ledger_dir)), path_(dir_ + "/opening") {}

IOStatus OpeningMark::Begin(const std::function<IOStatus()>& may_delete,
                            std::vector<std::string>* removed) {
  const std::string head = Head();
  if (head.empty()) return IOStatus::OK();
  // An unreadable mark names no file: nothing is removed.
  std::string text;
  if (!rocksdb::ReadFileToString(files_, path_, &text).ok()) text.clear();
  IOStatus status = RemoveMade(text, head, may_delete, removed);
  if (status.ok()) {
    status = files_->NewWritableFile(path_, rocksdb::FileOptions(), &file_, nullptr);
  }
  return status.ok() ? file_->Append(head, IOOptions(), nullptr) : status;
}

IOStatus OpeningMark::Made(const std::string& path) {
  if (file_ == nullptr) return IOStatus::OK();
  const std::optional<uint64_t> inode = InodeOf(path);
  if (!inode.has_value()) return IOStatus::OK();
  const std::string line = Line(MadeText(path.substr(path.rfind('/') + 1), *inode));
  return file_->Append(line, IOOptions(), nullptr);
}

// Callers remove the mark before CURRENT changes, then sync the directory.
IOStatus OpeningMark::Remove() {
  IOStatus closed;
  if (file_ != nullptr) closed = file_->Close(IOOptions(), nullptr);
  file_.reset();
  const IOStatus removed = files_->DeleteFile(path_, IOOptions(), nullptr);
  return IsAbsent(removed) || removed.ok() ? closed : removed;
}

// Names the ledger and its state, which no open changes before it is accepted: CURRENT's manifest,
// its size, the database's identity. Empty if unknown.
std::string OpeningMark::Head() const {
  const std::string manifest = ManifestState(dir_);
  if (manifest.empty()) return {};
  std::string identity;
  rocksdb::ReadFileToString(files_, dir_ + "/IDENTITY", &identity).PermitUncheckedError();
  return Line("nowcalls opening 1 " + manifest + " " + identity.substr(0, identity.find('\n')));
}

IOStatus OpeningMark::RemoveMade(std::string_view text, const std::string& head,
                                 const std::function<IOStatus()>& may_delete,
                                 std::vector<std::string>* removed) {
  // Another state: somebody brought other files here, or an open was accepted.
  if (!text.starts_with(head)) return IOStatus::OK();
  text.remove_prefix(head.size());
  for (;;) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return IOStatus::OK();
    const std::string line(text.substr(0, end + 1));
    text.remove_prefix(line.size());
    const std::string name = line.substr(0, line.find(' '));
    if (name.find('/') != std::string::npos) continue;  // No open wrote this.
    const std::string path = dir_ + "/" + name;
    // Only the very file that was made: another of its name has another inode.
    const std::optional<uint64_t> inode = InodeOf(path);
    if (!inode.has_value() || line != Line(MadeText(name, *inode))) continue;
    bool content = false;
    // A log with content was not made by an unaccepted open: none writes a record.
    IOStatus status = IsLog(name) ? HasContent(path, &content) : IOStatus::OK();
    if (content) continue;
    if (status.ok()) status = may_delete();
    if (status.ok()) status = files_->DeleteFile(path, IOOptions(), nullptr);
    if (!status.ok()) return status;
    removed->push_back(name);
  }
}

// Whether any byte is not zero.
IOStatus OpeningMark::HasContent(const std::string& path, bool* content) const {
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  IOStatus status = files_->NewSequentialFile(path, rocksdb::FileOptions(), &file, nullptr);
  std::vector<char> buffer(size_t{64} * 1024);
  while (status.ok() && !*content) {
    rocksdb::Slice read;
    status = file->Read(buffer.size(), IOOptions(), &read, buffer.data(), nullptr);
    if (!status.ok() || read.empty()) break;
    *content = std::any_of(read.data(), read.data() + read.size(), [](char c) { return c != 0; });
  }
  return status;
}

}  // namespace nowcalls::store
