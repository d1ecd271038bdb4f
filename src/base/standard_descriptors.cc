#include "base/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

#include "base/exit_codes.h"

namespace nowcalls {

// A ledger that is opened as one of them would get what is printed.
void OccupyStandardDescriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() takes the lowest free number. In rising order that is the descriptor itself.
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    // The wrong mode: reading from or writing to it fails, as it did while it was closed.
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", mode | O_CLOEXEC) != descriptor) _exit(kExitIoError);
  }
}

}  // namespace nowcalls
