#include "base/crc32c.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "base/prng.h"

namespace nowcalls {
namespace {

TEST_CASE("the checksum is CRC-32C, with the instruction and without it") {
  const auto check = [](std::string_view bytes, uint32_t expected) {
    CHECK(Crc32c(bytes) == expected);
    CHECK(ExtendCrc32cByTable(0, bytes) == expected);
  };
  check("", 0);
  check("123456789", 0xe3069283);
  // RFC 3720, B.4.
  check(std::string(32, '\0'), 0x8a9136aa);
  check(std::string(32, '\xff'), 0x62a8ab43);
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte) ascending += byte;
  check(ascending, 0x46dd794e);
}

TEST_CASE("a checksum of parts is that of the whole, wherever it is cut") {
  Prng prng(1);
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += static_cast<char>(prng.Below(256));
  const std::string_view whole = bytes;
  const uint32_t expected = ExtendCrc32cByTable(0, whole);
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    CAPTURE(cut);
    CHECK(ExtendCrc32c(Crc32c(whole.substr(0, cut)), whole.substr(cut)) == expected);
    CHECK(ExtendCrc32cByTable(Crc32c(whole.substr(0, cut)), whole.substr(cut)) == expected);
  }
}

}  // namespace
}  // namespace nowcalls
