// Origin: what one client cannot change at will, for bounds of each address.
//
// Thread: any.
#ifndef NOWCALLS_NET_ORIGIN_H_
#define NOWCALLS_NET_ORIGIN_H_

#include <string>

#include "net/peer.h"

namespace nowcalls::net {

// An IPv4 address, the first 64 bits of an IPv6 address ("2001:db8:0:1::/64"), or "unix".
std::string OriginOf(const Peer& peer);

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_ORIGIN_H_
