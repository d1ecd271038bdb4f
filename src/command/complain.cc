#include "command/complain.h"

#include <cstdio>

#include "base/shown_text.h"

namespace nowcalls::command {

void Complain(std::string_view what) {
  std::fprintf(stderr, "nowcalls: %s\n", ShownText(what).c_str());
}

}  // namespace nowcalls::command
