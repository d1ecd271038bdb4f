// HttpsCertificate: what an HTTPS server shows, by GnuTLS as libmicrohttpd.
//
// Thread: any; immutable.
#ifndef NOWCALLS_WEB_HTTPS_CERTIFICATE_H_
#define NOWCALLS_WEB_HTTPS_CERTIFICATE_H_

#include <memory>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls::web {

class HttpsCertificate {
 public:
  // Both in PEM: the server's certificate, then its chain; its key. kInvalidArgument: what is
  // wrong.
  static Result<std::shared_ptr<const HttpsCertificate>> Load(std::string certificate,
                                                              std::string key);
  ~HttpsCertificate();
  HttpsCertificate(const HttpsCertificate&) = delete;
  HttpsCertificate& operator=(const HttpsCertificate&) = delete;

  // `session`, a gnutls_session_t before its handshake, shows this; it needs it until its end.
  void ShowIn(void* session) const;

  const std::string& certificate() const { return certificate_; }
  const std::string& key() const { return key_; }

 private:
  struct Credentials;
  HttpsCertificate(std::string certificate, std::string key,
                   std::unique_ptr<Credentials> credentials);

  const std::string certificate_;
  const std::string key_;
  const std::unique_ptr<Credentials> credentials_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HTTPS_CERTIFICATE_H_
