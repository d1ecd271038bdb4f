// A source file as the rules of tests/tidy see it: its text, and the same text with everything but
// the code, or everything but the comments, blanked out. Offsets and lines agree between the three.
// Thread: any.
#ifndef NOWCALLS_TIDY_SOURCE_FILE_H_
#define NOWCALLS_TIDY_SOURCE_FILE_H_

#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::tidy {

struct SourceFile {
  std::string path;      // Relative to the source tree, e.g. "src/wire/reader.h".
  std::string text;      // As it is on disk.
  std::string code;      // Comments and the inside of literals are spaces.
  std::string comments;  // All but comments is spaces.

  bool IsHeader() const { return path.ends_with(".h"); }
  bool IsCpp() const { return IsHeader() || path.ends_with(".cc"); }
};

struct Include {
  std::string target;  // What stands between the quotes or brackets.
  int line;            // From 1.
};

SourceFile ParseSource(std::string path, std::string text);

// All C++, CMake, Python and shell files below src, include, tools and tests, and the
// CMakeLists.txt and .ci/run of the top level, by path. REQUIRES: root is a source tree.
std::vector<SourceFile> LoadTree(const std::string& root);

std::vector<Include> Includes(const SourceFile& file);

std::vector<std::string_view> Lines(std::string_view text);

// A letter, a digit or an underscore.
bool IsWordChar(char c);

// Whether `word` stands in `text` with no such character beside it.
bool HasWord(std::string_view text, std::string_view word);

// The line, from 1, of an offset.
int LineAt(std::string_view text, size_t offset);

}  // namespace nowcalls::tidy

#endif  // NOWCALLS_TIDY_SOURCE_FILE_H_
