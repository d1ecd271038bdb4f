#include "integration/readme_client.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_paths.h"

namespace nowcalls::testing {
namespace {

// The text between ```python and ``` in the README; fails the test when there is none.
std::string PythonExample() {
  const std::string readme = ReadFileToString(NOWCALLS_SOURCE_DIR "/README.md");
  const std::string opening = "```python\n";
  const size_t begin = readme.find(opening);
  REQUIRE(begin != std::string::npos);
  const size_t end = readme.find("```", begin + opening.size());
  REQUIRE(end != std::string::npos);
  return readme.substr(begin + opening.size(), end - begin - opening.size());
}

}  // namespace

// The reader's keyboard is a pipe that the example reads from.
ReadmeClient::ReadmeClient(const std::string& dir, const std::string& address) : dir_(dir) {
  WriteStringToFile(dir_ + "/example.py", PythonExample());
  const std::string keyboard = dir_ + "/keyboard";
  REQUIRE(mkfifo(keyboard.c_str(), 0600) == 0);
  keyboard_ = open(keyboard.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(keyboard_ >= 0);
  process_ = std::make_unique<Process>(
      Process::Options{{"/usr/bin/python3", dir_ + "/example.py", address},
                       {},
                       dir_ + "/out",
                       dir_ + "/err",
                       keyboard});
}

ReadmeClient::~ReadmeClient() { close(keyboard_); }

void ReadmeClient::PressEnter() const { REQUIRE(write(keyboard_, "\n", 1) == 1); }

}  // namespace nowcalls::testing
