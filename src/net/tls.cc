#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <new>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/address.h"
#include "net/tls_channel.h"
#include "net/tls_names.h"
#include "net/tls_pem.h"

namespace nowcalls::net {
namespace {

// With its length in front, as ALPN has it.
constexpr unsigned char kProtocol[] = "\x0anowcalls/1";
constexpr unsigned kProtocolBytes = sizeof(kProtocol) - 1;

constexpr int kIntermediatesMax = 10;
constexpr long kCertificateBytesMax = 64 * 1024;  // NOLINT(google-runtime-int): OpenSSL's.

Result<SslContext> NewContext(const SSL_METHOD* method, TlsVersion least) {
  SslContext context(SSL_CTX_new(method));
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX* const made = context.get();
  // A resumed session shows no certificate again, so there are none.
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(made, 0);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(made, kCertificateBytesMax);
  SSL_CTX_set_verify_depth(made, kIntermediatesMax);
  const int version = least == TlsVersion::k12 ? TLS1_2_VERSION : TLS1_3_VERSION;
  // The ciphers of 1.3 are all good. Of its groups, ffdhe8192 costs a server 200 times X25519.
  if (SSL_CTX_set_min_proto_version(made, version) != 1 ||
      SSL_CTX_set1_groups_list(made, "X25519:P-256:P-384") != 1 ||
      SSL_CTX_set_cipher_list(made, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
    return Status::InvalidArgument("OpenSSL cannot be set up: " + LastTlsError());
  }
  return context;
}

Status UseCertificate(const std::string& file, const std::string& key_file, SSL_CTX* context,
                      Certificate* first) {
  auto chain = ReadCertificates(file);
  if (!chain.ok()) return chain.status();
  const auto key = ReadKey(key_file);
  if (!key.ok()) return key.status();
  ERR_clear_error();
  if (X509_check_private_key(chain->front().get(), key->get()) != 1) {
    return Status::InvalidArgument("the key of " + key_file +
                                   " is not that of the first certificate of " + file + " (" +
                                   NamesOf(chain->front().get()) + ")");
  }
  if (SSL_CTX_use_certificate(context, chain->front().get()) != 1) {
    return Status::InvalidArgument(file + " cannot be used: " + LastTlsError());
  }
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1) {
    return Status::InvalidArgument(key_file + " cannot be used: " + LastTlsError());
  }
  for (size_t i = 1; i < chain->size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, (*chain)[i].get()) == 1) continue;
    return Status::InvalidArgument(file + ": certificate " + std::to_string(i + 1) +
                                   " cannot be used: " + LastTlsError());
  }
  *first = std::move(chain->front());
  return Status::Ok();
}

// A CA of the file is believed also if another one has signed it. `of_clients`: these are told it.
Status BelieveIn(const std::string& file, bool of_clients, SSL_CTX* context) {
  const auto cas = of_clients ? ReadClientCas(file) : ReadCertificates(file);
  if (!cas.ok()) return cas.status();
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  for (const Certificate& ca : *cas) {
    if (X509_STORE_add_cert(store, ca.get()) != 1 ||
        (of_clients && SSL_CTX_add_client_CA(context, ca.get()) != 1)) {
      return Status::InvalidArgument(file + " cannot be used: " + LastTlsError());
    }
  }
  return Status::Ok();
}

// Another protocol is refused: what was meant for another port must not be taken for ours.
int ChooseProtocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_bytes,
                   const unsigned char* offered, unsigned offered_bytes, void* /*unused*/) {
  unsigned char* found = nullptr;
  const int outcome = SSL_select_next_proto(&found, chosen_bytes, kProtocol, kProtocolBytes,
                                            offered, offered_bytes);
  if (outcome != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

// --- The server's side. ---

struct TlsServer::Impl {
  SslContext context;
  bool name_required = false;
  int64_t ends_at_s = 0;
  std::string names;
};

TlsServer::TlsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsServer::~TlsServer() = default;

Result<std::shared_ptr<const TlsServer>> TlsServer::Load(const TlsServerFiles& files) {
  auto context = NewContext(TLS_server_method(), files.version);
  if (!context.ok()) return context.status();
  auto impl = std::make_unique<Impl>();
  impl->context = *std::move(context);
  SSL_CTX* const made = impl->context.get();
  Certificate own;
  NOWCALLS_RETURN_IF_ERROR(UseCertificate(files.certificate, files.key, made, &own));
  SSL_CTX_set_alpn_select_cb(made, ChooseProtocol, nullptr);
  if (files.clients != ClientCertificates::kOff) {
    const bool required = files.clients == ClientCertificates::kRequired;
    NOWCALLS_RETURN_IF_ERROR(BelieveIn(files.client_ca, /*of_clients=*/true, made));
    SSL_CTX_set_purpose(made, X509_PURPOSE_SSL_CLIENT);
    SSL_CTX_set_verify(made, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       TlsChannel::OnVerify);
    impl->name_required = required;
  }
  impl->ends_at_s = UnixSecondsOf(X509_get0_notAfter(own.get()));
  impl->names = NamesOf(own.get());
  return std::shared_ptr<const TlsServer>(new TlsServer(std::move(impl)));
}

std::unique_ptr<Channel> TlsServer::MakeChannel() const {
  SslConnection ssl(SSL_new(impl_->context.get()));
  if (ssl != nullptr) SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsChannel>(
      std::move(ssl), TlsChannel::Side{.server = true, .name_required = impl_->name_required});
}

int64_t TlsServer::ends_at_s() const { return impl_->ends_at_s; }
const std::string& TlsServer::names() const { return impl_->names; }

TlsServer::Pem TlsServer::pem() const {
  SSL_CTX* const context = impl_->context.get();
  Pem pem{PemOf(SSL_CTX_get0_certificate(context)), PemOf(SSL_CTX_get0_privatekey(context)), {}};
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  for (int i = 0; i < sk_X509_num(chain); ++i) pem.certificate += PemOf(sk_X509_value(chain, i));
  const Certificates cas(X509_STORE_get1_all_certs(SSL_CTX_get_cert_store(context)));
  for (int i = 0; i < sk_X509_num(cas.get()); ++i) {
    pem.client_ca += PemOf(sk_X509_value(cas.get(), i));
  }
  return pem;
}

std::string ProvenNameOfDer(std::string_view der) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  const Certificate certificate(d2i_X509(nullptr, &bytes, static_cast<int>(der.size())));
  return certificate == nullptr ? "" : ProvenNameOf(certificate.get());
}

// --- The client's side. ---

struct TlsClient::Impl {
  SslContext context;
  std::string server_name;
};

TlsClient::TlsClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsClient::~TlsClient() = default;

Result<std::shared_ptr<const TlsClient>> TlsClient::Load(const TlsClientFiles& files) {
  // A proxy in front of the server may not speak 1.3 yet; no one on the way can force 1.2.
  auto context = NewContext(TLS_client_method(), TlsVersion::k12);
  if (!context.ok()) return context.status();
  auto impl = std::make_unique<Impl>();
  impl->context = *std::move(context);
  impl->server_name = files.server_name;
  SSL_CTX* const made = impl->context.get();
  if (files.ca.empty()) {
    if (SSL_CTX_set_default_verify_paths(made) != 1) {
      return Status::InvalidArgument("the system's CAs cannot be read: " + LastTlsError());
    }
  } else {
    NOWCALLS_RETURN_IF_ERROR(BelieveIn(files.ca, /*of_clients=*/false, made));
  }
  if (files.certificate.empty() != files.key.empty()) {
    return Status::InvalidArgument(
        "a client certificate needs both its file and that of its key; only " +
        (files.key.empty() ? files.certificate : files.key) + " is given");
  }
  if (!files.certificate.empty()) {
    Certificate own;
    NOWCALLS_RETURN_IF_ERROR(UseCertificate(files.certificate, files.key, made, &own));
  }
  SSL_CTX_set_alpn_protos(made, kProtocol, kProtocolBytes);
  SSL_CTX_set_purpose(made, X509_PURPOSE_SSL_SERVER);
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER, TlsChannel::OnVerify);
  return std::shared_ptr<const TlsClient>(new TlsClient(std::move(impl)));
}

std::unique_ptr<Channel> TlsClient::MakeChannel(const std::string& host) const {
  std::string expected = impl_->server_name.empty() ? host : impl_->server_name;
  if (expected.ends_with('.')) expected.pop_back();  // "db.example." is db.example.
  NOWCALLS_CHECK(!expected.empty());                 // OpenSSL would take any certificate.
  SslConnection ssl(SSL_new(impl_->context.get()));
  if (ssl != nullptr) {
    SSL_set_connect_state(ssl.get());
    X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl.get());
    // Common names are for people: a certificate says by its alternative names what it is for.
    X509_VERIFY_PARAM_set_hostflags(
        wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const bool digits = AddressInDigits(expected).has_value();
    const bool set =
        digits ? X509_VERIFY_PARAM_set1_ip_asc(wanted, expected.c_str()) == 1
               : X509_VERIFY_PARAM_set1_host(wanted, expected.data(), expected.size()) == 1;
    if (!set) throw std::bad_alloc();
    if (!digits) SSL_set_tlsext_host_name(ssl.get(), expected.c_str());
  }
  return std::make_unique<TlsChannel>(std::move(ssl), TlsChannel::Side{.host = expected});
}

}  // namespace nowcalls::net
