#include "net/tls_names.h"

#include <arpa/inet.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <string_view>

#include "base/text.h"
#include "net/tls_handles.h"

namespace nowcalls::net {
namespace {

using Names = std::unique_ptr<GENERAL_NAMES, FreedBy<GENERAL_NAMES_free>>;

constexpr int kShownNames = 4;
constexpr size_t kShownNameBytes = 100;

std::string BytesOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string Shown(std::string_view text) {
  return Shortened(TerminalText(text.substr(0, kProvenNameBytesMax)), kShownNameBytes);
}

// `malformed`: there are names that cannot be read.
Names AlternativeNamesOf(const X509* certificate, bool* malformed) {
  int found = 0;
  Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, &found, nullptr)));
  *malformed = names == nullptr && found != -1;
  return names;
}

const GENERAL_NAME* FirstOf(const GENERAL_NAMES* names, int type) {
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type == type) return name;
  }
  return nullptr;
}

// Two common names are none: which of them counts is a matter of taste.
std::string CommonNameOf(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return {};
  unsigned char* utf8 = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return {};
  std::string name(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return name;
}

std::string NameText(const X509_NAME* name) {
  const std::unique_ptr<BIO, FreedBy<BIO_free_all>> out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &bytes);
  return Shown({bytes, static_cast<size_t>(size)});
}

std::string AlternativeNameText(const GENERAL_NAME* name) {
  if (name->type == GEN_URI || name->type == GEN_DNS) return Shown(BytesOf(name->d.ia5));
  if (name->type != GEN_IPADD) return {};
  const std::string bytes = BytesOf(name->d.iPAddress);
  if (bytes.size() != 4 && bytes.size() != 16) return {};
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof(text));
  return text;
}

}  // namespace

std::string ProvenNameOf(const X509* certificate) {
  bool malformed = false;
  const Names names = AlternativeNamesOf(certificate, &malformed);
  if (malformed) return {};
  const GENERAL_NAME* first = FirstOf(names.get(), GEN_URI);
  if (first == nullptr) first = FirstOf(names.get(), GEN_DNS);
  std::string name = first != nullptr ? BytesOf(first->d.ia5) : CommonNameOf(certificate);
  // A NUL would end the name for other readers of it, so "a\0.b" must not be taken for "a".
  if (name.size() > kProvenNameBytesMax || !IsPrintable(name)) return {};
  return name;
}

std::string NamesOf(const X509* certificate) {
  bool malformed = false;
  const Names names = AlternativeNamesOf(certificate, &malformed);
  std::string text;
  int shown = 0;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()) && shown <= kShownNames; ++i) {
    const std::string name = AlternativeNameText(sk_GENERAL_NAME_value(names.get(), i));
    if (name.empty()) continue;
    if (++shown <= kShownNames) text += (text.empty() ? "" : ", ") + name;
  }
  if (shown > kShownNames) text += " and others";
  return text.empty() ? NameText(X509_get_subject_name(certificate)) : text;
}

std::string TimeText(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unreadable time";
  char text[64] = "";
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

int64_t UnixSecondsOf(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string WhyUntrusted(int error, const X509* certificate, const std::string& host) {
  const std::string one = "its certificate (" + NamesOf(certificate) + ")";
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return one + " has expired since " + TimeText(X509_get0_notAfter(certificate));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return one + " is not yet valid, until " + TimeText(X509_get0_notBefore(certificate));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "its certificate is for " + NamesOf(certificate) + " and not for " + Shown(host);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_UNTRUSTED:
      return one + " is signed by an unknown CA, \"" + NameText(X509_get_issuer_name(certificate)) +
             "\": its certificate is not in the CA file";
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return one + " has a signature that is not of \"" +
             NameText(X509_get_issuer_name(certificate)) + "\", as it says";
    case X509_V_ERR_INVALID_PURPOSE:
      return one + " is not for " + (host.empty() ? "clients" : "servers") +
             ": its (extended) key usage does not allow it";
    case X509_V_ERR_CERT_CHAIN_TOO_LONG: return one + " has a chain that is too long";
    default: return one + ": " + X509_verify_cert_error_string(error);
  }
}

}  // namespace nowcalls::net
