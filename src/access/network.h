// Networks of addresses, as an access file names them.
//
// Thread: any; pure.
#ifndef NOWCALLS_ACCESS_NETWORK_H_
#define NOWCALLS_ACCESS_NETWORK_H_

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls::access {

// IPv6; an IPv4 address is mapped, and its mapped form is the same address.
using Address = std::array<uint8_t, 16>;
// nullopt: `text` is no address in digits.
std::optional<Address> AddressOf(const std::string& text);

struct Network {
  Address address{};
  int prefix = 0;  // 0 .. 128, of the mapped form.

  auto operator<=>(const Network&) const = default;
};

// "10.1.0.0/16" or "fd00::/8". kInvalidArgument completes "networks must be ...", and quotes the
// text.
Result<Network> ParseNetwork(const std::string& text);

// With the address's bits of the prefix.
Network NetworkAround(const Address& address, int prefix);

// A network of IPv6 holds no IPv4 address.
bool Holds(const Network& network, const Address& address);

}  // namespace nowcalls::access

#endif  // NOWCALLS_ACCESS_NETWORK_H_
