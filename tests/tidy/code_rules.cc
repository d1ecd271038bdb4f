#include "tidy/code_rules.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::tidy {
namespace {

std::string At(const SourceFile& file, size_t line) {
  return file.path + ":" + std::to_string(line) + ": ";
}

// Columns of a UTF-8 line: all bytes but continuation bytes.
int Columns(std::string_view line) {
  return static_cast<int>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

// The first line of a function or of another thing at the left margin that may have more of them.
bool BeginsDeclaration(std::string_view line) {
  return !line.empty() && line[0] != ' ' && line[0] != '}' && line[0] != '#';
}

// Of a function whose head, of one line or more, begins with `line`.
bool IsFunctionHead(std::string_view line) {
  for (std::string_view other : {"namespace", "class", "struct", "enum", "union", "extern"}) {
    if (line.starts_with(other)) return false;
  }
  return true;
}

// The guard follows the path as it is included: "src/wire/reader.h" -> "NOWCALLS_WIRE_READER_H_".
std::string GuardOf(std::string_view path) {
  for (std::string_view prefix : {"src/", "include/nowcalls/", "tests/"}) {
    if (path.starts_with(prefix)) path.remove_prefix(prefix.size());
  }
  std::string guard = "NOWCALLS_";
  for (char c : path) {
    guard += IsWordChar(c) ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : '_';
  }
  return guard + "_";
}

enum class Where { kEverywhere, kHeaders, kOutsideBase, kOutsideCrash };
enum class Use { kWord, kCall, kCallWithArgument };

struct Ban {
  std::string_view word;
  Use use;
  Where where;
  std::string_view instead;
};

constexpr std::string_view kClock = "take the time as an argument, or ask base/clock.h";
constexpr std::string_view kRandom = "draw from the Prng in base/prng.h";
constexpr std::string_view kSleep = "wait for the event itself, or poll through tests/support";

constexpr std::string_view kPrefetch = "GCC may leave it out; use base/prefetch.h";

constexpr Ban kBans[] = {
    {"__builtin_prefetch", Use::kCall, Where::kOutsideBase, kPrefetch},
    {"time", Use::kCallWithArgument, Where::kOutsideBase, kClock},
    {"gettimeofday", Use::kCall, Where::kOutsideBase, kClock},
    {"clock_gettime", Use::kCall, Where::kOutsideBase, kClock},
    {"system_clock", Use::kWord, Where::kOutsideBase, kClock},
    {"steady_clock", Use::kWord, Where::kOutsideBase, kClock},
    {"high_resolution_clock", Use::kWord, Where::kOutsideBase, kClock},
    {"rand", Use::kCall, Where::kOutsideBase, kRandom},
    {"srand", Use::kCall, Where::kOutsideBase, kRandom},
    {"random_device", Use::kWord, Where::kOutsideBase, kRandom},
    {"mt19937", Use::kWord, Where::kOutsideBase, kRandom},
    {"mt19937_64", Use::kWord, Where::kOutsideBase, kRandom},
    {"default_random_engine", Use::kWord, Where::kOutsideBase, kRandom},
    {"getrandom", Use::kCall, Where::kOutsideBase, kRandom},
    {"getentropy", Use::kCall, Where::kOutsideBase, kRandom},
    {"sleep", Use::kCall, Where::kOutsideCrash, kSleep},
    {"usleep", Use::kCall, Where::kOutsideCrash, kSleep},
    {"nanosleep", Use::kCall, Where::kOutsideCrash, kSleep},
    {"clock_nanosleep", Use::kCall, Where::kOutsideCrash, kSleep},
    {"sleep_for", Use::kCall, Where::kOutsideCrash, kSleep},
    {"sleep_until", Use::kCall, Where::kOutsideCrash, kSleep},
    {"endl", Use::kWord, Where::kEverywhere, "'\\n'; flush where it matters"},
    {"assert", Use::kCall, Where::kEverywhere, "NOWCALLS_CHECK from base/check.h"},
    {"using namespace", Use::kWord, Where::kHeaders, "name what the header uses"},
};

bool Applies(const Ban& ban, const SourceFile& file) {
  // The system's calls as tests have them: they define what others are banned from calling.
  const bool replaces_calls = file.path.starts_with("tests/shim/");
  switch (ban.where) {
    case Where::kEverywhere: return true;
    case Where::kHeaders: return file.IsHeader();
    case Where::kOutsideBase: return !file.path.starts_with("src/base/") && !replaces_calls;
    case Where::kOutsideCrash: return !file.path.starts_with("tests/crash/") && !replaces_calls;
  }
  return true;
}

bool IsUse(Use use, std::string_view code, size_t begin, size_t end) {
  if (begin > 0 && IsWordChar(code[begin - 1])) return false;
  if (end < code.size() && IsWordChar(code[end])) return false;
  if (code.substr(end).starts_with(".h>")) return false;  // The name of a library's header.
  if (use == Use::kWord) return true;
  const auto before = code.substr(0, begin);
  if (before.ends_with(".") || before.ends_with("->")) return false;
  const size_t open = code.find_first_not_of(" \n", end);
  if (open == std::string_view::npos || code[open] != '(') return false;
  const size_t argument = code.find_first_not_of(" \n", open + 1);
  return use == Use::kCall || (argument != std::string_view::npos && code[argument] != ')');
}

void FindBan(const Ban& ban, const SourceFile& file, Findings* findings) {
  const std::string_view code = file.code;
  for (size_t at = code.find(ban.word); at != std::string_view::npos;
       at = code.find(ban.word, at + 1)) {
    if (!IsUse(ban.use, code, at, at + ban.word.size())) continue;
    findings->push_back(At(file, static_cast<size_t>(LineAt(code, at))) + std::string(ban.word) +
                        " is banned here; instead: " + std::string(ban.instead));
  }
}

}  // namespace

Findings CheckLengths(const SourceFile& file) {
  Findings findings;
  const auto lines = Lines(file.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (Columns(lines[i]) <= kLineColumnsMax) continue;
    findings.push_back(At(file, i + 1) + "break the line at column 100");
  }
  if (lines.size() > kFileLinesMax) {
    findings.push_back(At(file, lines.size()) + "split the file; it has more than 600 lines");
  }
  return findings;
}

int ColumnsOf(std::string_view line) { return Columns(line); }

Findings CheckFunctionLengths(const SourceFile& file) {
  if (!file.IsCpp()) return {};
  Findings findings;
  const auto lines = Lines(file.code);
  size_t head = 0;  // Line of the declaration that is not complete yet; 0: there is none.
  size_t open = 0;  // Line of the function whose end is to come.
  for (size_t i = 0; i < lines.size(); ++i) {
    if (BeginsDeclaration(lines[i])) head = i + 1;
    const char last = lines[i].empty() ? '\0' : lines[i].back();
    if (head != 0 && last == '{' && IsFunctionHead(lines[head - 1])) open = head;
    if (last == '{' || last == '}' || last == ';') head = 0;
    if (open == 0 || !lines[i].starts_with("}")) continue;
    if (i + 1 - open > kFunctionLinesMax) {
      findings.push_back(At(file, open) + "split the function; it has more than 70 lines");
    }
    open = 0;
  }
  return findings;
}

Findings CheckHeaderShape(const SourceFile& file) {
  if (!file.IsHeader()) return {};
  Findings findings;
  const std::string guard = GuardOf(file.path);
  if (file.text.find("\n#ifndef " + guard + "\n#define " + guard + "\n") == std::string::npos ||
      !file.text.ends_with("\n#endif  // " + guard + "\n")) {
    findings.push_back(At(file, 1) + "guard the header with " + guard);
  }
  if (!file.text.starts_with("// ")) {
    findings.push_back(At(file, 1) + "open with a comment: purpose, thread, ownership, errors");
  }
  return findings;
}

Findings CheckBans(const SourceFile& file) {
  if (!file.IsCpp()) return {};
  Findings findings;
  for (const Ban& ban : kBans) {
    if (Applies(ban, file)) FindBan(ban, file, &findings);
  }
  const std::string_view comments = file.comments;
  for (std::string_view word : {"FIXME", "TODO"}) {
    for (size_t at = comments.find(word); at != std::string_view::npos;
         at = comments.find(word, at + 1)) {
      findings.push_back(At(file, static_cast<size_t>(LineAt(comments, at))) + std::string(word) +
                         " is banned here; instead: do it now, or write down what holds today");
    }
  }
  return findings;
}

}  // namespace nowcalls::tidy
