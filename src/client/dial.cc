#include "client/dial.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

#include "net/address.h"
#include "net/tls.h"

namespace nowcalls::client {
namespace {

Result<std::shared_ptr<const net::TlsClient>> LoadTls(const TlsOptions& tls) {
  auto loaded = net::TlsClient::Load({.ca = tls.ca,
                                      .certificate = tls.certificate,
                                      .key = tls.key,
                                      .server_name = tls.server_name});
  // Whether a file is missing or wrong, the options must change, or the file.
  if (!loaded.ok()) return Status::InvalidArgument("tls: " + loaded.status().message());
  return loaded;
}

// As the server judges the connection: by its addresses.
bool StaysOnThisMachine(int fd) {
  net::SocketAddress peer;
  if (getpeername(fd, peer.get(), &peer.size) != 0) return false;
  return net::IsLoopback(peer) || net::IsFromThisHost(fd);
}

}  // namespace

Status CheckTls(const TlsOptions& tls) {
  if (tls.certificate.empty() != tls.key.empty()) {
    return Status::InvalidArgument(tls.key.empty()
                                       ? "tls.certificate needs tls.key, the key of it"
                                       : "tls.key needs tls.certificate, whose key it is");
  }
  if (tls.on) return LoadTls(tls).status();
  for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"ca", tls.ca},
                                    {"certificate", tls.certificate},
                                    {"server_name", tls.server_name}}) {
    if (value.empty()) continue;
    return Status::InvalidArgument("tls." + std::string(name) + " is set, but tls.on is not");
  }
  return Status::Ok();
}

Result<ChannelMaker> ChannelsTo(const net::Endpoint& server, const TlsOptions& tls) {
  if (!tls.on || server.is_unix()) return ChannelMaker(net::PlainChannel::Make);
  auto loaded = LoadTls(tls);
  if (!loaded.ok()) return loaded.status();
  return ChannelMaker(
      [client = *std::move(loaded), host = server.tcp.host] { return client->MakeChannel(host); });
}

Result<net::Socket> Dial(const net::Endpoint& server, const Security& security,
                         int64_t deadline_ms) {
  // Files are read for each dial: a certificate that was renewed is shown from now on.
  const Result<ChannelMaker> make_channel = ChannelsTo(server, security.tls);
  if (!make_channel.ok()) return Status::IoError(make_channel.status().message());
  Result<net::Socket> socket =
      net::Socket::Connect(server, deadline_ms, getaddrinfo, (*make_channel)());
  if (!socket.ok()) return socket;
  if (!security.secret.empty() && !socket->encrypted() && !StaysOnThisMachine(socket->fd())) {
    return Status::InvalidArgument(
        "the secret needs TLS, or a server on this machine: over a plain connection anybody on "
        "the way could read it");
  }
  return socket;
}

}  // namespace nowcalls::client
