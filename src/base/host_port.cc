#include "base/host_port.h"

#include <charconv>

#include "base/text.h"

namespace nowcalls {

std::string HostPort::ToString() const {
  const bool bare_colons = host.find(':') != std::string::npos;
  return (bare_colons ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<HostPort> ParseHostPort(std::string_view text) {
  const Status wrong_form = Status::InvalidArgument(
      Quoted(text) + " is not HOST:PORT, such as 127.0.0.1:18730 or [::1]:18730");
  // A URL is a likely slip, and has an answer of its own.
  if (text.find("://") != std::string_view::npos) {
    return Status::InvalidArgument(
        Quoted(text) +
        " is a URL: write HOST:PORT of the token port alone, such as 127.0.0.1:18730");
  }
  // The last colon: an IPv6 address has others, within its brackets.
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong_form;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.find_first_of("[]/@ ") != std::string_view::npos) return wrong_form;
  // "::1:80" may mean two things, so an IPv6 address needs brackets.
  if (!bracketed && host.find(':') != std::string_view::npos) return wrong_form;
  HostPort parsed{std::string(host), 0};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.port);
  if (error == std::errc::result_out_of_range) {
    return Status::InvalidArgument(Quoted(text) + " has a port above 65535");
  }
  if (error != std::errc() || end != digits.data() + digits.size()) return wrong_form;
  return parsed;
}

}  // namespace nowcalls
