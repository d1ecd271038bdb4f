#include "support/golden.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/hex.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

// Appends the bytes that `text` spells; false when it is not pairs of hex digits.
bool AppendHex(const std::string& text, std::string* bytes) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const Result<std::string> run = FromHex(word);
    if (!run.ok()) return false;
    *bytes += *run;
  }
  return true;
}

}  // namespace

std::map<std::string, std::string> LoadGolden(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  std::map<std::string, std::string> vectors;
  std::string* current = nullptr;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto fail = [&](const char* what) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + what);
    };
    line.resize(std::min(line.size(), line.find('#')));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::string text = line;
    if (line[0] != ' ' && line[0] != '\t') {
      const size_t colon = line.find(':');
      if (colon == 0 || colon == std::string::npos) fail("is not 'name: hex bytes'");
      const auto [it, added] = vectors.try_emplace(line.substr(0, colon));
      if (!added) fail("has a name that came before");
      current = &it->second;
      text.erase(0, colon + 1);
    }
    if (current == nullptr) fail("goes on with nothing");
    if (!AppendHex(text, current)) fail("has bytes that are not two hex digits each");
  }
  return vectors;
}

std::string GoldenPath(std::string_view name) {
  return NOWCALLS_SOURCE_DIR "/data/golden/" + std::string(name);
}

}  // namespace nowcalls::testing
