// Dial: a connection to a server, as safe as the client wants it.
//
// Thread: any; blocks until the deadline, a BoottimeMs value.
#ifndef NOWCALLS_CLIENT_DIAL_H_
#define NOWCALLS_CLIENT_DIAL_H_

#include <cstdint>
#include <string>

#include "net/endpoint.h"
#include "net/socket.h"
#include "nowcalls/client.h"
#include "nowcalls/status.h"

namespace nowcalls::client {

// How client and server make sure of each other. As in ClientOptions.
struct Security {
  TlsOptions tls{};
  std::string secret{};
};

// kInvalidArgument: options that contradict each other, or a file that is wrong.
Status CheckTls(const TlsOptions& tls);

// Shakes hands, too. kUnavailable: nobody answers there. kFailedPrecondition: somebody does, but
// not in the TLS that is wanted. kPermissionDenied: the secret may not travel over this connection.
// kInvalidArgument: as CheckTls.
Result<net::Socket> Dial(const net::Endpoint& server, const Security& security,
                         int64_t deadline_ms);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_DIAL_H_
