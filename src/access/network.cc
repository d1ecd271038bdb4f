#include "access/network.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "base/text.h"

namespace nowcalls::access {
namespace {

constexpr int kBits = 128;
constexpr int kMappedBits = 96;  // ::ffff:0:0/96
constexpr Address kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kMappedBytes = kMappedBits / 8;

bool IsV4(const Address& address) {
  return std::equal(address.begin(), address.begin() + kMappedBytes, kMapped.begin());
}

Address Masked(Address address, int prefix) {
  for (int bit = 0; bit < kBits; bit += 8) {
    const int kept = std::clamp(prefix - bit, 0, 8);
    address[static_cast<size_t>(bit / 8)] &= static_cast<uint8_t>(0xff00 >> kept);
  }
  return address;
}

std::string Text(const Network& network, bool v4) {
  char text[INET6_ADDRSTRLEN] = "";
  const uint8_t* bytes = network.address.data() + (v4 ? kMappedBytes : 0);
  inet_ntop(v4 ? AF_INET : AF_INET6, bytes, text, sizeof(text));
  return std::string(text) + "/" + std::to_string(network.prefix - (v4 ? kMappedBits : 0));
}

}  // namespace

std::optional<Address> AddressOf(const std::string& text) {
  Address address = kMapped;
  if (inet_pton(AF_INET, text.c_str(), address.data() + kMappedBytes) == 1) return address;
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  return std::nullopt;
}

Result<Network> ParseNetwork(const std::string& text) {
  const auto wrong = [&](const std::string& what) {
    return Status::InvalidArgument("must be " + what + ", got " + Quoted(text));
  };
  // 1. An address, and a number that fits it.
  const size_t slash = text.find('/');
  const std::optional<Address> address = AddressOf(text.substr(0, slash));
  if (!address.has_value()) return wrong("ADDRESS/PREFIX in digits, such as 10.1.0.0/16");
  const bool v4 = text.find(':') == std::string::npos;
  const int most = v4 ? kBits - kMappedBits : kBits;
  if (slash == std::string::npos) {
    return wrong("ADDRESS/PREFIX, with /" + std::to_string(most) + " for one address");
  }
  int prefix = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, prefix);
  if (error != std::errc() || stop != end || prefix < 0 || prefix > most) {
    return wrong("ADDRESS/PREFIX with a prefix from 0 to " + std::to_string(most));
  }
  // 2. Bits behind the prefix would be ignored: more was meant, or less.
  const Network network{*address, v4 ? prefix + kMappedBits : prefix};
  const Network masked = NetworkAround(network.address, network.prefix);
  if (masked != network) return wrong("a network, such as " + Text(masked, v4));
  return network;
}

Network NetworkAround(const Address& address, int prefix) {
  return {Masked(address, prefix), prefix};
}

bool Holds(const Network& network, const Address& address) {
  if (IsV4(address) && network.prefix < kMappedBits) return false;
  return Masked(address, network.prefix) == network.address;
}

}  // namespace nowcalls::access
