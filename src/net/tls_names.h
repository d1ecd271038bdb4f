// What certificates say: the name that one proves, and words for people.
//
// Thread: any; pure. Texts for people have printable characters alone, and a bounded length.
#ifndef NOWCALLS_NET_TLS_NAMES_H_
#define NOWCALLS_NET_TLS_NAMES_H_

#include <openssl/x509.h>

#include <cstdint>
#include <string>

namespace nowcalls::net {

// As decision 6 of the README says. Empty: there is none, or it has more than kProvenNameBytesMax.
inline constexpr size_t kProvenNameBytesMax = 2048;
std::string ProvenNameOf(const X509* certificate);

std::string NamesOf(const X509* certificate);  // "a.example, 10.0.0.1"; without names the subject.
std::string TimeText(const ASN1_TIME* time);   // "2026-11-28 12:00:00 UTC"
int64_t UnixSecondsOf(const ASN1_TIME* time);  // 0: it is no time.

// `error`: of X509_verify_cert, about `certificate`. `host`: of a server's certificate; empty: it
// is a client's. The text begins with "its certificate".
std::string WhyUntrusted(int error, const X509* certificate, const std::string& host);

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_TLS_NAMES_H_
