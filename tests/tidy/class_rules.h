// The rule about the size of classes: at most 40 methods, public and private together, unless the
// class is listed with a reason.
// Thread: any.
#ifndef NOWCALLS_TIDY_CLASS_RULES_H_
#define NOWCALLS_TIDY_CLASS_RULES_H_

#include <string>
#include <vector>

#include "tidy/include_rules.h"
#include "tidy/source_file.h"

namespace nowcalls::tidy {

inline constexpr int kMethodsMax = 40;

struct ClassSize {
  std::string name;  // As its definition has it: "Core", "Engine::Impl".
  size_t line = 0;
  int methods = 0;
};

// The classes and structs that a C++ file defines, in the order of their ends. Counts what they
// declare, each overload by itself; not constructors, destructors, friends, nor what is defaulted
// or deleted. A nested class has its own count.
std::vector<ClassSize> ClassSizes(const SourceFile& file);

Findings CheckClassSizes(const SourceFile& file);

}  // namespace nowcalls::tidy

#endif  // NOWCALLS_TIDY_CLASS_RULES_H_
