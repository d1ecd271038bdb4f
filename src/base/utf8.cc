#include "base/utf8.h"

#include <cstdint>

namespace nowcalls {
namespace {

// The length of the sequence that `lead` begins and the range its second byte may have; length 0
// for a byte that begins none. Table 3-7 of the Unicode standard.
struct Sequence {
  int length;
  uint8_t second_min;
  uint8_t second_max;
};

Sequence SequenceOf(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xc2) return {0, 0, 0};
  if (lead < 0xe0) return {2, 0x80, 0xbf};
  if (lead == 0xe0) return {3, 0xa0, 0xbf};
  if (lead == 0xed) return {3, 0x80, 0x9f};
  if (lead < 0xf0) return {3, 0x80, 0xbf};
  if (lead == 0xf0) return {4, 0x90, 0xbf};
  if (lead < 0xf4) return {4, 0x80, 0xbf};
  if (lead == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

size_t Utf8LengthAt(std::string_view text, size_t at) {
  const Sequence sequence = SequenceOf(static_cast<uint8_t>(text[at]));
  const auto length = static_cast<size_t>(sequence.length);
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    const auto byte = static_cast<uint8_t>(text[at + k]);
    // The second byte excludes overlong forms, surrogates and values past U+10FFFF.
    const uint8_t min = k == 1 ? sequence.second_min : 0x80;
    const uint8_t max = k == 1 ? sequence.second_max : 0xbf;
    if (byte < min || byte > max) return 0;
  }
  return length;
}

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8LengthAt(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

bool IsInvisible(char32_t character) {
  // Unicode 15: Default_Ignorable_Code_Point; the categories Cf, without the signs that stand
  // before digits and are seen, Zl, Zp and Zs but for U+0020; and four that fonts leave empty
  // (U+2800, U+16FE4, U+1D159, noncharacters).
  static constexpr char32_t kRanges[][2] = {
      {0x00a0, 0x00a0},   {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},
      {0x115f, 0x1160},   {0x1680, 0x1680},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
      {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x2800, 0x2800},
      {0x3000, 0x3000},   {0x3164, 0x3164},   {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},
      {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0x13430, 0x1345f},
      {0x16fe4, 0x16fe4}, {0x1bca0, 0x1bca3}, {0x1d159, 0x1d159}, {0x1d173, 0x1d17a},
      {0xe0000, 0xe0fff},
  };
  for (const auto& [first, last] : kRanges) {
    if (character >= first && character <= last) return true;
  }
  return (character & 0xfffe) == 0xfffe;  // The last two of each plane.
}

}  // namespace nowcalls
