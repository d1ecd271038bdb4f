#include "admin/access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "access/access_edit.h"
#include "access/access_file.h"
#include "base/clock.h"
#include "base/os_error.h"
#include "base/text.h"
#include "store/disk/file_copy.h"

namespace nowcalls::admin {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kNewFileMode = 0640;

// Base64 for URLs, without padding.
std::string Base64Url(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  uint32_t bits = 0;
  int count = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (count += 8; count >= 6; count -= 6) text += kDigits[bits >> (count - 6) & 63];
  }
  if (count > 0) text += kDigits[bits << (6 - count) & 63];
  return text;
}

// The new content of a file. Its own name beside the file lets one change at a time in.
class FreshFile {
 public:
  explicit FreshFile(const std::string& path) : path_(path), fresh_(path + ".new") {}
  ~FreshFile() {
    if (fd_ < 0) return;
    close(fd_);
    if (!renamed_) unlink(fresh_.c_str());
  }
  FreshFile(const FreshFile&) = delete;
  FreshFile& operator=(const FreshFile&) = delete;

  Status Begin() {
    fd_ = open(fresh_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd_ >= 0) return {};
    if (errno != EEXIST) return OsError("make", fresh_);
    return Status::FailedPrecondition(
        fresh_ +
        " is there: another change of the file is under way. If none is, one was cut "
        "short: remove it");
  }

  // `before`: the file that is replaced; none: it is new.
  Status Replace(std::string_view bytes, const std::optional<struct stat>& before) {
    if (before.has_value() && fchown(fd_, before->st_uid, before->st_gid) != 0) {
      return OsError("keep the owner of", path_);
    }
    if (fchmod(fd_, before.has_value() ? before->st_mode & 07777 : kNewFileMode) != 0) {
      return OsError("set the mode of", fresh_);
    }
    for (std::string_view rest = bytes; !rest.empty();) {
      const ssize_t size = write(fd_, rest.data(), rest.size());
      if (size < 0 && errno != EINTR) return OsError("write", fresh_);
      if (size > 0) rest.remove_prefix(static_cast<size_t>(size));
    }
    if (fsync(fd_) != 0) return OsError("sync", fresh_);
    if (rename(fresh_.c_str(), path_.c_str()) != 0) return OsError("replace", path_);
    renamed_ = true;
    const std::string parent = fs::path(path_).parent_path().string();
    return store::SyncDir(parent.empty() ? "." : parent);
  }

 private:
  const std::string path_;
  const std::string fresh_;
  int fd_ = -1;
  bool renamed_ = false;
};

// A link is kept, and the file that it leads to is replaced.
std::string RealPath(const std::string& file) {
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  return error ? file : real.string();
}

using Edit = std::function<Result<std::string>(const std::string& text)>;

// Returns whether the file is new. `may_make`: it need not be there.
Result<bool> ChangeFile(const std::string& file, bool may_make, const Edit& edit) {
  const std::string path = RealPath(file);
  FreshFile fresh(path);
  // 1. Keep others out, then read.
  NOWCALLS_RETURN_IF_ERROR(fresh.Begin());
  std::string text;
  std::optional<struct stat> before(std::in_place);
  if (stat(path.c_str(), &*before) == 0) {
    Result<std::string> read = access::ReadAccessText(path, access::Reader::kTool);
    if (!read.ok()) return read.status();
    text = *std::move(read);
  } else if (errno == ENOENT && may_make) {
    before.reset();
  } else {
    return Status::InvalidArgument(OsError("look at", file).message());
  }
  // 2. Change, then write.
  const Result<std::string> changed = edit(text);
  if (!changed.ok()) return changed.status();
  NOWCALLS_RETURN_IF_ERROR(fresh.Replace(*changed, before));
  return !before.has_value();
}

std::string SecretNote(const AccessChange& change) {
  if (change.secret.empty()) return "";
  return "; its secret is on standard output, and nowhere else. Give it to its program by a file "
         "(--secret-file, NOWCALLS_SECRET_FILE) that only that may read";
}

}  // namespace

std::string MakeSecret() {
  std::string bytes;
  for (int half = 0; half < 2; ++half) {
    for (uint64_t bits : RandomBits128())
      bytes.append(reinterpret_cast<char*>(&bits), sizeof(bits));
  }
  return "ncs_" + Base64Url(bytes);
}

Result<AccessChange> AddPrincipal(const Arguments& arguments) {
  AccessChange change;
  access::NewPrincipal principal = arguments.principal;
  if (!arguments.no_secret) {
    change.secret = MakeSecret();
    principal.secret = access::DigestOf(change.secret);
  }
  const Result<bool> made = ChangeFile(arguments.file, true, [&](const std::string& text) {
    return access::WithPrincipal(text, arguments.file, principal);
  });
  if (!made.ok()) return made.status();
  change.done =
      "added principal " + Quoted(principal.name) + " to " + arguments.file + SecretNote(change);
  if (*made) {
    change.done +=
        ". The file is new: the server's user must be able to read it (`chgrp`), and "
        "nobody but root or that user may own it";
  }
  return change;
}

Result<AccessChange> RotateSecret(const Arguments& arguments) {
  AccessChange change{.secret = MakeSecret(), .done = {}};
  const std::string& name = arguments.principal.name;
  const Result<bool> made = ChangeFile(arguments.file, false, [&](const std::string& text) {
    return access::WithSecret(text, arguments.file, name, access::DigestOf(change.secret));
  });
  if (!made.ok()) return made.status();
  change.done = "principal " + Quoted(name) + " has another secret" + SecretNote(change) +
                ". Those of before hold too: remove their digests from " + arguments.file +
                " once no program uses them";
  return change;
}

}  // namespace nowcalls::admin
