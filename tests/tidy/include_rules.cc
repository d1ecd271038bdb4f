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
      {"net", {"base"}},
      {"access", {"base", "net"}},
      {"wire", {"base"}},
      {"ledger", {"base"}},
      {"cluster", {"base", "ledger"}},
      {"etcd", {"base", "cluster"}},
      {"core", {"base", "ledger"}},
      {"store", {"base", "ledger"}},
      {"backup", {"base", "ledger", "core", "store"}},
      {"engine", {"base", "net", "access", "wire", "ledger", "core"}},
      {"node", {"base", "ledger", "core", "engine", "store", "recovery"}},
      {"client", {"base", "net", "wire"}},
      {"library", {"base", "net", "wire", "client"}},
      {"command", {"base", "net", "wire", "client", "library"}},
      {"recovery", {"base", "ledger", "core", "store"}},
      {"member", {"base", "ledger", "cluster", "store", "recovery", "node"}},
      {"embedded",
       {"base", "net", "wire", "ledger", "core", "engine", "node", "store", "recovery", "client",
        "library"}},
      {"web", {"base", "net", "access", "wire", "client"}},
      {"server",
       {"base", "net", "access", "wire", "ledger", "core", "engine", "node", "store", "backup",
        "recovery", "cluster", "member", "client", "web"}},
      {"admin", {"base", "net", "access", "wire", "ledger", "core", "store", "backup", "client"}},
      {"bench", {"base", "net", "wire", "client"}},
  };
  return matrix;
}

// What a folder of a module may include of that module besides itself; "" is the module's top.
const std::map<std::string, std::map<std::string, Names, std::less<>>, std::less<>>& Folders() {
  static const std::map<std::string, std::map<std::string, Names, std::less<>>, std::less<>>
      folders = {{"core",
                  {{"", {"tables", "grants", "rates", "expiry", "rules"}},
                   {"grants", {"", "tables", "rates"}},
                   {"rates", {"", "tables", "rules"}},
                   {"expiry", {"", "tables"}},
                   {"tables", {"", "rules"}},
                   {"rules", {}}}},
                 {"server",
                  {{"",
                    {"cluster", "commit", "config", "etcd", "files", "log", "loop", "rules",
                     "security", "threads"}},
                   {"cluster", {"", "config", "etcd", "log", "rules"}},
                   {"etcd", {"config"}},
                   {"commit", {"config", "log", "threads"}},
                   {"loop", {"log", "security"}},
                   {"rules", {"config", "etcd", "files", "log"}},
                   {"security", {"config", "files", "log"}},
                   {"threads", {"log"}},
                   {"config", {"log"}},
                   {"files", {}},
                   {"log", {}}}},
                 {"engine", {{"", {"rpc", "sentinel"}}, {"rpc", {""}}, {"sentinel", {""}}}},
                 {"wire", {{"", {}}, {"sentinel", {""}}}},
                 {"web", {{"", {"sentinel"}}, {"sentinel", {""}}}},
                 {"store",
                  {{"", {}},
                   {"disk", {}},
                   {"memtable", {}},
                   {"log", {"disk"}},
                   {"rocks", {"", "disk", "log", "memtable"}},
                   {"salvage", {"", "disk", "log", "rocks"}}}}};
  return folders;
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
      {"liburing.h", {"net"}},
      {"spdlog/", {"server"}},
      {"fmt/", {"server"}},
      {"nlohmann/",
       {"core", "wire", "backup", "client", "admin", "bench", "server", "web", "cluster",
        "member"}},
      {"microhttpd.h", {"web"}},
      {"gnutls/", {"web"}},
      {"curl/", {"web", "server"}},
      {"systemd/", {"server"}},
      {"CLI/", {"base", "tools", "server", "admin", "bench", "command"}},
      {"absl/", {"core", "engine", "backup", "admin"}},
      {"openssl/", {"net", "access"}},
      {"grpcpp/", {"etcd"}},
      {"grpc/", {"etcd"}},
      {"toml++/", {"access", "server"}},
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

// The folder that a path within a module, "rocks/a.h", is in; "" for "a.h".
std::string_view FolderIn(std::string_view path) {
  const size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
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

// Of a file in the folder `from` of `module`, which includes one in its folder `to`.
std::string CheckFolderInclude(std::string_view module, std::string_view from,
                               std::string_view to) {
  const auto folders = Folders().find(module);
  if (folders == Folders().end() || from == to) return {};
  const auto allowed = folders->second.find(from);
  if (allowed == folders->second.end()) {
    return std::string(module) + "/" + std::string(from) +
           " is no folder of the include matrix of " + std::string(module);
  }
  if (allowed->second.contains(to)) return {};
  const auto name = [&](std::string_view folder) {
    return folder.empty() ? "the top of " + std::string(module)
                          : std::string(module) + "/" + std::string(folder);
  };
  return name(from) + " may not include " + name(to);
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
  if (target == "test_paths.h" && unit == "tests") return {};
  if (target == "nowcalls_version.h") return unit == "include" ? "not part of the public API" : "";
  if (quoted && folder != target && unit == "tests" && test_folders.contains(folder)) return {};
  if (folder != target && Matrix().contains(folder)) return CheckProjectInclude(unit, folder);
  return CheckForeignInclude(unit, target, quoted);
}

// The cells of a row of a table, without the blanks around them.
std::vector<std::string> CellsOf(std::string_view row) {
  std::vector<std::string> cells;
  for (row.remove_prefix(1); !row.empty();) {
    const size_t end = std::min(row.find('|'), row.size());
    std::string_view cell = row.substr(0, end);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    cells.emplace_back(cell);
    row.remove_prefix(std::min(end + 1, row.size()));
  }
  return cells;
}

}  // namespace

Findings CheckLayerTable(const std::string& text) {
  std::map<std::string, std::string> rows;
  for (const std::string_view line : Lines(text)) {
    if (!line.starts_with("| `")) continue;
    const auto cells = CellsOf(line);
    if (cells.size() == 3) rows.emplace(cells[0].substr(1, cells[0].size() - 2), cells[2]);
  }
  Findings findings;
  for (const auto& [module, allowed] : Matrix()) {
    Names told;
    const std::string row = rows[module];
    for (size_t at = 0; at < row.size() && row != "-";) {
      const size_t end = std::min(row.find(", ", at), row.size());
      told.insert(row.substr(at, end - at));
      at = end + 2;
    }
    if (told == allowed && !row.empty()) continue;
    findings.push_back("src/README.md:1: the table of layers says that " + module +
                       " may include " + List(told) + ", but it may include " + List(allowed));
  }
  return findings;
}

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
    std::string wrong = CheckInclude(unit, target, quoted);
    if (wrong.empty() && file.path.starts_with("src/") && FirstFolder(target) == unit) {
      wrong = CheckFolderInclude(unit, FolderIn(file.path.substr(5 + unit.size())),
                                 FolderIn(target.substr(unit.size() + 1)));
    }
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
