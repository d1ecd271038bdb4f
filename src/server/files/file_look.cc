#include "server/files/file_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fingerprint.h"
#include "base/limits.h"

namespace nowcalls::server {
namespace {

constexpr int kLinksMax = 40;  // As the kernel's.
constexpr size_t kLinkBytesMax = 4096;

class OpenFile {
 public:
  // O_NONBLOCK: the opening of a pipe does not wait for its writer.
  explicit OpenFile(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

FileSignature SignatureOf(const struct stat& info) {
  return {info.st_dev,
          info.st_ino,
          info.st_size,
          {info.st_mtim.tv_sec, info.st_mtim.tv_nsec},
          {info.st_ctim.tv_sec, info.st_ctim.tv_nsec}};
}

std::string ErrorText() { return std::generic_category().message(errno); }

std::deque<std::string> PartsOf(std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return parts;
}

std::string ReadLink(const std::string& path) {
  char target[kLinkBytesMax];
  const ssize_t size = readlink(path.c_str(), target, sizeof(target));
  return size < 0 ? std::string() : std::string(target, static_cast<size_t>(size));
}

// Follows a path part by part, as the kernel does, and notes each entry whose change would matter.
class PathWalk {
 public:
  explicit PathWalk(const std::string& path) : left_(PartsOf(path)) {}

  std::vector<PathEntry> Entries() {
    while (!left_.empty() && links_ <= kLinksMax && Step()) {
    }
    return std::move(entries_);
  }

 private:
  // False: the way ends here.
  bool Step() {
    const std::string name = std::move(left_.front());
    left_.pop_front();
    // The parent of the real directory: links before it are resolved already.
    if (name == "..") {
      if (!directory_.empty()) directory_.erase(directory_.rfind('/'));
      return true;
    }
    const std::string path = directory_ + "/" + name;
    struct stat info {};
    const bool there = lstat(path.c_str(), &info) == 0;
    // A link: retargeting it changes the file, so it is watched, and its target walked.
    if (there && S_ISLNK(info.st_mode)) {
      Note(name);
      Follow(ReadLink(path));
      return true;
    }
    // The file itself, or the first part that is missing.
    if (!there || left_.empty()) Note(name);
    directory_ = path;
    return there;
  }

  void Note(const std::string& name) {
    const std::string directory = directory_.empty() ? "/" : directory_;
    struct stat info {};
    if (stat(directory.c_str(), &info) != 0) return;
    entries_.push_back({directory, name, info.st_dev, info.st_ino});
  }

  void Follow(const std::string& target) {
    ++links_;
    // A relative target goes on from the directory of the link.
    if (target.starts_with('/')) directory_.clear();
    const std::deque<std::string> parts = PartsOf(target);
    left_.insert(left_.begin(), parts.begin(), parts.end());
  }

  std::deque<std::string> left_;
  std::string directory_;  // "/etc/nowcalls"; empty for the root.
  int links_ = 0;
  std::vector<PathEntry> entries_;
};

bool ReadAll(int fd, FileLook* look) {
  char chunk[64 * 1024];
  while (true) {
    const ssize_t size = read(fd, chunk, sizeof(chunk));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      look->problem = "cannot be read: " + ErrorText();
      return false;
    }
    if (size == 0) return true;
    look->text.append(chunk, static_cast<size_t>(size));
    // Bounded while reading: a file may grow without end.
    if (look->text.size() > kRulesFileBytesMax) {
      look->problem = "is longer than " + std::to_string(kRulesFileBytesMax) + " bytes";
      return false;
    }
  }
}

void Read(const std::string& path, const std::optional<FileSignature>& known, FileLook* look) {
  using Outcome = FileLook::Outcome;
  const OpenFile file(path);
  struct stat before {};
  if (file.fd() < 0 || fstat(file.fd(), &before) != 0) {
    look->outcome = errno == ENOENT || errno == ENOTDIR ? Outcome::kMissing : Outcome::kUnreadable;
    look->problem = "cannot be opened: " + ErrorText();
    return;
  }
  // A pipe would be emptied by the look, and a device may never end.
  if (!S_ISREG(before.st_mode)) {
    look->outcome = S_ISDIR(before.st_mode) ? Outcome::kUnreadable : Outcome::kNotAFile;
    look->problem = "is a directory";
    return;
  }
  look->signature = SignatureOf(before);
  look->outcome = Outcome::kUnchanged;
  if (look->signature == known) return;
  look->outcome = Outcome::kUnreadable;
  if (!ReadAll(file.fd(), look)) return;
  // Changed while it was read: the text may be of two versions.
  struct stat after {};
  const bool rests = fstat(file.fd(), &after) == 0 && SignatureOf(after) == look->signature &&
                     look->text.size() == static_cast<size_t>(after.st_size);
  look->outcome = rests ? Outcome::kRead : Outcome::kUnsettled;
  look->fingerprint = Fingerprint(look->text);
}

}  // namespace

FileLook LookAtFile(const std::string& path, const std::optional<FileSignature>& known) {
  FileLook look;
  std::error_code ignored;  // Then the working directory is gone, and so is the file.
  const auto absolute = std::filesystem::absolute(path, ignored);
  // Entries before content: a change after the walk shows at an entry that will be watched.
  look.entries = PathWalk(absolute.string()).Entries();
  Read(absolute.string(), known, &look);
  return look;
}

}  // namespace nowcalls::server
