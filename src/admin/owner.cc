#include "admin/owner.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/os_error.h"
#include "base/text.h"

namespace nowcalls::admin {
namespace {

namespace fs = std::filesystem;

// (uid_t)-1 would change nothing.
std::optional<uint32_t> NumberIn(const std::string& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || number == UINT32_MAX) return std::nullopt;
  return number;
}

Status Unknown(const std::string& what, const std::string& name) {
  return Status::InvalidArgument("--owner: there is no " + what + " " + Quoted(name));
}

std::string NameOfUser(uid_t user) {
  const passwd* known = getpwuid(user);
  return known == nullptr ? std::to_string(user) : known->pw_name;
}

}  // namespace

Result<Owner> FindOwner(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string user = text.substr(0, colon);
  Owner owner;
  const std::optional<uint32_t> number = NumberIn(user);
  const passwd* known = number.has_value() ? getpwuid(*number) : getpwnam(user.c_str());
  // A number need not be a known user: containers have users without names. Its group is then the
  // same number.
  if (known != nullptr) {
    owner = {known->pw_uid, known->pw_gid};
  } else if (number.has_value()) {
    owner = {*number, *number};
  } else {
    return Unknown("user", user);
  }
  if (colon == std::string::npos) return owner;
  const std::string group = text.substr(colon + 1);
  const std::optional<uint32_t> group_number = NumberIn(group);
  const struct group* found = group_number.has_value() ? nullptr : getgrnam(group.c_str());
  if (found == nullptr && !group_number.has_value()) return Unknown("group", group);
  owner.group = found != nullptr ? found->gr_gid : *group_number;
  return owner;
}

Status GiveTo(const std::string& dir, const Owner& owner) {
  const auto give = [&](const std::string& path) -> Status {
    // Not through symbolic links: they may lead out of the ledger.
    if (lchown(path.c_str(), owner.user, owner.group) == 0) return {};
    return OsError("give " + NameOfUser(owner.user), path);
  };
  std::error_code error;
  for (fs::recursive_directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    NOWCALLS_RETURN_IF_ERROR(give(it->path()));
  }
  if (error) return Status::IoError("cannot list " + dir + ": " + error.message());
  // The directory last: until then its new owner cannot take a half-given ledger.
  return give(dir);
}

std::string OwnerNote(const std::string& dir, const std::string& example) {
  struct stat info {};
  if (geteuid() != 0 || stat(example.c_str(), &info) != 0 || info.st_uid == 0) return {};
  const std::string user = NameOfUser(info.st_uid);
  return "its files belong to root, and those that it was made of to " + user +
         ", as whom a server cannot open them: chown -R " + user + " " + dir +
         ", or the same again with --owner " + user + "\n";
}

}  // namespace nowcalls::admin
