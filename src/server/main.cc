#include "server/main.h"

#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backup/backup.h"
#include "backup/verify_process.h"
#include "base/exit_codes.h"
#include "base/last_words.h"
#include "base/shown_text.h"
#include "base/standard_descriptors.h"
#include "nowcalls_version.h"
#include "server/additions.h"
#include "server/bootstrap.h"
#include "server/config/config.h"
#include "server/config/settings_page.h"
#include "server/log/logging.h"
#include "server/rules/rule_files.h"
#include "server/security/access_file_watch.h"
#include "server/security/tls_port.h"
#include "store/disk/ledger_files.h"
#include "store/version.h"

namespace nowcalls::server {
namespace {

// The text is the program's output: a full disk is a failure.
int Print(const std::string& text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return kExitOk;
  std::fprintf(stderr, "nowcalls-server: writing the output failed: %s\n",
               std::generic_category().message(errno).c_str());
  return kExitIoError;
}

void PrintError(const std::string& text) {
  std::fprintf(stderr, "nowcalls-server: %s\n", ShownText(text).c_str());
}

Environment OurEnvironment() {
  Environment ours;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (!text.starts_with("NOWCALLS_") || equals == std::string_view::npos) continue;
    ours.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return ours;
}

std::string VersionText() {
  return std::string("nowcalls-server ") + NOWCALLS_VERSION + " (RocksDB " +
         store::RocksDbVersion() + ", libuv " + uv_version_string() + ")\n";
}

// Without a ledger no rules could stay in force in place of a faulty file.
bool HasLedger(const ServerConfig& config) {
  const Status present = store::CheckLedgerPresent(store::LedgerDir(config.data_dir));
  return present.code() != StatusCode::kNotFound;
}

int RunCommandLine(int argc, const char* const* argv, const ServeOptions& options) {
  // 1. Settings; commands that only print need no more.
  const Result<Invocation> invocation = ReadInvocation(argc, argv, OurEnvironment());
  if (!invocation.ok()) {
    PrintError(invocation.status().message());
    std::fputs("nowcalls-server --help lists all settings.\n", stderr);
    return kExitUsage;
  }
  if (invocation->command == Command::kHelp) return Print(HelpText());
  if (invocation->command == Command::kHelpMan) return Print(HelpManPage());
  if (invocation->command == Command::kHelpMarkdown) return Print(SettingsPage());
  if (invocation->command == Command::kVersion) return Print(VersionText());
  // 2. Rule files. A start with a ledger may fall back to its rules; a check, or a new ledger, may
  //    not.
  std::vector<LoadedRuleFile> rules =
      ReadRuleFiles(invocation->config.rules, invocation->config.rules_strict);
  const bool checks = invocation->command == Command::kCheckConfig;
  if (const Status wrong = CheckRuleFiles(rules);
      !wrong.ok() && (checks || !HasLedger(invocation->config))) {
    PrintError(wrong.message());
    return kExitUsage;
  }
  if (checks) {
    if (const Status wrong = ReadAccess(invocation->config).status(); !wrong.ok()) {
      PrintError(wrong.message());
      return kExitUsage;
    }
    if (const auto tls = LoadTls(invocation->config); !tls.ok()) {
      PrintError(tls.status().message());
      return kExitUsage;
    }
    for (const std::string& warning : invocation->warnings) PrintError("warning: " + warning);
    return Print(DescribeSettings(*invocation) + DescribeRules(rules) +
                 "The configuration is valid.\n");
  }
  // 3. Serve. From here on the log has all lines.
  SetUpLogging(invocation->config.log_level, invocation->config.log_format);
  for (const std::string& warning : invocation->warnings) LogAt(Severity::kWarn, warning);
  for (const std::string& sentence : SettingSentences(*invocation)) {
    LogAt(Severity::kDebug, sentence);
  }
  const auto read_again = [argc, argv] { return ReadInvocation(argc, argv, OurEnvironment()); };
  const int exit_code = Serve(invocation->config, read_again, std::move(rules), options);
  // The log's thread may still have lines; an exit does not wait for it.
  FlushLog();
  return exit_code;
}

}  // namespace

int Main(int argc, const char* const* argv, const store::RocksStoreOptions& store) {
  // Before anything can fail or open a file.
  InstallLastWords();
  OccupyStandardDescriptors();
  if (const auto exit_code = backup::RunAsVerifier(argc, argv)) return *exit_code;
  Additions none({});
  return RunCommandLine(argc, argv, {.store = store, .additions = &none});
}

int RunWithin(int argc, const char* const* argv, Additions* additions) {
  InstallLastWords();
  // /proc/self/exe is another program, so copies are verified on a thread.
  return RunCommandLine(argc, argv, {.additions = additions, .verify = backup::VerifyCopy});
}

}  // namespace nowcalls::server
