#include "base/check.h"

#include <cstdio>

#include "base/last_words.h"

namespace nowcalls {

void CheckFailed(const char* file, int line, const char* expression) {
  char text[1024];
  std::snprintf(text, sizeof(text),
                "%s:%d: check failed: %s. The server's memory is no longer trusted; restart it to "
                "recover from the ledger.",
                file, line, expression);
  EndWithLastWords(text);
}

}  // namespace nowcalls
