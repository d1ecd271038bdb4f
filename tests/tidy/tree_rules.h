// Rules about the tree as a whole. Thread: any.
#ifndef NOWCALLS_TIDY_TREE_RULES_H_
#define NOWCALLS_TIDY_TREE_RULES_H_

#include <string>
#include <vector>

#include "tidy/include_rules.h"
#include "tidy/source_file.h"

namespace nowcalls::tidy {

// The top level holds exactly what README.md describes; dot-files and build/ aside.
Findings CheckTopLevel(const std::vector<std::string>& names);

// No two doctest cases of the tree have the same name.
Findings CheckTestNames(const std::vector<SourceFile>& files);

}  // namespace nowcalls::tidy

#endif  // NOWCALLS_TIDY_TREE_RULES_H_
