#include "admin/rules_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/limits.h"

namespace nowcalls::admin {
namespace {

constexpr size_t kChunkBytes = 64 * 1024;

Status Unreadable(const std::string& name, int error) {
  const std::string message = "cannot read " + name + ": " + std::strerror(error);
  switch (error) {
    // A wrong name is the operator's mistake; anything else is the system's.
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP: return Status::InvalidArgument(message);
    default: return Status::IoError(message);
  }
}

Result<std::string> ReadText(const std::string& path) {
  const std::string name = RulesFileName(path);
  const bool standard = IsStandardInput(path);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(
      standard ? stdin : std::fopen(path.c_str(), "rbe"),
      // Standard input is the process's, and stays open.
      standard ? [](FILE*) { return 0; } : std::fclose);
  if (file == nullptr) return Unreadable(name, errno);
  std::string text;
  size_t got = 0;
  do {
    // By chunks, since standard input and pipes tell no size. The bound is looked at after each.
    const size_t had = text.size();
    text.resize(had + kChunkBytes);
    got = std::fread(text.data() + had, 1, kChunkBytes, file.get());
    text.resize(had + got);
    if (text.size() > kRulesFileBytesMax) {
      return Status::InvalidArgument(name + " is longer than " +
                                     std::to_string(kRulesFileBytesMax) + " bytes");
    }
  } while (got > 0);
  if (std::ferror(file.get()) != 0) return Unreadable(name, errno);
  return text;
}

}  // namespace

bool IsStandardInput(const std::string& path) { return path == "-"; }

std::string RulesFileName(const std::string& path) {
  return IsStandardInput(path) ? "standard input" : path;
}

Result<RulesFile> ReadRulesFile(const std::string& path, std::string_view name_space) {
  Result<std::string> json = ReadText(path);
  if (!json.ok()) return json.status();
  Result<core::ParsedRules> parsed = core::ParseRules(*json, name_space);
  if (!parsed.ok()) return parsed.status().WithContext(RulesFileName(path));
  return RulesFile{*std::move(json), *std::move(parsed)};
}

}  // namespace nowcalls::admin
