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

Result<std::string> ReadText(const std::string& path) {
  const auto unreadable = [&] {
    return Status::InvalidArgument("cannot read " + path + ": " + std::strerror(errno));
  };
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (file == nullptr) return unreadable();
  std::string text;
  size_t got = 0;
  do {
    const size_t had = text.size();
    text.resize(had + kChunkBytes);
    got = std::fread(text.data() + had, 1, kChunkBytes, file.get());
    text.resize(had + got);
    if (text.size() > kRulesFileBytesMax) {
      return Status::InvalidArgument(path + " is longer than " +
                                     std::to_string(kRulesFileBytesMax) + " bytes");
    }
  } while (got > 0);
  if (std::ferror(file.get()) != 0) return unreadable();
  return text;
}

}  // namespace

Result<RulesFile> ReadRulesFile(const std::string& path) {
  Result<std::string> json = ReadText(path);
  if (!json.ok()) return json.status();
  Result<core::ParsedRules> parsed = core::ParseRules(*json);
  if (!parsed.ok()) return parsed.status().WithContext(path);
  return RulesFile{*std::move(json), *std::move(parsed)};
}

}  // namespace nowcalls::admin
