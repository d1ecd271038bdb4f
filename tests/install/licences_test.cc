// The manual's table of licences is what the programs are made of.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

using Names = std::set<std::string>;

struct Licensed {
  std::string package;
  std::string version;
  std::string linked;  // "shared", "static", "headers", "embedded".
  Names files;         // What stands in backticks behind it.
  Names programs;
};

std::vector<std::string> SplitAt(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') + 1 - begin));
  }
  return parts;
}

Names InBackticks(const std::string& text) {
  Names names;
  for (size_t open = text.find('`'); open != std::string::npos;) {
    const size_t close = text.find('`', open + 1);
    names.insert(text.substr(open + 1, close - open - 1));
    open = text.find('`', close + 1);
  }
  return names;
}

// The rows of the first table.
std::vector<Licensed> Table() {
  std::istringstream page(ReadFileToString(NOWCALLS_SOURCE_DIR "/tools/manual/licences.md"));
  std::vector<Licensed> rows;
  for (std::string line; std::getline(page, line) && !(rows.size() > 2 && line.empty());) {
    const std::vector<std::string> cells = SplitAt(line, '|');
    if (cells.size() != 5 || cells[0] == "package" || cells[0][0] == '-') continue;
    const std::vector<std::string> programs = SplitAt(cells[4], ',');
    rows.push_back({.package = cells[0],
                    .version = cells[1],
                    .linked = cells[3].substr(0, cells[3].find(' ')),
                    .files = InBackticks(cells[3]),
                    .programs = {programs.begin(), programs.end()}});
  }
  return rows;
}

// The libraries that a program loads by itself, without those of sanitizers and the loader.
Names Needed(const std::string& binary) {
  const Finished read = RunProgram({"/usr/bin/readelf", "-d", binary});
  REQUIRE(read.exit_code == 0);
  Names names;
  std::istringstream lines(read.out);
  for (std::string line; std::getline(lines, line);) {
    if (!Contains(line, "(NEEDED)")) continue;
    const size_t open = line.find('[');
    const std::string name = line.substr(open + 1, line.find(']') - open - 1);
    if (!name.starts_with("ld-") && !Contains(name, "san.so")) names.insert(name);
  }
  return names;
}

// What stands between `begin` and the next `end` in a file of the source tree.
std::string Between(const std::string& file, const std::string& begin, const std::string& end) {
  const std::string text = ReadFileToString(std::string(NOWCALLS_SOURCE_DIR "/") + file);
  const size_t at = text.find(begin);
  REQUIRE(at != std::string::npos);
  return text.substr(at + begin.size(), text.find(end, at) - at - begin.size());
}

}  // namespace

// With sanitizers programs call more of their libraries.
TEST_CASE("each program loads the libraries that the table of licences says, and no others" *
          doctest::skip(kAddressSanitized)) {
  const std::map<std::string, std::string> binaries = {
      {"nowcalls", ProductBinary("nowcalls")},
      {"server", ProductBinary("nowcalls-server")},
      {"admin", ProductBinary("nowcalls-admin")},
      {"bench", ProductBinary("nowcalls-bench")},
      {"etcd", ProductBinary("../lib/nowcalls/nowcalls-etcd.so")},
      {"library", std::string(BUILD_DIR) + "/src/libnowcalls.so"}};
  for (const auto& built : binaries) {
    const std::string& program = built.first;
    const std::string& binary = built.second;
    CAPTURE(program);
    Names told;
    Names allowed;  // A compiler may leave libm out.
    for (const Licensed& row : Table()) {
      if (row.programs.contains(program)) told.insert(row.files.begin(), row.files.end());
      if (row.programs.contains("all")) allowed.insert(row.files.begin(), row.files.end());
    }
    std::erase_if(told, [](const std::string& file) { return file.ends_with(".a"); });
    Names needed = Needed(binary);
    for (const std::string& name : allowed) needed.erase(name);
    CHECK(std::vector<std::string>(told.begin(), told.end()) ==
          std::vector<std::string>(needed.begin(), needed.end()));
  }
}

TEST_CASE("static libraries and packages of the build are those of the table of licences") {
  Names static_files;
  Names packages;
  for (const Licensed& row : Table()) {
    packages.insert(row.package);
    if (row.linked == "static") static_files.insert(row.files.begin(), row.files.end());
  }
  std::istringstream cmake(ReadFileToString(NOWCALLS_SOURCE_DIR "/CMakeLists.txt"));
  Names found;
  for (std::string word; cmake >> word;) {
    if (word.ends_with(".a")) found.insert(word);
  }
  CHECK(found == static_files);

  std::istringstream words(Between("tools/dev", "build_packages=(", ")"));
  for (std::string word; words >> word;) {
    if (word.starts_with("lib") || word.starts_with("nlohmann")) {
      CHECK_MESSAGE(packages.contains(word), word);
    }
  }
}

TEST_CASE("versions of the table of licences are those that are installed") {
  if (!Contains(ReadFileToString("/etc/os-release"), "VERSION_ID=\"12\"")) {
    MESSAGE("skipped: this is not Debian 12");
    return;
  }
  for (const Licensed& row : Table()) {
    const Finished asked = RunProgram({"/usr/bin/dpkg-query", "-W", "-f=${Version}", row.package});
    const std::string version = asked.out.substr(asked.out.find(':') + 1);  // Without an epoch.
    if (asked.exit_code == 0) CHECK_MESSAGE(version.starts_with(row.version), row.package, version);
  }
}

}  // namespace nowcalls::testing
