#include "web/credentials.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "web/http.h"

namespace nowcalls::web {

std::optional<std::string> FromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;  // Of bits that are not in `bytes` yet.
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xfff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

std::optional<Credentials> CredentialsOf(std::string_view authorization) {
  const size_t blank = authorization.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const std::string scheme = SmallLetters(authorization.substr(0, blank));
  std::string_view shown = authorization.substr(blank);
  shown.remove_prefix(std::min(shown.find_first_not_of(' '), shown.size()));
  Credentials found;
  if (scheme == "bearer") {
    found.secret = shown;
  } else if (scheme == "basic") {
    const std::optional<std::string> decoded = FromBase64(shown);
    const size_t colon = decoded ? decoded->find(':') : std::string::npos;
    if (colon == std::string::npos) return std::nullopt;
    found = {decoded->substr(0, colon), decoded->substr(colon + 1)};
  }
  if (found.secret.empty()) return std::nullopt;
  return found;
}

}  // namespace nowcalls::web
