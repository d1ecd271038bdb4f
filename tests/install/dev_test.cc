// tools/dev, as far as it builds and installs nothing.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

// Without programs that install or build: what would call one fails.
Finished RunDev(const std::vector<std::string>& words) {
  const TempDir bin;
  for (const char* program : {"cat", "dirname", "nproc"}) {
    std::filesystem::create_symlink(std::string("/usr/bin/") + program, bin.Sub(program));
  }
  std::vector<std::string> argv = {"/bin/bash", NOWCALLS_SOURCE_DIR "/tools/dev"};
  argv.insert(argv.end(), words.begin(), words.end());
  return RunProgram(argv, {{"PATH", bin.path()}});
}

}  // namespace

TEST_CASE("help of tools/dev installs and builds nothing") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"run", "--help"},
                                             {"run", "--listen", "[::1]:1", "--help"},
                                             {"install", "--help"},
                                             {"test", "-h"},
                                             {"check", "--help"},
                                             {"crash", "--help"}}) {
    CAPTURE(words.front());
    const Finished help = RunDev(words);
    CHECK_MESSAGE(help.exit_code == 0, help.err);
    CHECK(help.out.starts_with("usage: tools/dev COMMAND [ARGS]"));
  }
}

TEST_CASE("a word that tools/dev does not know is refused before anything is installed") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"foo"},
                                             {"check", "--foo"},
                                             {"test", "--foo"},
                                             {"build", "foo"},
                                             {"build", "--programs", "foo"},
                                             {"install", "foo"},
                                             {"package", "--foo"},
                                             {"image", "foo"}}) {
    CAPTURE(words.front());
    const Finished refused = RunDev(words);
    CHECK(refused.exit_code == 64);
    CHECK(Contains(refused.err, "foo"));
  }
}

}  // namespace nowcalls::testing
