#include "backup/manifest.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/counted.h"
#include "base/crc32c.h"
#include "base/json_shape.h"
#include "base/text.h"
#include "store/disk/data_dir.h"
#include "store/disk/ledger_files.h"

namespace nowcalls::backup {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKind = "nowcalls-backup";
constexpr std::string_view kChecksum = "manifest_crc32c";
constexpr int64_t kWallMsMax = int64_t{1} << 53;
// Room for a million names, far beyond any ledger.
constexpr uint64_t kManifestBytesMax = 64 * 1024 * 1024;
// An object with a list of objects of three members each.
constexpr JsonShape kShapeMax{.depth = 3, .values = 5'000'000};

std::string CrcText(uint32_t crc) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(8, '0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = kDigits[(crc >> (28 - 4 * i)) & 15];
  return text;
}

Result<uint32_t> ParseCrc(const std::string& text) {
  uint32_t crc = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), crc, 16);
  // Only lower-case text of 8 digits: a manifest has one spelling.
  if (error == std::errc() && end == text.data() + text.size() && CrcText(crc) == text) return crc;
  return Status::Corruption(Quoted(text) + " is no checksum");
}

// Covers the manifest without its own checksum.
std::string ChecksumOf(Json json) {
  json.erase(std::string(kChecksum));
  return CrcText(Crc32c(json.dump()));
}

// Rejects paths: a manifest must not make Restore write outside its directory.
bool IsFileName(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), plain);
}

Result<std::vector<store::CopiedFile>> DecodeFiles(const Json& list) {
  std::vector<store::CopiedFile> files;
  std::set<std::string> names;
  for (const Json& entry : list) {
    store::CopiedFile file;
    file.name = entry.at("name").get<std::string>();
    file.bytes = entry.at("bytes").get<uint64_t>();
    const Result<uint32_t> crc = ParseCrc(entry.at("crc32c").get<std::string>());
    if (!crc.ok()) return crc.status();
    file.crc32c = *crc;
    if (!IsFileName(file.name) || !names.insert(file.name).second) {
      return Status::Corruption(Quoted(file.name) + " is no name of a file, or occurs twice");
    }
    files.push_back(std::move(file));
  }
  return files;
}

Result<Manifest> Decode(const Json& json) {
  // Kind, version, checksum, then content: a later version may compute its checksum differently.
  if (json.at("kind").get<std::string>() != kKind) {
    return Status::Corruption("it is not the manifest of a backup");
  }
  const auto version = json.at("version").get<int64_t>();
  if (version != kManifestVersion) {
    return Status::FailedPrecondition(
        "it has version " + std::to_string(version) + ", and this program knows version " +
        std::to_string(kManifestVersion) + ": use the version of nowcalls that made it");
  }
  if (json.at(std::string(kChecksum)).get<std::string>() != ChecksumOf(json)) {
    return Status::Corruption("its checksum does not match its content");
  }
  Manifest manifest;
  manifest.made_by = json.at("made_by").get<std::string>();
  manifest.made_wall_ms = json.at("made_wall_ms").get<int64_t>();
  if (manifest.made_wall_ms < 0 || manifest.made_wall_ms > kWallMsMax) {
    return Status::Corruption("made_wall_ms is out of range");
  }
  manifest.batch_number = json.at("batch_number").get<uint64_t>();
  manifest.tokens = json.at("tokens").get<uint64_t>();
  manifest.now_calls = json.at("now_calls").get<uint64_t>();
  manifest.sessions = json.at("sessions").get<uint64_t>();
  manifest.rules = json.at("rules").get<uint64_t>();
  manifest.history = json.at("history").get<uint64_t>();
  Result<std::vector<store::CopiedFile>> files = DecodeFiles(json.at("files"));
  if (!files.ok()) return files.status();
  manifest.files = *std::move(files);
  return manifest;
}

}  // namespace

uint64_t Manifest::bytes() const {
  uint64_t sum = 0;
  for (const store::CopiedFile& file : files) sum += file.bytes;
  return sum;
}

void Manifest::SetCounts(const VerifySummary& summary) {
  batch_number = summary.batch_number;
  tokens = summary.tokens;
  now_calls = summary.now_calls;
  sessions = summary.sessions;
  rules = summary.rules;
  history = summary.history;
}

std::string Manifest::CountsText() const {
  return "batch " + std::to_string(batch_number) + ": " + Counted(tokens, "token") +
         " with nowCalls " + std::to_string(now_calls) + ", " + Counted(sessions, "session") +
         ", " + Counted(rules, "rule") + ", " + Counted(history, "history row");
}

std::string ManifestPath(const std::string& backup_dir) {
  return backup_dir + "/" + store::kBackupManifestName;
}

std::string UnfinishedPath(const std::string& backup_dir) {
  return backup_dir + "/" + store::kBackupUnfinishedName;
}

std::string EncodeManifest(const Manifest& manifest) {
  Json files = Json::array();
  for (const store::CopiedFile& file : manifest.files) {
    files.push_back(
        Json{{"name", file.name}, {"bytes", file.bytes}, {"crc32c", CrcText(file.crc32c)}});
  }
  Json json = {{"kind", kKind},
               {"version", kManifestVersion},
               {"made_by", manifest.made_by},
               {"made_at", WallText(manifest.made_wall_ms)},
               {"made_wall_ms", manifest.made_wall_ms},
               {"batch_number", manifest.batch_number},
               {"tokens", manifest.tokens},
               {"now_calls", manifest.now_calls},
               {"sessions", manifest.sessions},
               {"rules", manifest.rules},
               {"history", manifest.history},
               {"files", std::move(files)}};
  json[std::string(kChecksum)] = ChecksumOf(json);
  return json.dump(1) + "\n";
}

Result<Manifest> DecodeManifest(std::string_view json) {
  // Json's copies and dumps recurse, and take many times the text's memory: bound both first.
  const JsonShape shape = ShapeOfJson(json, kShapeMax);
  if (shape.depth > kShapeMax.depth || shape.values > kShapeMax.values) {
    return Status::Corruption(
        "it is not what was written: it is nested deeper or has more values than any");
  }
  try {
    return Decode(Json::parse(json));
  } catch (const nlohmann::json::exception& error) {
    return Status::Corruption(std::string("it is not what was written: ") + error.what());
  }
}

Result<Manifest> ReadManifest(const std::string& backup_dir) {
  const std::string path = ManifestPath(backup_dir);
  const Result<bool> there = store::IsThere(path);
  if (!there.ok()) return there.status();
  if (!*there) {
    // Both cases are kNotFound. The text tells an unfinished backup from no backup.
    std::error_code ignored;
    if (std::filesystem::exists(UnfinishedPath(backup_dir), ignored)) {
      return Status::NotFound("the backup in " + backup_dir +
                              " was never finished, so it does not count: remove it, and use "
                              "another one");
    }
    return Status::NotFound(backup_dir + " is no backup: there is no " + path);
  }
  // A FIFO or a device would block the reader.
  NOWCALLS_RETURN_IF_ERROR(store::CheckMayBeFile(path));
  const Result<uint64_t> bytes = store::FileBytes(path);
  if (!bytes.ok()) return bytes.status();
  if (*bytes > kManifestBytesMax) return Status::Corruption(path + " is too large");
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::IoError("cannot open " + path + ": " + std::strerror(errno));
  std::stringstream text;
  text << file.rdbuf();
  if (!file.good()) return Status::IoError("cannot read " + path);
  Result<Manifest> manifest = DecodeManifest(text.str());
  if (!manifest.ok()) return manifest.status().WithContext(path);
  return manifest;
}

}  // namespace nowcalls::backup
