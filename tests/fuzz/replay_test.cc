// Every fuzz target on its seeds, on pieces of them, and on what fuzzing has found so far
// (tests/fuzz/corpus), as ordinary tests.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/hex.h"
#include "fuzz/targets.h"
#include "support/process.h"

namespace nowcalls::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownBytes = 200;

void RunOn(const Target& target, const std::string& input) {
  CAPTURE(input.size());
  CAPTURE(ToHex(input.substr(0, kShownBytes)));
  target.run(input);
}

const Target& Named(std::string_view name) {
  for (const Target& target : Targets()) {
    if (target.name == name) return target;
  }
  FAIL("no target " << name);
  return Targets().front();
}

// Whole, longer, cut short, and with single bytes that are others.
void Replay(const std::string& name) {
  const Target& target = Named(name);
  const std::vector<std::string> seeds = SeedsOf(name);
  REQUIRE(seeds.size() >= 5);
  constexpr size_t kVariants = 12;
  for (const std::string& seed : seeds) {
    RunOn(target, seed);
    for (const char more : {'\0', 'x'}) RunOn(target, seed + more);
    for (size_t i = 1; i < kVariants; ++i) {
      const size_t at = seed.size() * i / kVariants;
      RunOn(target, seed.substr(0, at));
      std::string changed = seed;
      changed[at] = static_cast<char>(changed[at] ^ (1 << (i % 8)));
      RunOn(target, changed);
    }
  }
  const fs::path corpus = fs::path(NOWCALLS_SOURCE_DIR "/tests/fuzz/corpus") / name;
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(corpus)) {
    CAPTURE(entry.path().string());
    RunOn(target, testing::ReadFileToString(entry.path()));
    ++files;
  }
  CHECK(files > 0);
}

TEST_CASE("the wire target holds on its seeds and its corpus") { Replay("wire"); }
TEST_CASE("the ledger target holds on its seeds and its corpus") { Replay("ledger"); }
TEST_CASE("the rules target holds on its seeds and its corpus") { Replay("rules"); }
TEST_CASE("the config target holds on its seeds and its corpus") { Replay("config"); }
TEST_CASE("the log target holds on its seeds and its corpus") { Replay("log"); }

}  // namespace
}  // namespace nowcalls::fuzz
