// Rules about one file's text: lengths, header guards, and what may not be called or written.
// Thread: any.
#ifndef NOWCALLS_TIDY_CODE_RULES_H_
#define NOWCALLS_TIDY_CODE_RULES_H_

#include <string_view>

#include "tidy/include_rules.h"
#include "tidy/source_file.h"

namespace nowcalls::tidy {

inline constexpr int kLineColumnsMax = 100;
inline constexpr int kFileLinesMax = 600;
inline constexpr int kFunctionLinesMax = 70;

Findings CheckLengths(const SourceFile& file);

// Characters of a UTF-8 line.
int ColumnsOf(std::string_view line);

// Functions whose body opens and closes in the first column; clang-tidy measures the others.
Findings CheckFunctionLengths(const SourceFile& file);

// The guard is named after the path by which others include the header, and the file opens with a
// comment.
Findings CheckHeaderShape(const SourceFile& file);

Findings CheckBans(const SourceFile& file);

}  // namespace nowcalls::tidy

#endif  // NOWCALLS_TIDY_CODE_RULES_H_
