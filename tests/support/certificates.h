// Certificates for tests, made by OpenSSL's own calls: no files, no program.
//
// Thread: any. Keys are of P-256, but for the one that says otherwise. Throws std::runtime_error.
#ifndef NOWCALLS_SUPPORT_CERTIFICATES_H_
#define NOWCALLS_SUPPORT_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace nowcalls::testing {

struct CertificateSpec {
  std::string common_name{};
  std::vector<std::pair<char, std::string>> names{};  // 'D'NS, 'U'RI, 'I'P in digits; any bytes.
  std::string usage{};     // extendedKeyUsage: "serverAuth", "clientAuth"; empty: there is none.
  int64_t begins_s = -60;  // From now.
  int64_t ends_s = 24 * 3600;
  std::string more_common_name{};  // A second one.
};

struct IssuedCertificate {
  std::string certificate;  // PEM, with those of the authorities but the root.
  std::string key;          // PEM.
};

class Authority {
 public:
  explicit Authority(const std::string& name, const Authority* issuer = nullptr);

  IssuedCertificate Issue(const CertificateSpec& spec) const;
  // Of a key of 16384 bits, whose primes are well known.
  IssuedCertificate IssueHuge(const CertificateSpec& spec) const;
  std::string certificate() const;  // PEM, its own.

 private:
  using Key = std::shared_ptr<EVP_PKEY>;
  using Made = std::shared_ptr<X509>;

  IssuedCertificate IssueFor(const Key& key, const CertificateSpec& spec) const;

  Key key_;
  Made certificate_;
  std::string chain_;  // PEM, without the root.
};

// As files of a directory: DIR/NAME.pem and DIR/NAME.key.
struct CertificateFiles {
  std::string certificate;
  std::string key;
};
CertificateFiles WriteCertificate(const std::string& dir, const std::string& name,
                                  const IssuedCertificate& issued);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_CERTIFICATES_H_
