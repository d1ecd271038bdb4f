#include "base/keyed_hash.h"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nowcalls {
namespace {

TEST_CASE("the hash is SipHash-2-4 of 16 bytes") {
  // Of the reference implementation: key and input are the bytes 0, 1, 2 and so on.
  constexpr std::array<uint64_t, 2> kBytes = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  static_assert(KeyedHash(kBytes, kBytes[0], kBytes[1]) == 0x3f2acc7f57c29bdb);
}

TEST_CASE("a string's hash is SipHash-2-4 of its bytes, whatever their number") {
  // Of the reference implementation, with the same key.
  constexpr std::array<uint64_t, 2> kBytes = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string input;
  for (char byte = 0; byte < 16; ++byte) input += byte;
  CHECK(KeyedHash(kBytes, std::string_view()) == 0x726fdb47dd0e0e31);
  CHECK(KeyedHash(kBytes, input.substr(0, 1)) == 0x74f839c593dc67fd);
  CHECK(KeyedHash(kBytes, input.substr(0, 15)) == 0xa129ca6149be45e5);
  CHECK(KeyedHash(kBytes, input) == 0x3f2acc7f57c29bdb);
}

TEST_CASE("key, both numbers and their order count") {
  const uint64_t hash = KeyedHash({1, 2}, 3, 4);
  CHECK(KeyedHash({1, 2}, 3, 4) == hash);
  CHECK(KeyedHash({1, 3}, 3, 4) != hash);
  CHECK(KeyedHash({2, 2}, 3, 4) != hash);
  CHECK(KeyedHash({1, 2}, 3, 5) != hash);
  CHECK(KeyedHash({1, 2}, 4, 3) != hash);
}

}  // namespace
}  // namespace nowcalls
