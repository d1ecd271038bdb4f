#include "backup/manifest.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::backup {
namespace {

Manifest Sample() {
  Manifest manifest;
  manifest.made_by = "nowcalls-server 1.2.3";
  manifest.made_wall_ms = 1'700'000'000'123;
  manifest.batch_number = 7;
  manifest.tokens = 3;
  manifest.now_calls = 5;
  manifest.sessions = 2;
  manifest.rules = 4;
  manifest.history = 1;
  manifest.files = {{"000012.sst", 1234, 0x00abcdef}, {"CURRENT", 16, 0xffffffff}};
  return manifest;
}

// The sample with one text in place of another, and the checksum that then is right.
Status DecodeWith(const std::string& name) {
  Manifest manifest = Sample();
  manifest.files[0].name = name;
  return DecodeManifest(EncodeManifest(manifest)).status();
}

TEST_CASE("a manifest is read as it was written, and tells what it counts") {
  const Result<Manifest> read = DecodeManifest(EncodeManifest(Sample()));
  REQUIRE_MESSAGE(read.ok(), read.status().ToString());
  CHECK(*read == Sample());
  CHECK(read->bytes() == 1250);
  CHECK(read->CountsText() ==
        "batch 7: 3 tokens with nowCalls 5, 2 sessions, 4 rules, 1 history row");
}

TEST_CASE("a manifest with a changed byte is refused, or still says the same") {
  const std::string text = EncodeManifest(Sample());
  size_t refused = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    for (const int mask : {1, 2, 4, 8, 16, 32, 64, 128}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      const Result<Manifest> read = DecodeManifest(changed);
      if (read.ok()) {
        CHECK(*read == Sample());
      } else {
        ++refused;
      }
    }
  }
  CHECK(refused > text.size() * 6);
  for (size_t size = 0; size + 1 < text.size(); size += 7) {
    CHECK_FALSE(DecodeManifest(text.substr(0, size)).ok());
  }
}

TEST_CASE("a manifest names files of one directory, each once") {
  CHECK(DecodeWith("000013.log").ok());
  for (const char* name : {"", ".", "..", "../LOCK", "a/b", "/etc/passwd", "a\nb", "CURRENT"}) {
    CAPTURE(name);
    CHECK(DecodeWith(name).code() == StatusCode::kCorruption);
  }
}

TEST_CASE("a manifest that is nested deeper or longer than any is refused before it is parsed") {
  constexpr const char* kTooMuch =
      "it is not what was written: it is nested deeper or has more values than any";
  const std::string begin =
      R"({"kind":"nowcalls-backup","version":1,"manifest_crc32c":"00000000",)";
  for (const size_t levels : {size_t{3}, size_t{400'000}}) {
    const std::string deep = std::string(levels, '[') + std::string(levels, ']') + "}";
    const Status status = DecodeManifest(begin + R"("a\"[":"[[[[","b":)" + deep).status();
    CHECK(status.code() == StatusCode::kCorruption);
    CHECK(status.message() == kTooMuch);
  }
  std::string many = begin + R"("b":[{})";
  for (int i = 0; i < 2'600'000; ++i) many += ",{}";
  CHECK(DecodeManifest(many + "]}").status().message() == kTooMuch);
  // Brackets of strings do not count.
  const Status status = DecodeManifest(begin + R"("a\\\"[":"[[[[","b":[[]]})").status();
  CHECK(status.message() == "its checksum does not match its content");
}

TEST_CASE("a manifest of another version is refused, naming both") {
  std::string text = EncodeManifest(Sample());
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  const Status refused = DecodeManifest(text).status();
  CHECK(refused.code() == StatusCode::kFailedPrecondition);
  CHECK(refused.message().find("version 2") != std::string::npos);
  CHECK(refused.message().find("version 1") != std::string::npos);
}

TEST_CASE("a directory without a manifest is no backup, and one that was begun is told as that") {
  const testing::TempDir dir;
  CHECK(ReadManifest(dir.path()).status().ToString().find("is no backup") != std::string::npos);
  testing::WriteStringToFile(UnfinishedPath(dir.path()), "");
  const Status unfinished = ReadManifest(dir.path()).status();
  CHECK(unfinished.code() == StatusCode::kNotFound);
  CHECK(unfinished.message().find("was never finished") != std::string::npos);
  testing::WriteStringToFile(ManifestPath(dir.path()), EncodeManifest(Sample()));
  CHECK(ReadManifest(dir.path()).ok());
  std::filesystem::remove(ManifestPath(dir.path()));
  REQUIRE(mkfifo(ManifestPath(dir.path()).c_str(), 0600) == 0);
  CHECK(ReadManifest(dir.path()).status().code() == StatusCode::kCorruption);
}

}  // namespace
}  // namespace nowcalls::backup
