#include "base/bytes.h"

#include <doctest/doctest.h>

#include "base/hex.h"

namespace nowcalls {
namespace {

TEST_CASE("integers are written with the most significant byte first") {
  std::string out;
  AppendBigEndian<uint8_t>(&out, 0x01);
  AppendBigEndian<uint16_t>(&out, 0x0203);
  AppendBigEndian<uint32_t>(&out, 0x04050607);
  AppendBigEndian<uint64_t>(&out, 0x08090a0b0c0d0e0f);
  AppendBigEndian<int32_t>(&out, -2);
  CHECK(ToHex(out) == "0102030405060708090a0b0c0d0e0ffffffffe");
}

TEST_CASE("what was written is read back, negative numbers included") {
  std::string out;
  AppendBigEndian<int64_t>(&out, INT64_MIN);
  AppendBigEndian<int16_t>(&out, -300);
  out += "tail";
  ByteReader reader(out);
  CHECK(reader.Read<int64_t>() == INT64_MIN);
  CHECK(reader.Read<int16_t>() == -300);
  CHECK_FALSE(reader.Finished());
  CHECK(reader.ReadBytes(4) == "tail");
  CHECK(reader.Finished());
}

TEST_CASE("after a read that does not fit everything reads as zero and nothing is ok") {
  ByteReader reader("abc");
  CHECK(reader.Read<uint32_t>() == 0);
  CHECK_FALSE(reader.ok());
  CHECK(reader.Read<uint8_t>() == 0);
  CHECK(reader.ReadBytes(1).empty());
  CHECK_FALSE(reader.Finished());
}

TEST_CASE("byte order makes numbers sort as their bytes do") {
  std::string before;
  std::string after;
  AppendBigEndian<uint64_t>(&before, 255);
  AppendBigEndian<uint64_t>(&after, 256);
  CHECK(before < after);
}

}  // namespace
}  // namespace nowcalls
