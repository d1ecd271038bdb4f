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

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// The inode of a file; nothing when there is none.
std::optional<uint64_t> InodeOf(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info.st_ino;
}

// A line is some text, a space and the checksum of the text.
std::string Line(const std::string& text) {
  return text + " " + std::to_string(Crc32c(text)) + "\n";
}

// "NAME INODE": neither has a space in it.
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
  // A mark that cannot be read names no file, so nothing is removed.
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

IOStatus OpeningMark::Remove() {
  IOStatus closed;
  if (file_ != nullptr) closed = file_->Close(IOOptions(), nullptr);
  file_.reset();
  const IOStatus removed = files_->DeleteFile(path_, IOOptions(), nullptr);
  return IsAbsent(removed) || removed.ok() ? closed : removed;
}

// Names the ledger and its state. No open changes any of this before it is accepted. Empty when it
// cannot be told.
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
    const std::optional<uint64_t> inode = InodeOf(path);
    if (!inode.has_value() || line != Line(MadeText(name, *inode))) continue;
    bool content = false;
    IOStatus status = IsLog(name) ? HasContent(path, &content) : IOStatus::OK();
    if (content) continue;
    if (status.ok()) status = may_delete();
    if (status.ok()) status = files_->DeleteFile(path, IOOptions(), nullptr);
    if (!status.ok()) return status;
    removed->push_back(name);
  }
}

// Whether there is anything but zeros.
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
