#include "command/main.h"

#include <stdlib.h>

#include <cstdio>
#include <string>

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

}  // namespace

int Main(int argc, const char* const* argv) {
  InstallLastWords();
  OccupyStandardDescriptors();
  const ParsedArguments parsed =
      ParseArguments(argc, argv,
                     {.server = FromEnvironment("NOWCALLS_SERVER"),
                      .name_space = FromEnvironment("NOWCALLS_NAMESPACE"),
                      .client_id = FromEnvironment("NOWCALLS_CLIENT_ID")});
  if (parsed.ends) {
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.err.c_str(), stderr);
    return parsed.exit_code;
  }
  switch (parsed.arguments.command) {
    case Command::kExec: return Exec(parsed.arguments);
    case Command::kAcquire: return AcquireForScript(parsed.arguments);
    case Command::kRelease: return ReleaseForScript(parsed.arguments);
    case Command::kKeep: return KeepForScript(parsed.arguments);
    case Command::kFlow: return ShowFlow(parsed.arguments);
    case Command::kPing: return Ping(parsed.arguments);
    case Command::kTop: return Top(parsed.arguments);
  }
  return 0;
}

}  // namespace nowcalls::command
