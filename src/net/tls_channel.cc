#include "net/tls_channel.h"

#include <openssl/err.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "base/check.h"
#include "net/tls_names.h"

namespace nowcalls::net {
namespace {

// Messages of TLS itself in one Receive, once hands are shaken. Each costs a derivation of keys
// and brings nothing. Tickets that a proxy sends are a few.
constexpr int kMessagesMax = 8;
constexpr long kLastRecordBytes = 512;  // NOLINT(google-runtime-int): the least that OpenSSL takes.

void Free(std::string* buffer) {
  constexpr size_t kKeptBytes = 256;
  buffer->clear();
  if (buffer->capacity() > kKeptBytes) buffer->shrink_to_fit();
}

// Of a peer's alert. Before TLS 1.3 one that misses a certificate says handshake_failure, which may
// mean anything.
bool IsAboutCertificate(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE: return true;
    default: return false;
  }
}

TlsChannel* ChannelOf(const SSL* ssl) { return static_cast<TlsChannel*>(SSL_get_app_data(ssl)); }

}  // namespace

TlsChannel::TlsChannel(SslConnection ssl, Side side)
    : side_(std::move(side)), ssl_(std::move(ssl)) {
  BIO* const bio = BIO_new(Method());
  if (ssl_ == nullptr || bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  SSL_set_msg_callback(ssl_.get(), OnMessage);
  SSL_set_msg_callback_arg(ssl_.get(), this);
}

Channel::Received TlsChannel::Receive(std::string_view from_socket) {
  bytes_.clear();
  reply_.clear();
  if (failed_) return {.failed = true};
  in_ = from_socket;
  out_ = &reply_;
  messages_ = 0;
  if (shakes_hands_) ShakeHands(from_socket.size());
  if (!shakes_hands_ && !failed_) ReadAll();
  in_ = {};
  return {.bytes = bytes_, .reply = reply_, .failed = failed_};
}

void TlsChannel::ShakeHands(size_t received) {
  handshake_bytes_ += received;
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done != 1) {
    if (SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ) return Fail();
    if (handshake_bytes_ > kHandshakeBytesMax) Fail("its handshake is too long");
    return;
  }
  shakes_hands_ = false;
  if (const X509* const shown = SSL_get0_peer_certificate(ssl_.get())) peer_ = ProvenNameOf(shown);
  if (!held_.empty()) Write(std::exchange(held_, {}));
}

// OpenSSL takes all bytes: it keeps the beginning of a record itself.
void TlsChannel::ReadAll() {
  char chunk[SSL3_RT_MAX_PLAIN_LENGTH];
  size_t size = 0;
  ERR_clear_error();
  while (SSL_read_ex(ssl_.get(), chunk, sizeof(chunk), &size) == 1) bytes_.append(chunk, size);
  const int ended = SSL_get_error(ssl_.get(), 0);
  const bool more = ended == SSL_ERROR_WANT_READ || ended == SSL_ERROR_ZERO_RETURN;
  if (!more) return Fail();
  // Before TLS 1.3 such a message can only ask for another handshake, which OpenSSL refuses.
  if (messages_ > 0 && SSL_version(ssl_.get()) < TLS1_3_VERSION) {
    return Fail("it asks for a renegotiation, which is refused");
  }
  if (messages_ > kMessagesMax) Fail("it changes its keys without need");
}

std::string_view TlsChannel::Send(std::string_view from_protocol) {
  sent_.clear();
  out_ = &sent_;
  if (shakes_hands_) {
    held_ += from_protocol;
  } else if (!failed_ && !from_protocol.empty()) {
    Write(from_protocol);
  }
  return sent_;
}

void TlsChannel::Write(std::string_view bytes) {
  size_t written = 0;
  ERR_clear_error();
  // The BIO takes all, so there is no half.
  if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) != 1) Fail();
}

std::string_view TlsChannel::Close() {
  sent_.clear();
  out_ = &sent_;
  ERR_clear_error();
  if (shakes_hands_ || failed_) return sent_;
  // The last record is short. Its buffer would be 17 KiB, which costs when thousands leave at once.
  SSL_set_max_send_fragment(ssl_.get(), kLastRecordBytes);
  SSL_shutdown(ssl_.get());
  return sent_;
}

void TlsChannel::Trim() {
  Free(&bytes_);
  Free(&reply_);
  Free(&sent_);
}

// --- Called by OpenSSL. ---

const BIO_METHOD* TlsChannel::Method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "channel");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_read(made, TakeBytes);
    BIO_meth_set_write(made, GiveBytes);
    BIO_meth_set_ctrl(made, Control);
    return made;
  }();
  return method;
}

int TlsChannel::TakeBytes(BIO* bio, char* to, int size) {
  auto* const self = static_cast<TlsChannel*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const size_t taken = self->in_.copy(to, static_cast<size_t>(size));
  self->in_.remove_prefix(taken);
  if (taken > 0) return static_cast<int>(taken);
  BIO_set_retry_read(bio);
  return -1;
}

int TlsChannel::GiveBytes(BIO* bio, const char* from, int size) {
  auto* const self = static_cast<TlsChannel*>(BIO_get_data(bio));
  self->out_->append(from, static_cast<size_t>(size));
  return size;
}

long TlsChannel::Control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {  // NOLINT
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

void TlsChannel::OnMessage(int sent, int /*version*/, int type, const void* /*bytes*/,
                           size_t /*size*/, SSL* /*ssl*/, void* channel) {
  auto* const self = static_cast<TlsChannel*>(channel);
  if (sent == 0 && type == SSL3_RT_HANDSHAKE && !self->shakes_hands_) ++self->messages_;
}

int TlsChannel::OnVerify(int trusted, X509_STORE_CTX* checked) {
  const auto* const ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(checked, SSL_get_ex_data_X509_STORE_CTX_idx()));
  TlsChannel* const self = ChannelOf(ssl);
  const X509* const certificate = X509_STORE_CTX_get_current_cert(checked);
  if (trusted != 1) {
    // Some faults are of no certificate in particular.
    const X509* const blamed =
        certificate != nullptr ? certificate : X509_STORE_CTX_get0_cert(checked);
    self->untrusted_ = WhyUntrusted(X509_STORE_CTX_get_error(checked), blamed, self->side_.host);
    return 0;
  }
  if (!self->side_.name_required || X509_STORE_CTX_get_error_depth(checked) > 0) return 1;
  if (!ProvenNameOf(certificate).empty()) return 1;
  self->untrusted_ = "its certificate (" + NamesOf(certificate) +
                     ") has no name of printable characters as URI, DNS name or common name";
  X509_STORE_CTX_set_error(checked, X509_V_ERR_CERT_REJECTED);  // The alert: bad_certificate.
  return 0;
}

// --- Failures. ---

void TlsChannel::Fail(std::string why) {
  failed_ = true;
  if (error_.empty()) error_ = std::move(why);
}

void TlsChannel::Fail() {
  if (!untrusted_.empty()) return Fail(untrusted_);
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's.
  if (ERR_GET_LIB(error) == ERR_LIB_SSL) {
    denied_ = !side_.server && IsAboutCertificate(ERR_GET_REASON(error));
    if (std::string why = WhyRefused(ERR_GET_REASON(error)); !why.empty()) return Fail(why);
  }
  const char* const reason = ERR_reason_error_string(error);
  Fail(std::string("TLS failed: ") + (reason != nullptr ? reason : "for an unknown reason"));
}

// In words, of the reasons that people meet; empty: none of them.
std::string TlsChannel::WhyRefused(int reason) const {
  const std::string own = side_.server ? "the server's certificate" : "the client's certificate";
  switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_BAD_LENGTH: return shakes_hands_ ? "it does not speak TLS" : "";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "it speaks other versions of TLS: 1.3 is spoken, and 1.2 where both ends allow it";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "it shows no client certificate, and one is required";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the server asks for a client certificate, and none was shown";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return "it refuses the handshake: no cipher suite in common, or it asks for a client "
             "certificate";
    case SSL_R_NO_SHARED_CIPHER: return "no cipher suite is in common";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "it does not trust " + own + ", since it does not know the CA that signed it";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED: return "it says that " + own + " has expired";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED: return "it refuses " + own;
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
      return "it asks for another application protocol (ALPN) than nowcalls/1";
    case SSL_R_EXCESSIVE_MESSAGE_SIZE: return "it shows too long a chain of certificates";
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC: return "a record was changed on its way";
    default: return {};
  }
}

}  // namespace nowcalls::net
