// The loader of golden files (tests/support/golden.h), which must not pass over a broken file.
#include "support/golden.h"

#include <doctest/doctest.h>

#include <fstream>
#include <stdexcept>

#include "base/hex.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

std::map<std::string, std::string> Load(const std::string& text) {
  const TempDir dir;
  const std::string path = dir.Sub("vectors.hex");
  std::ofstream(path) << text;
  return LoadGolden(path);
}

TEST_CASE("a golden file yields its names and bytes") {
  const auto vectors = Load("# head\n\na: 00 ff\n  0A0b # tail\nb:\nc: 7f\n");
  REQUIRE(vectors.size() == 3);
  CHECK(ToHex(vectors.at("a")) == "00ff0a0b");
  CHECK(vectors.at("b").empty());
  CHECK(ToHex(vectors.at("c")) == "7f");
}

TEST_CASE("a golden file that is not understood throws") {
  for (const char* text : {"a: 0", "a: 0 0", "a: zz", "a 00", ": 00", "a: 00\na: 01", "  00"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Load(text), std::runtime_error);
  }
  CHECK_THROWS_AS(LoadGolden("/nonexistent/vectors.hex"), std::runtime_error);
}

}  // namespace
}  // namespace nowcalls::testing
