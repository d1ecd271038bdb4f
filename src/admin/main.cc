#include "admin/main.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

#include "admin/arguments.h"
#include "admin/commands.h"
#include "admin/output.h"
#include "backup/verify_process.h"
#include "base/exit_codes.h"
#include "base/file_limit.h"
#include "base/last_words.h"
#include "base/standard_descriptors.h"

namespace nowcalls::admin {
namespace {

// One line from the terminal, which gives no more than a line at a time.
std::string ReadLine() {
  constexpr size_t kLineBytesMax = 1024;
  char line[kLineBytesMax];
  ssize_t size = -1;
  do {
    size = ::read(STDIN_FILENO, line, sizeof(line));
  } while (size < 0 && errno == EINTR);
  std::string text(line, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return text.substr(0, text.find('\n'));
}

// Empty when the variable is not set.
std::string_view FromEnvironment(const char* variable) {
  const char* const value = ::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

// Of the terminal, else as the environment says, as `watch` does for its command; 0: not known.
size_t ColumnsOfOutput() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0) {
    return size.ws_col;
  }
  const std::string_view text = FromEnvironment("COLUMNS");
  size_t columns = 0;
  std::from_chars(text.data(), text.data() + text.size(), columns);
  return columns;
}

}  // namespace

int Main(int argc, const char* const* argv) {
  // Before anything can fail or open a file.
  InstallLastWords();
  OccupyStandardDescriptors();
  if (const auto exit_code = backup::RunAsVerifier(argc, argv)) return *exit_code;
  // A ledger that is read has all its data files open, and beside a server its logs too.
  RaiseFileLimit();
  ::signal(SIGPIPE, SIG_IGN);
  // Ignored, it would keep from us how a child ended.
  ::signal(SIGCHLD, SIG_DFL);
  Output out(DescriptorSink(STDOUT_FILENO));
  out.SetOnTerminal(::isatty(STDOUT_FILENO) == 1);
  // Nobody can be told when stderr itself fails.
  const auto err = [sink = DescriptorSink(STDERR_FILENO)](std::string_view bytes) {
    static_cast<void>(sink(bytes));
  };
  const Streams streams{
      &out,    err, out.on_terminal(), ::isatty(STDERR_FILENO) == 1, ::isatty(STDIN_FILENO) == 1,
      ReadLine};

  // A usage error, help or version leaves no arguments: what to print is in out and err.
  const ParsedArguments parsed =
      ParseArguments(argc, argv,
                     {FromEnvironment(kServerVariable), FromEnvironment(kFormatVariable),
                      client::SecurityOfEnvironment()});
  if (parsed.arguments.has_value() && !parsed.arguments->wide) out.SetColumns(ColumnsOfOutput());
  out.Write(parsed.out);
  err(parsed.err);
  const int exit_code =
      parsed.arguments.has_value() ? Run(*parsed.arguments, streams) : parsed.exit_code;
  out.Flush();
  if (out.status().ok()) return exit_code;
  // A reader that has seen enough, such as `head`, is no failure worth a message.
  if (!out.reader_gone()) err("nowcalls-admin: " + out.status().message() + "\n");
  return kExitIoError;
}

}  // namespace nowcalls::admin
