#include "web/https_certificate.h"

#include <gnutls/gnutls.h>

#include <utility>

namespace nowcalls::web {
namespace {

gnutls_datum_t DatumOf(const std::string& text) {
  // GnuTLS only reads it.
  auto* const bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  return {bytes, static_cast<unsigned>(text.size())};
}

}  // namespace

struct HttpsCertificate::Credentials {
  Credentials() = default;
  ~Credentials() {
    if (of != nullptr) gnutls_certificate_free_credentials(of);
  }
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  gnutls_certificate_credentials_t of = nullptr;
};

Result<std::shared_ptr<const HttpsCertificate>> HttpsCertificate::Load(std::string certificate,
                                                                       std::string key) {
  auto credentials = std::make_unique<Credentials>();
  if (gnutls_certificate_allocate_credentials(&credentials->of) != GNUTLS_E_SUCCESS) {
    return Status::IoError("no memory for a certificate");
  }
  const gnutls_datum_t certificate_bytes = DatumOf(certificate);
  const gnutls_datum_t key_bytes = DatumOf(key);
  const int error = gnutls_certificate_set_x509_key_mem(credentials->of, &certificate_bytes,
                                                        &key_bytes, GNUTLS_X509_FMT_PEM);
  if (error < 0) {
    return Status::InvalidArgument(std::string("HTTPS cannot use the certificate with its key: ") +
                                   gnutls_strerror(error));
  }
  return std::shared_ptr<const HttpsCertificate>(
      new HttpsCertificate(std::move(certificate), std::move(key), std::move(credentials)));
}

HttpsCertificate::HttpsCertificate(std::string certificate, std::string key,
                                   std::unique_ptr<Credentials> credentials)
    : certificate_(std::move(certificate)),
      key_(std::move(key)),
      credentials_(std::move(credentials)) {}

HttpsCertificate::~HttpsCertificate() = default;

void HttpsCertificate::ShowIn(void* session) const {
  gnutls_credentials_set(static_cast<gnutls_session_t>(session), GNUTLS_CRD_CERTIFICATE,
                         credentials_->of);
}

}  // namespace nowcalls::web
