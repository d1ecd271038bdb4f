// Who may include whom: the layers of src/README.md, the folders within a module, and the few
// modules that each third-party library is confined to. Thread: any.
#ifndef NOWCALLS_TIDY_INCLUDE_RULES_H_
#define NOWCALLS_TIDY_INCLUDE_RULES_H_

#include <string>
#include <vector>

#include "tidy/source_file.h"

namespace nowcalls::tidy {

// "path:line: what is wrong and what to do", empty when all is well. So for every rule.
using Findings = std::vector<std::string>;

Findings CheckIncludes(const SourceFile& file);

// What CMake links a module with is what the module may include. Of src/MODULE/CMakeLists.txt.
Findings CheckDepends(const SourceFile& file);

// The table of layers in `text`, which is that of src/README.md, has a row for each module with
// what it may include: | `core` | ... | base, ledger |.
Findings CheckLayerTable(const std::string& text);

// A .cc file includes the header of its own name first, which proves that the header is complete.
Findings CheckOwnHeaderFirst(const SourceFile& file, bool has_own_header);

}  // namespace nowcalls::tidy

#endif  // NOWCALLS_TIDY_INCLUDE_RULES_H_
