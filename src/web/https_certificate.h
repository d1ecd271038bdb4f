// HttpsCertificate: the certificate of an HTTPS server, and the clients that it believes (GnuTLS).
//
// Thread: any; immutable.
#ifndef NOWCALLS_WEB_HTTPS_CERTIFICATE_H_
#define NOWCALLS_WEB_HTTPS_CERTIFICATE_H_

#include <memory>
#include <string>

#include "net/tls.h"
#include "nowcalls/status.h"

namespace nowcalls::web {

// Texts are PEM.
struct Https {
  std::string certificate{};  // The server's, then its chain.
  std::string key{};
  std::string client_ca{};  // Whose client certificates are believed.
  net::ClientCertificates clients = net::ClientCertificates::kOff;
  net::TlsVersion version = net::TlsVersion::k13;  // The least that is spoken.
};

class HttpsCertificate {
 public:
  // kInvalidArgument: what is wrong with which.
  static Result<std::shared_ptr<const HttpsCertificate>> Load(const Https& https);
  ~HttpsCertificate();
  HttpsCertificate(const HttpsCertificate&) = delete;
  HttpsCertificate& operator=(const HttpsCertificate&) = delete;

  // `session`: a gnutls_session_t before its handshake; needs this until its end. A client that is
  // not believed fails the handshake.
  void ShowIn(void* session) const;
  // The name that the client's certificate proves (net/peer.h); empty: none. `session`: after its
  // handshake.
  static std::string ClientOf(void* session);

  const std::string& certificate() const { return certificate_; }
  const std::string& key() const { return key_; }

 private:
  struct Credentials;
  HttpsCertificate(const Https& https, std::unique_ptr<Credentials> credentials);

  const std::string certificate_;
  const std::string key_;
  const net::ClientCertificates clients_;
  const std::unique_ptr<Credentials> credentials_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HTTPS_CERTIFICATE_H_
