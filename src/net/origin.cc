#include "net/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <iterator>

namespace nowcalls::net {

std::string OriginOf(const Peer& peer) {
  if (peer.host.empty()) return "unix";
  in6_addr address{};
  if (inet_pton(AF_INET6, peer.host.c_str(), &address) != 1) return peer.host;
  // An address mapped to IPv6 is the IPv4 address: 64 bits would be those of all of them.
  char text[INET6_ADDRSTRLEN] = {};
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof(text));
    return text;
  }
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), uint8_t{0});
  inet_ntop(AF_INET6, &address, text, sizeof(text));
  return std::string(text) + "/64";
}

}  // namespace nowcalls::net
