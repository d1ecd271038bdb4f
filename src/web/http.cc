#include "web/http.h"

#include <algorithm>

namespace nowcalls::web {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char Small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string SmallLetters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), Small);
  return small;
}

std::string HostOf(std::string_view header) {
  const bool bracketed = header.starts_with('[');
  const size_t end = bracketed ? header.find(']') : header.find(':');
  std::string_view host = header.substr(0, end);
  std::string_view port = header.substr(host.size());
  if (bracketed) {
    // The bracket does not end.
    if (port.empty()) return "";
    host.remove_prefix(1);
    port.remove_prefix(1);
  }
  // Digits or nothing may follow: other text is no host, and matches no name.
  const bool is_port =
      port.empty() || (port.front() == ':' && std::all_of(port.begin() + 1, port.end(), IsDigit));
  if (!is_port) return "";
  return SmallLetters(host);
}

}  // namespace nowcalls::web
