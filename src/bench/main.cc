#include "bench/main.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "base/exit_codes.h"
#include "base/standard_descriptors.h"
#include "bench/arguments.h"
#include "bench/commands.h"

namespace nowcalls::bench {
namespace {

// 0, or the errno of why it cannot.
int WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

int Main(int argc, const char* const* argv) {
  OccupyStandardDescriptors();
  // A reader that leaves makes the write fail with EPIPE, which ends with 74 and a message.
  ::signal(SIGPIPE, SIG_IGN);
  const Streams streams{
      [](std::string_view bytes) { return WriteAll(STDOUT_FILENO, bytes); },
      // Nobody can be told when stderr itself fails.
      [](std::string_view bytes) { static_cast<void>(WriteAll(STDERR_FILENO, bytes)); },
      ::isatty(STDERR_FILENO) == 1};
  const ParsedArguments parsed =
      ParseArguments(argc, argv, ::isatty(STDOUT_FILENO) == 1, client::SecurityOfEnvironment());
  streams.err(parsed.err);
  if (const int error = streams.out(parsed.out); error != 0) {
    streams.err("nowcalls-bench: writing the output failed: " +
                std::generic_category().message(error) + "\n");
    return kExitIoError;
  }
  return parsed.options ? Run(*parsed.options, streams) : parsed.exit_code;
}

}  // namespace nowcalls::bench
