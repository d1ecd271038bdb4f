// nowcalls-fuzz-seeds DIR: writes the seeds of each target to DIR/NAME.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "fuzz/targets.h"
#include "support/process.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: nowcalls-fuzz-seeds DIR\n");
    return 64;
  }
  for (const std::string_view target : nowcalls::fuzz::kTargets) {
    const std::string dir = std::string(argv[1]) + "/" + std::string(target);
    std::filesystem::create_directories(dir);
    int number = 0;
    for (const std::string& seed : nowcalls::fuzz::SeedsOf(target)) {
      nowcalls::testing::WriteStringToFile(dir + "/seed-" + std::to_string(number++), seed);
    }
  }
  return 0;
}
