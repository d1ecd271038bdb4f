// Dial: a connection to a server, as safe as the client wants it.
//
// Thread: any; blocks until the deadline, a BoottimeMs value.
#ifndef NOWCALLS_CLIENT_DIAL_H_
#define NOWCALLS_CLIENT_DIAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/channel.h"
#include "net/endpoint.h"
#include "net/socket.h"
#include "nowcalls/client.h"
#include "nowcalls/status.h"

namespace nowcalls::client {

// As in ClientOptions.
struct Security {
  TlsOptions tls{};
  std::string secret{};
};

// kInvalidArgument: options that contradict each other, or a file that is wrong.
Status CheckTls(const TlsOptions& tls);

// By the files as they are now. kInvalidArgument: as CheckTls.
using ChannelMaker = std::function<std::unique_ptr<net::Channel>()>;
Result<ChannelMaker> ChannelsTo(const net::Endpoint& server, const TlsOptions& tls);

// Shakes hands, too. kUnavailable: nobody answers. kFailedPrecondition: not in the TLS that is
// wanted. kPermissionDenied: the client's certificate is not let in. kInvalidArgument: the secret
// may not travel over this connection. kIoError: a file of TLS is wrong now.
Result<net::Socket> Dial(const net::Endpoint& server, const Security& security,
                         int64_t deadline_ms);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_DIAL_H_
