#include "base/hex.h"

#include <cstdint>

namespace nowcalls {
namespace {

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  digits.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 0xf];
  }
  return digits;
}

Result<std::string> FromHex(std::string_view digits) {
  if (digits.size() % 2 != 0) return Status::InvalidArgument("an odd number of hex digits");
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = DigitValue(digits[i]);
    const int low = DigitValue(digits[i + 1]);
    if (high < 0 || low < 0) {
      return Status::InvalidArgument("no hex digit at position " +
                                     std::to_string(high < 0 ? i : i + 1));
    }
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

}  // namespace nowcalls
