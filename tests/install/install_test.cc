// Another project builds with what `cmake --install` leaves: by CMake, by pkg-config, with the
// shared and the static library. The examples of the manual are among what it builds, and run as a
// reader would run them.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/server_process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kBuildMsMax = 20 * kPatienceMs;
const std::string kSource = NOWCALLS_SOURCE_DIR;

void Run(const std::vector<std::string>& argv) {
  const Finished done = RunProgram(argv, {}, kBuildMsMax);
  REQUIRE_MESSAGE(done.exit_code == 0, done.out, done.err);
}

// The C++ programs of a page of the manual, as `to`1.cc and so on. Their default address and data
// directory become `place`.
int WriteExamples(const std::string& page, const std::string& place, const std::string& to) {
  const std::string text = ReadFileToString(kSource + "/tools/manual/" + page);
  const std::string begin = "```cpp\n";
  int examples = 0;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    std::string program = text.substr(at, text.find("```\n", at) - at);
    const std::string start = "Start({";
    const size_t options = program.find(start);
    if (options != std::string::npos && !Contains(program, ".addresses")) {
      program.insert(options + start.size(), ".addresses = {\"" + place + "\"}, ");
    }
    const std::string data_dir = "/tmp/nowcalls-gate";
    const size_t named = program.find(data_dir);
    if (named != std::string::npos) program.replace(named, data_dir.size(), place);
    WriteStringToFile(to + std::to_string(++examples) + ".cc", program);
  }
  return examples;
}

ServerOptions WithSampleRules() {
  ServerOptions options;
  for (const auto& file : std::filesystem::directory_iterator(kSource + "/data/rules")) {
    if (file.path().extension() != ".json") continue;
    options.arguments.emplace_back("--rules");
    options.arguments.push_back(file.path().stem().string() + "=" + file.path().string());
  }
  return options;
}

}  // namespace

TEST_CASE("another project builds with what is installed, and the manual's examples run") {
  const TestServer server(nullptr, WithSampleRules());
  const TempDir dir;
  const std::string prefix = dir.Sub("prefix");
  const std::string consumer = dir.Sub("consumer");
  std::filesystem::create_directory(dir.Sub("examples"));
  Run({"/usr/bin/cmake", "--install", BUILD_DIR, "--prefix", prefix});
  CHECK(WriteExamples("clients.md", server.address(), dir.Sub("examples/client_")) == 7);
  CHECK(WriteExamples("embedding.md", dir.Sub("data"), dir.Sub("examples/embedded_")) == 3);
  Run({"/usr/bin/cmake", "-S", kSource + "/tests/install/consumer", "-B", consumer,
       std::string("-DCMAKE_CXX_COMPILER=") + CXX_COMPILER, "-DCMAKE_PREFIX_PATH=" + prefix,
       "-DEXAMPLES=" + dir.Sub("examples"),
       std::string("-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror ") + CONSUMER_FLAGS});
  Run({"/usr/bin/cmake", "--build", consumer, "-j2"});

  CHECK(RunProgram({consumer + "/headers_alone"}).out == "unavailable: nobody is there\n");
  const Environment libraries = {{"LD_LIBRARY_PATH", prefix + "/lib"}};
  for (const char* program : {"with_static", "with_shared", "with_pkg_config"}) {
    CAPTURE(program);
    CHECK(RunProgram({consumer + "/" + program, server.address()}, libraries).out == "granted\n");
  }
  const auto output = [&](int example, const char* kind = "/client_") {
    const Finished done = RunProgram({consumer + kind + std::to_string(example)}, libraries);
    CHECK_MESSAGE(done.exit_code == 0, done.err);
    return done.out;
  };
  CHECK(output(1) == "1 calls in progress\n");
  CHECK(output(2) == "the call may be made\n");
  CHECK(output(3) == "10 granted\n");
  CHECK(output(4) == "step 0\nstep 1\nstep 2\n");
  CHECK(output(5) == "2 permits\n");
  CHECK(Contains(output(6), " calls left in this window\nmay be made\n"));
  CHECK(output(1, "/embedded_") == "granted\n");
  CHECK(output(2, "/embedded_") == "1 asked, flow 1 has no rule\n");
  CHECK(output(3, "/embedded_") == "granted\n");
  CHECK(output(7) == "local: 1\n");
}

TEST_CASE("a compiler of an older language is told by each public header which one it needs") {
  const TempDir dir;
  for (const auto& header : std::filesystem::directory_iterator(kSource + "/include/nowcalls")) {
    const std::string name = header.path().filename();
    CAPTURE(name);
    WriteStringToFile(dir.Sub("program.cc"), "#include <nowcalls/" + name + ">\nint main() {}\n");
    const Finished done = RunProgram({CXX_COMPILER, "-std=c++17", "-fsyntax-only", "-I",
                                      kSource + "/include", dir.Sub("program.cc")},
                                     {}, kBuildMsMax);
    CHECK(done.exit_code != 0);
    CHECK(Contains(done.err, "nowcalls needs C++20: compile with -std=c++20 or a later one"));
    size_t errors = 0;
    for (size_t at = 0; (at = done.err.find("rror: ", at)) != std::string::npos; ++at) ++errors;
    CHECK_MESSAGE(errors <= 2, done.err);  // The second one ends the compilation.
  }
}

TEST_CASE("the settings that packages bring are valid, and no other machine reaches the server") {
  const TempDir dir;
  const std::string rules = "/etc/nowcalls/rules.d/default.json";
  std::string settings = ReadFileToString(kSource + "/data/deploy/server.toml");
  REQUIRE(Contains(settings, rules));
  settings.replace(settings.find(rules), rules.size(), kSource + "/data/rules/first.json");
  WriteStringToFile(dir.Sub("server.toml"), settings);
  const Finished checked = RunProgram(
      {ProductBinary("nowcalls-server"), "--config", dir.Sub("server.toml"), "--check-config"});
  CHECK_MESSAGE(checked.exit_code == 0, checked.err);
  for (const char* line :
       {"listen                    127.0.0.1:18730 ", "http                      127.0.0.1:18731 ",
        "data-dir                  /var/lib/nowcalls "}) {
    CHECK_MESSAGE(Contains(checked.out, line), checked.out);
  }
}

// A symbol that goes, or changes its types, breaks programs that were linked before.
TEST_CASE("the shared library shows the symbols that its package promises, and no others" *
          doctest::skip(kAddressSanitized)) {
  std::vector<std::string> promised;
  std::istringstream lines(ReadFileToString(kSource + "/tools/debian/libnowcalls1.symbols"));
  for (std::string line; std::getline(lines, line);) {
    if (line.front() == ' ') promised.push_back(line.substr(1, line.find(' ', 1) - 1));
  }
  const Finished read = RunProgram(
      {"/usr/bin/nm", "-D", "--defined-only", std::string(BUILD_DIR) + "/src/libnowcalls.so"});
  std::vector<std::string> shown;
  std::istringstream symbols(read.out);
  for (std::string line; std::getline(symbols, line);) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    shown.push_back(name.substr(0, name.find('@')) + "@NOWCALLS_1");
  }
  std::sort(promised.begin(), promised.end());
  std::sort(shown.begin(), shown.end());
  CHECK(shown == promised);
}

TEST_CASE("programs and documents are installed, and what is left to do is said") {
  const TempDir dir;
  const Finished installed = RunProgram(
      {"/usr/bin/cmake", "--install", BUILD_DIR, "--prefix", dir.Sub("prefix")}, {}, kBuildMsMax);
  REQUIRE(installed.exit_code == 0);
  const std::string lib = dir.Sub("prefix/lib");
  CHECK(Contains(installed.err, "The linker does not search " + lib));
  CHECK(Contains(installed.err, "echo " + lib + " >/etc/ld.so.conf.d/nowcalls.conf && ldconfig"));
  for (const std::string program :
       {"nowcalls", "nowcalls-server", "nowcalls-admin", "nowcalls-bench"}) {
    const Finished done = RunProgram({dir.Sub("prefix/bin/") + program, "--version"});
    CHECK(done.out.starts_with(program + " " + VERSION));
    const std::string section =
        program == "nowcalls-server" || program == "nowcalls-admin" ? "8" : "1";
    CHECK(ReadFileToString(
              dir.Sub("prefix/share/man/man" + section + "/" + program + "." + section)) ==
          RunProgram({dir.Sub("prefix/bin/") + program, "--help=man"}).out);
  }
  for (const char* document : {"README.md", "src/wire/PROTOCOL.md", "tools/manual/clients.md"}) {
    CAPTURE(document);
    CHECK(std::filesystem::exists(dir.Sub("prefix/share/doc/nowcalls/") + document));
  }
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(dir.Sub("prefix/share/doc/nowcalls"))) {
    const std::string name = file.path().filename().string();
    const bool made = name == "build" || name == "__pycache__" || name == "node_modules" ||
                      name.ends_with(".egg-info");
    CHECK_MESSAGE(!made, file.path().string());
  }
  CHECK(std::filesystem::exists(dir.Sub("prefix/share/bash-completion/completions/nowcalls")));
}

}  // namespace nowcalls::testing
