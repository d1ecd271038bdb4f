#include "command/main.h"

#include <stdlib.h>

#include <cstdio>
#include <string>

#include "base/exit_codes.h"
#include "base/last_words.h"
#include "base/standard_descriptors.h"
#include "command/arguments.h"
#include "command/exec.h"
#include "command/watch.h"

namespace nowcalls::command {
namespace {

std::string FromEnvironment(const char* variable) {
  const char* const value = ::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

// Whether all output was written; complains if not.
bool Written() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  std::fputs("nowcalls: writing the output failed\n", stderr);
  return false;
}

int Run(const Arguments& arguments) {
  switch (arguments.command) {
    case Command::kExec: return Exec(arguments);
    case Command::kAcquire: return AcquireForScript(arguments);
    case Command::kRelease: return ReleaseForScript(arguments);
    case Command::kKeep: return KeepForScript(arguments);
    case Command::kFlow: return ShowFlow(arguments);
    case Command::kPing: return Ping(arguments);
    case Command::kTop: return Top(arguments);
  }
  return kExitOk;
}

}  // namespace

int Main(int argc, const char* const* argv) {
  InstallLastWords();
  OccupyStandardDescriptors();
  const ParsedArguments parsed =
      ParseArguments(argc, argv,
                     {.server = FromEnvironment("NOWCALLS_SERVER"),
                      .name_space = FromEnvironment("NOWCALLS_NAMESPACE"),
                      .client_id = FromEnvironment("NOWCALLS_CLIENT_ID"),
                      .security = client::SecurityOfEnvironment()});
  if (parsed.ends) {
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.err.c_str(), stderr);
    return Written() ? parsed.exit_code : kExitIoError;
  }
  const int code = Run(parsed.arguments);
  return Written() ? code : kExitIoError;
}

}  // namespace nowcalls::command
