#include "server/main.h"

#include <uv.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/exit_codes.h"
#include "nowcalls_version.h"
#include "server/bootstrap.h"
#include "server/config.h"
#include "server/logging.h"
#include "server/rule_files.h"
#include "store/version.h"

namespace nowcalls::server {
namespace {

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

int Refuse(const Status& failure) {
  std::fprintf(stderr, "nowcalls-server: %s\nnowcalls-server --help lists all settings.\n",
               failure.message().c_str());
  return kExitUsage;
}

std::string VersionText() {
  return std::string("nowcalls-server ") + NOWCALLS_VERSION + " (RocksDB " +
         store::RocksDbVersion() + ", libuv " + uv_version_string() + ")\n";
}

}  // namespace

int Main(int argc, const char* const* argv) {
  const Result<Invocation> invocation = ReadInvocation(argc, argv, [](const char* name) {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no other thread runs yet.
  });
  if (!invocation.ok()) return Refuse(invocation.status());
  if (invocation->command == Command::kHelp || invocation->command == Command::kVersion) {
    Print(invocation->command == Command::kHelp ? HelpText() : VersionText());
    return kExitOk;
  }
  Result<std::vector<LoadedRuleFile>> rules = ReadRuleFiles(invocation->config.rules);
  if (!rules.ok()) return Refuse(rules.status());
  if (invocation->command == Command::kCheckConfig) {
    Print(DescribeSettings(*invocation) + DescribeRules(*rules) + "The configuration is valid.\n");
    return kExitOk;
  }
  SetUpLogging(invocation->config.log_level, invocation->config.log_format);
  return Serve(invocation->config, *rules);
}

}  // namespace nowcalls::server
