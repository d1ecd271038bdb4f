// Owners of OpenSSL's objects.
//
// Thread: as OpenSSL says of each.
#ifndef NOWCALLS_NET_TLS_HANDLES_H_
#define NOWCALLS_NET_TLS_HANDLES_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace nowcalls::net {

template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

inline void FreeCertificates(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, X509_free); }

using SslContext = std::unique_ptr<SSL_CTX, FreedBy<SSL_CTX_free>>;
using SslConnection = std::unique_ptr<SSL, FreedBy<SSL_free>>;
using Certificate = std::unique_ptr<X509, FreedBy<X509_free>>;
using Certificates = std::unique_ptr<STACK_OF(X509), FreedBy<FreeCertificates>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_TLS_HANDLES_H_
