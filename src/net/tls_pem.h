// PEM files of certificates and keys.
//
// Thread: any; blocking, but not on pipes. kIoError and kInvalidArgument name the file.
#ifndef NOWCALLS_NET_TLS_PEM_H_
#define NOWCALLS_NET_TLS_PEM_H_

#include <string>
#include <vector>

#include "net/tls_handles.h"
#include "nowcalls/status.h"

namespace nowcalls::net {

// At least one, in the order of the file.
Result<std::vector<Certificate>> ReadCertificates(const std::string& file);
// The same of CAs that let clients in: nobody but the owner may write the file.
Result<std::vector<Certificate>> ReadClientCas(const std::string& file);
// Without a passphrase. Nobody but the owner may write the file.
Result<PrivateKey> ReadKey(const std::string& file);

std::string PemOf(X509* certificate);
std::string PemOf(EVP_PKEY* key);

// The reason of OpenSSL's last failure.
std::string LastTlsError();

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_TLS_PEM_H_
