#include "base/hex.h"

#include <doctest/doctest.h>

namespace nowcalls {
namespace {

TEST_CASE("bytes become two lower-case digits each and come back") {
  const std::string bytes("\x00\x0f\xf0\xff", 4);
  CHECK(ToHex(bytes) == "000ff0ff");
  const Result<std::string> back = FromHex("000FF0ff");
  REQUIRE(back.ok());
  CHECK(*back == bytes);
  CHECK(ToHex("").empty());
}

TEST_CASE("what is not hex is refused with its position") {
  CHECK(FromHex("abc").status().message() == "an odd number of hex digits");
  CHECK(FromHex("00x0").status().message() == "no hex digit at position 2");
  CHECK(FromHex("000g").status().message() == "no hex digit at position 3");
  CHECK_FALSE(FromHex("0 ").ok());
}

}  // namespace
}  // namespace nowcalls
