#include "tidy/tree_rules.h"

#include <map>
#include <set>
#include <string_view>

namespace nowcalls::tidy {
namespace {

// The string literals from `at` to the end of the macro's arguments, joined as the compiler does.
std::string JoinedLiterals(const SourceFile& file, size_t at) {
  const size_t end = file.code.find(')', at);
  std::string joined;
  size_t open = file.code.find('"', at);
  while (open < end) {
    const size_t close = file.code.find('"', open + 1);
    if (close == std::string::npos) break;
    joined += file.text.substr(open + 1, close - open - 1);
    open = file.code.find_first_not_of(" \n", close + 1);
    if (open == std::string::npos || file.code[open] != '"') break;
  }
  return joined;
}

}  // namespace

Findings CheckTopLevel(const std::vector<std::string>& names) {
  std::set<std::string> missing = {"CMakeLists.txt", "README.md", "data", "include", "src",
                                   "tests",          "tools"};
  Findings findings;
  for (const auto& name : names) {
    if (name.starts_with(".") || name == "build" || missing.erase(name) > 0) continue;
    findings.push_back(name + ":1: does not belong at the top level");
  }
  for (const auto& name : missing) findings.push_back(name + ":1: is missing at the top level");
  return findings;
}

Findings CheckTestNames(const std::vector<SourceFile>& files) {
  constexpr std::string_view kMacro = "\nTEST_CASE";
  Findings findings;
  std::map<std::string, std::string> first_at;
  for (const auto& file : files) {
    if (!file.IsCpp()) continue;
    for (size_t at = file.code.find(kMacro); at != std::string::npos;
         at = file.code.find(kMacro, at + 1)) {
      const std::string name = JoinedLiterals(file, at);
      const std::string where = file.path + ":" + std::to_string(LineAt(file.code, at + 1));
      const auto [first, is_new] = first_at.emplace(name, where);
      if (is_new) continue;
      findings.push_back(where + ": rename the test; " + first->second + " has the same name");
    }
  }
  return findings;
}

}  // namespace nowcalls::tidy
