#include "client/security_settings.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/limits.h"
#include "base/os_error.h"
#include "base/text.h"

namespace nowcalls::client {
namespace {

constexpr size_t kSecretFileBytesMax = 4096;

bool SaysTls(const SecuritySettings& settings) {
  return !settings.ca.empty() || !settings.certificate.empty() || !settings.key.empty() ||
         !settings.server_name.empty();
}

Result<bool> WantsTls(const SecuritySettings& options, const SecuritySettings& environment) {
  if (!options.tls.empty() || SaysTls(options)) return true;
  if (environment.tls.empty()) return SaysTls(environment);
  if (environment.tls == "on" || environment.tls == "off") return environment.tls == "on";
  return Status::InvalidArgument("NOWCALLS_TLS: " + Quoted(environment.tls) +
                                 " is neither on nor off");
}

Result<std::string> ReadBounded(int fd, const std::string& path) {
  std::string text(kSecretFileBytesMax + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OsError("read", path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  if (size <= kSecretFileBytesMax) return text;
  return Status::InvalidArgument(path + " has more than " + std::to_string(kSecretFileBytesMax) +
                                 " bytes");
}

std::vector<gid_t> GroupsOfProcess() {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int found = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(found, 0)));
  groups.push_back(getegid());
  return groups;
}

// The file is judged by its descriptor, so that it cannot be replaced in between.
Result<std::string> ReadOwn(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return OsError("look at", path);
  if (!IsSecretFile(info, GroupsOfProcess())) {
    return Status::InvalidArgument("others than its owner may read or write " + path +
                                   ", which has a secret; run: chmod 600 " + path);
  }
  return ReadBounded(fd, path);
}

Result<std::string> ReadSecretFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return OsError("open", path);
  Result<std::string> text = ReadOwn(fd, path);
  close(fd);
  if (!text.ok()) return text;
  std::string secret = text->substr(0, text->find('\n'));
  if (secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) return Status::InvalidArgument(path + " has no secret in its first line");
  if (secret.size() <= kSecretBytesMax) return secret;
  return Status::InvalidArgument("the first line of " + path + " has more than the " +
                                 std::to_string(kSecretBytesMax) + " bytes of a secret");
}

}  // namespace

// Kubernetes gives a mounted secret to root and to the group of fsGroup.
bool IsSecretFile(const struct stat& info, const std::vector<gid_t>& groups) {
  const mode_t others = info.st_mode & (S_IRWXG | S_IRWXO);
  if (others == 0) return true;
  return others == S_IRGRP && info.st_uid == 0 &&
         std::find(groups.begin(), groups.end(), info.st_gid) != groups.end();
}

SecuritySettings SecurityOfEnvironment() {
  SecuritySettings settings;
  for (const SecuritySetting& setting : kSecuritySettings) {
    const char* const text =
        *setting.variable == '\0' ? nullptr : getenv(setting.variable);  // NOLINT(concurrency-*)
    if (text != nullptr) settings.*setting.value = text;
  }
  return settings;
}

Result<Security> ReadSecurity(const SecuritySettings& options,
                              const SecuritySettings& environment) {
  const auto choose = [&](std::string SecuritySettings::*value) {
    return (options.*value).empty() ? environment.*value : options.*value;
  };
  Security security;
  const Result<bool> wants_tls = WantsTls(options, environment);
  if (!wants_tls.ok()) return wants_tls.status();
  if (*wants_tls) {
    security.tls = {.on = true,
                    .ca = choose(&SecuritySettings::ca),
                    .certificate = choose(&SecuritySettings::certificate),
                    .key = choose(&SecuritySettings::key),
                    .server_name = choose(&SecuritySettings::server_name)};
    if (security.tls.certificate.empty() != security.tls.key.empty()) {
      return Status::InvalidArgument("--tls-cert and --tls-key go together: give both, or none");
    }
    NOWCALLS_RETURN_IF_ERROR(CheckTls(security.tls));
  }
  const std::string secret_file = choose(&SecuritySettings::secret_file);
  if (secret_file.empty()) return security;
  Result<std::string> secret = ReadSecretFile(secret_file);
  if (!secret.ok()) {
    return Status::InvalidArgument(
        (options.secret_file.empty() ? "NOWCALLS_SECRET_FILE: " : "--secret-file: ") +
        secret.status().message());
  }
  security.secret = *std::move(secret);
  return security;
}

}  // namespace nowcalls::client
