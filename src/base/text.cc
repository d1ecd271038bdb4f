#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/check.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/shown_text.h"
#include "base/utf8.h"

namespace nowcalls {
namespace {

// Where what follows a break begins.
size_t HangingIndent(std::string_view line) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = indent == 0 ? std::string_view::npos : line.find("  ", indent);
  return gap == std::string_view::npos ? indent : line.find_first_not_of(' ', gap);
}

void AppendWrapped(std::string_view line, size_t width, std::string* out) {
  line = line.substr(0, line.find_last_not_of(' ') + 1);
  const size_t hang = HangingIndent(line);
  const std::string indent(hang, ' ');
  size_t begun = 0;  // Of the characters of this line that are indentation.
  while (begun + line.size() > width) {
    const size_t room = width - begun;
    // The last blank that leaves the line within the width. A first word longer than that breaks
    // behind itself.
    size_t space = line.rfind(' ', room);
    if (space == std::string_view::npos || space <= (begun == 0 ? hang : 0)) {
      space = line.find(' ', room);
    }
    if (space == std::string_view::npos) break;
    out->append(line.substr(0, space)).append("\n").append(indent);
    line.remove_prefix(space + 1);
    begun = hang;
  }
  out->append(line).append("\n");
}

}  // namespace

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool IsPrintable(std::string_view text) {
  uint8_t before = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte == 0x7f) return false;
    if (before == 0xc2 && byte < 0xa0) return false;  // U+0080..U+009F
    before = byte;
  }
  return IsUtf8(text);
}

std::string Quoted(std::string_view text, size_t bytes_max) {
  std::string quoted = "'";
  for (const char c : text.substr(0, bytes_max)) {
    if (c >= 0x20 && c < 0x7f) {
      quoted += c;
    } else {
      quoted += "\\x" + ToHex({&c, 1});
    }
  }
  quoted += text.size() > bytes_max ? "...'" : "'";
  return quoted;
}

std::string Shortened(std::string_view text, size_t bytes_max) {
  constexpr std::string_view kGap = "...";
  if (text.size() <= bytes_max) return std::string(text);
  NOWCALLS_CHECK(bytes_max > kGap.size());
  const auto within = [&](size_t at) {
    return at > 0 && at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
  };
  // Both cuts move towards the ends until no character is cut, at most 3 bytes.
  const size_t half = (bytes_max - kGap.size()) / 2;
  size_t head = half;
  size_t tail = text.size() - half;
  // What is not UTF-8 may be cut anywhere.
  for (int i = 0; i < 3 && within(head); ++i) --head;
  for (int i = 0; i < 3 && within(tail); ++i) ++tail;
  return std::string(text.substr(0, head)).append(kGap).append(text.substr(tail));
}

std::string TerminalText(std::string_view text) { return text.empty() ? "-" : ShownText(text); }

std::string Wrapped(std::string_view text, size_t width) {
  std::string wrapped;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    AppendWrapped(text.substr(0, end), width, &wrapped);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return wrapped;
}

std::string NumberText(double value) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  NOWCALLS_CHECK(error == std::errc());
  return {digits.data(), end};
}

std::optional<std::string> EmptyOption(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    // Behind "--" words are no options.
    if (word == "--") break;
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    return std::string(word) + " is empty; give it a value, or leave it out";
  }
  return std::nullopt;
}

Status CheckName(std::string_view name, size_t bytes_max) {
  if (name.empty() || name.size() > bytes_max) {
    return Status::InvalidArgument("must be 1.." + std::to_string(bytes_max) + " bytes, got " +
                                   std::to_string(name.size()));
  }
  if (!IsPrintable(name)) {
    return Status::InvalidArgument("must be UTF-8 without control characters, got " + Quoted(name));
  }
  return Status::Ok();
}

Status CheckNamespace(std::string_view name) { return CheckName(name, kNamespaceBytesMax); }

Status CheckRuleSource(std::string_view name) { return CheckName(name, kRuleSourceBytesMax); }

Status CheckClientId(std::string_view id) {
  if (id.starts_with('@')) return Status::InvalidArgument("must not start with '@'");
  return CheckName(id, kClientIdBytesMax);
}

}  // namespace nowcalls
