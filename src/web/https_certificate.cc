#include "web/https_certificate.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <string_view>
#include <utility>

namespace nowcalls::web {
namespace {

gnutls_datum_t DatumOf(const std::string& text) {
  // GnuTLS only reads it. NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  auto* const bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  return {bytes, static_cast<unsigned>(text.size())};
}

Status Unusable(const std::string& what, int error) {
  return Status::InvalidArgument("HTTPS cannot use " + what + ": " + gnutls_strerror(error));
}

// Called by GnuTLS with what the client has shown; not 0 fails the handshake. As the token port
// (net/tls.cc): a certificate that is shown must be good, also where none is required.
int Check(gnutls_session_t session, bool name_required) {
  unsigned shown = 0;
  // Where one is required, GnuTLS itself refuses who shows none.
  if (gnutls_certificate_get_peers(session, &shown) == nullptr || shown == 0) return 0;
  char for_clients[] = GNUTLS_KP_TLS_WWW_CLIENT;
  gnutls_typed_vdata_st purpose{GNUTLS_DT_KEY_PURPOSE_OID,
                                reinterpret_cast<unsigned char*>(for_clients), 0};
  unsigned doubts = 0;
  const bool good = gnutls_certificate_verify_peers(session, &purpose, 1, &doubts) == 0 &&
                    doubts == 0 && (!name_required || !HttpsCertificate::ClientOf(session).empty());
  if (good) return 0;
  // libmicrohttpd would only hang up.
  gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
  return GNUTLS_E_CERTIFICATE_ERROR;
}

int CheckOptional(gnutls_session_t session) { return Check(session, /*name_required=*/false); }
int CheckRequired(gnutls_session_t session) { return Check(session, /*name_required=*/true); }

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

Result<std::shared_ptr<const HttpsCertificate>> HttpsCertificate::Load(const Https& https) {
  auto credentials = std::make_unique<Credentials>();
  if (gnutls_certificate_allocate_credentials(&credentials->of) != GNUTLS_E_SUCCESS) {
    return Status::IoError("no memory for a certificate");
  }
  const gnutls_datum_t certificate = DatumOf(https.certificate);
  const gnutls_datum_t key = DatumOf(https.key);
  const int error =
      gnutls_certificate_set_x509_key_mem(credentials->of, &certificate, &key, GNUTLS_X509_FMT_PEM);
  if (error < 0) return Unusable("the certificate with its key", error);
  if (https.clients != net::ClientCertificates::kOff) {
    const gnutls_datum_t cas = DatumOf(https.client_ca);
    const int believed =
        gnutls_certificate_set_x509_trust_mem(credentials->of, &cas, GNUTLS_X509_FMT_PEM);
    if (believed < 0) return Unusable("the CAs of clients", believed);
    if (believed == 0) return Status::InvalidArgument("HTTPS has no CA of clients");
  }
  return std::shared_ptr<const HttpsCertificate>(
      new HttpsCertificate(https, std::move(credentials)));
}

HttpsCertificate::HttpsCertificate(const Https& https, std::unique_ptr<Credentials> credentials)
    : certificate_(https.certificate),
      key_(https.key),
      clients_(https.clients),
      credentials_(std::move(credentials)) {}

HttpsCertificate::~HttpsCertificate() = default;

void HttpsCertificate::ShowIn(void* session) const {
  auto* const shown = static_cast<gnutls_session_t>(session);
  gnutls_credentials_set(shown, GNUTLS_CRD_CERTIFICATE, credentials_->of);
  if (clients_ == net::ClientCertificates::kOff) return;
  const bool required = clients_ == net::ClientCertificates::kRequired;
  gnutls_certificate_server_set_request(shown,
                                        required ? GNUTLS_CERT_REQUIRE : GNUTLS_CERT_REQUEST);
  gnutls_session_set_verify_function(shown, required ? CheckRequired : CheckOptional);
}

std::string HttpsCertificate::ClientOf(void* session) {
  unsigned shown = 0;
  const gnutls_datum_t* const chain =
      gnutls_certificate_get_peers(static_cast<gnutls_session_t>(session), &shown);
  if (chain == nullptr || shown == 0) return {};
  return net::ProvenNameOfDer(
      {reinterpret_cast<const char*>(chain->data), static_cast<size_t>(chain->size)});
}

}  // namespace nowcalls::web
