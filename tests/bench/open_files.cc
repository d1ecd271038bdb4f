#include "bench/open_files.h"

#include <sys/resource.h>

namespace nowcalls::compare {

void AllowManyOpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // A lower limit is told by whoever needs more.
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace nowcalls::compare
