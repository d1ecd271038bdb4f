#include "tidy/include_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace nowcalls::tidy {
namespace {

using Names = std::set<std::string, std::less<>>;

// What a module may include besides itself and include/nowcalls.
const std::map<std::string, Names, std::less<>>& Matrix() {
  static const std::map<std::string, Names, std::less<>> matrix = {
      {"base", {}},
      {"wire", {"base"}},
      {"ledger", {"base"}},
      {"core", {"base", "ledger"}},
      {"store", {"base", "ledger"}},
      {"backup", {"base", "ledger", "core", "store"}},
      {"engine", {"base", "wire", "ledger", "core"}},
      {"client", {"base", "wire"}},
      {"server", {"base", "wire", "ledger", "core", "engine", "store", "backup"}},
      {"admin", {"base", "wire", "ledger", "core", "store", "backup", "client"}},
      {"bench", {"base", "wire", "client"}},
  };
  return matrix;
}

struct ThirdParty {
  std::string_view prefix;
  Names allowed;  // Besides tests, which may include anything.
};

const std::vector<ThirdParty>& ThirdParties() {
  static const std::vector<ThirdParty> libraries = {
      {"rocksdb/", {"store"}},
      {"msgpack", {"wire"}},
      {"uv.h", {"server", "bench"}},
      {"liburing.h", {"base"}},
      {"spdlog/", {"server"}},
      {"fmt/", {"server"}},
      {"nlohmann/", {"core", "wire", "engine", "backup", "admin", "bench", "server"}},
      {"CLI/", {"tools", "server", "admin", "bench"}},
      {"absl/", {"core", "engine", "backup", "admin"}},
      {"toml++/", {"server"}},
      {"doctest/", {}},
      {"benchmark/", {}},
  };
  return libraries;
}

std::string_view FirstFolder(std::string_view path) { return path.substr(0, path.find('/')); }

// "include", "tools", "tests", or the module of a file below src.
std::string_view UnitOf(std::string_view path) {
  return path.starts_with("src/") ? FirstFolder(path.substr(4)) : FirstFolder(path);
}

bool IsStandardHeader(std::string_view target) {
  return target.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") ==
         std::string_view::npos;
}

bool IsPosixHeader(std::string_view target) {
  static const Names folders = {"sys", "linux", "netinet", "arpa", "net"};
  if (!target.ends_with(".h")) return false;
  return target.find('/') == std::string_view::npos || folders.contains(FirstFolder(target));
}

std::string List(const Names& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "nothing" : list;
}

std::string CheckProjectInclude(std::string_view unit, std::string_view module) {
  if (unit == "include") return "include/nowcalls includes only the standard library and nowcalls/";
  if (unit == "tools" || unit == "tests" || unit == module) return {};
  const Names& allowed = Matrix().at(std::string(unit));
  if (allowed.contains(module)) return {};
  return std::string(unit) + " may include " + List(allowed) + ", not " + std::string(module);
}

std::string CheckForeignInclude(std::string_view unit, const std::string& target, bool quoted) {
  for (const auto& library : ThirdParties()) {
    if (!target.starts_with(library.prefix)) continue;
    if (unit == "tests" || library.allowed.contains(unit)) return {};
    return target + " is only for " + List(library.allowed) + " and tests, not for " +
           std::string(unit);
  }
  if (quoted) return "write " + target + " relative to src/ (in tests: or to tests/)";
  if (IsStandardHeader(target)) return {};
  if (unit == "include") return "include/nowcalls includes only the standard library and nowcalls/";
  if (IsPosixHeader(target)) return {};
  return target + " belongs to no known library; add it to tests/tidy and src/README.md";
}

std::string CheckInclude(std::string_view unit, const std::string& target, bool quoted) {
  static const Names test_folders = {"support", "unit", "integration", "crash", "faults",
                                     "tidy",    "sim",  "fuzz",        "bench", "shim"};
  const std::string_view folder = FirstFolder(target);
  if (folder == "nowcalls") return {};
  if (target == "nowcalls_version.h") return unit == "include" ? "not part of the public API" : "";
  if (quoted && folder != target && unit == "tests" && test_folders.contains(folder)) return {};
  if (folder != target && Matrix().contains(folder)) return CheckProjectInclude(unit, folder);
  return CheckForeignInclude(unit, target, quoted);
}

}  // namespace

Findings CheckDepends(const SourceFile& file) {
  const std::string_view unit = UnitOf(file.path);
  const size_t begin = file.text.find("nowcalls_module(" + std::string(unit));
  if (begin == std::string::npos) return {file.path + ":1: make it a nowcalls_module"};
  if (file.text.find("target_link_libraries") != std::string::npos) {
    return {file.path + ":1: link with DEPENDS and LIBRARIES of nowcalls_module"};
  }
  std::istringstream words(file.text.substr(begin, file.text.find(')', begin) - begin));
  Names depends;
  bool among_them = false;
  for (std::string word; words >> word;) {
    if (word == "DEPENDS" || word == "LIBRARIES") {
      among_them = word == "DEPENDS";
    } else if (among_them) {
      depends.insert(word);
    } else if (word.starts_with("nowcalls_") && word != "nowcalls_module(" + std::string(unit)) {
      return {file.path + ":1: name " + word + " behind DEPENDS, without nowcalls_"};
    }
  }
  const Names& allowed = Matrix().at(std::string(unit));
  if (depends == allowed) return {};
  return {file.path + ":1: DEPENDS is " + List(depends) + ", but it may include " + List(allowed)};
}

Findings CheckIncludes(const SourceFile& file) {
  const std::string_view unit = UnitOf(file.path);
  if (file.path.starts_with("src/") && !Matrix().contains(unit)) {
    return {file.path + ":1: src/" + std::string(unit) + " is no module of the include matrix"};
  }
  Findings findings;
  const auto lines = Lines(file.text);
  for (const auto& [target, line] : Includes(file)) {
    const bool quoted = lines[static_cast<size_t>(line) - 1].find('"') != std::string_view::npos;
    const std::string wrong = CheckInclude(unit, target, quoted);
    if (!wrong.empty()) findings.push_back(file.path + ":" + std::to_string(line) + ": " + wrong);
  }
  return findings;
}

Findings CheckOwnHeaderFirst(const SourceFile& file, bool has_own_header) {
  if (!file.path.ends_with(".cc") || !has_own_header) return {};
  const std::string own =
      file.path.substr(file.path.find('/') + 1, file.path.size() - file.path.find('/') - 4) + ".h";
  const auto includes = Includes(file);
  if (!includes.empty() && includes[0].target == own) return {};
  return {file.path + ":1: include \"" + own + "\" first, which proves that it compiles alone"};
}

}  // namespace nowcalls::tidy
