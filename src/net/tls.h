// TLS on both sides, by OpenSSL; channels do no I/O.
//
// Thread: contexts any, immutable; a channel as channel.h says. TLS 1.3, 1.2 by choice. Each
// connection shows its certificate (README, decision 5).
#ifndef NOWCALLS_NET_TLS_H_
#define NOWCALLS_NET_TLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/channel.h"
#include "nowcalls/status.h"

namespace nowcalls::net {

enum class ClientCertificates : uint8_t { kOff, kOptional, kRequired };
enum class TlsVersion : uint8_t { k12, k13 };  // The least that is spoken.

struct TlsServerFiles {
  std::string certificate{};  // PEM: the server's, then its chain.
  std::string key{};          // PEM.
  std::string client_ca{};    // PEM: whose client certificates are believed; empty: none.
  ClientCertificates clients = ClientCertificates::kOff;
  TlsVersion version = TlsVersion::k13;
};

class TlsServer {
 public:
  // kInvalidArgument: which file, and what is wrong with it. kIoError: a file cannot be read. A
  // certificate that has ended is loaded.
  static Result<std::shared_ptr<const TlsServer>> Load(const TlsServerFiles& files);
  ~TlsServer();

  std::unique_ptr<Channel> MakeChannel() const;
  int64_t ends_at_s() const;  // Unix time at which the server's certificate ends; it may be past.
  const std::string& names() const;  // Of that certificate, for people.

  // What was loaded, for who shows it by another library.
  struct Pem {
    std::string certificate;  // With its chain.
    std::string key;
    std::string client_ca;  // Empty: no client certificate is believed.
  };
  Pem pem() const;

 private:
  struct Impl;
  explicit TlsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The name that a client's certificate proves, for who checked it by another library; `der`: its
// bytes. Empty: none (net/peer.h).
std::string ProvenNameOfDer(std::string_view der);

struct TlsClientFiles {
  std::string ca{};           // PEM; empty: the system's.
  std::string certificate{};  // PEM, with its chain; empty: none is shown.
  std::string key{};
  std::string server_name{};  // Expected in place of the host that was dialled; empty: that host.
};

class TlsClient {
 public:
  // Errors as TlsServer::Load.
  static Result<std::shared_ptr<const TlsClient>> Load(const TlsClientFiles& files);
  ~TlsClient();

  // `host`: a name or an address in digits, which the certificate must have. REQUIRES: not empty,
  // if there is no server_name. The channel has a first reply before it received anything: call
  // Receive("") once.
  std::unique_ptr<Channel> MakeChannel(const std::string& host) const;

 private:
  struct Impl;
  explicit TlsClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A server's channel that is TLS if the first byte is 0x16, else plain; until then it shakes hands.
// `plain`: false: plain bytes fail the channel, whose error says so. `tls` nullptr: TLS fails it.
std::unique_ptr<Channel> MakeChannelByFirstByte(std::shared_ptr<const TlsServer> tls, bool plain);

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_TLS_H_
