// Golden vectors: bytes that documents quote and that tests encode and decode.
//
// A file holds lines of the form "name: hex bytes"; spaces between bytes are free, a line that
// starts with a space goes on with the bytes of the line before, '#' starts a comment, and empty
// lines are skipped.
#ifndef NOWCALLS_SUPPORT_GOLDEN_H_
#define NOWCALLS_SUPPORT_GOLDEN_H_

#include <map>
#include <string>
#include <string_view>

namespace nowcalls::testing {

// Every vector of the file by name. Throws std::runtime_error, naming the line, when the file
// cannot be read, a line has another form or a name comes twice.
std::map<std::string, std::string> LoadGolden(const std::string& path);

// The path of data/golden/NAME in the source tree.
std::string GoldenPath(std::string_view name);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_GOLDEN_H_
