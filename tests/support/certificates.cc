#include "support/certificates.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/dh.h>
#include <openssl/ec.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <stdexcept>

#include "base/clock.h"
#include "support/process.h"

namespace nowcalls::testing {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Made = std::shared_ptr<X509>;
using Number = std::unique_ptr<BIGNUM, void (*)(BIGNUM*)>;

void Require(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("OpenSSL failed: ") + what);
}

Key NewKey() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

Number Own(BIGNUM* number) { return {number, BN_free}; }

// Of 8192 bits each: RFC 3526 and RFC 7919 have them, so nobody need search for primes.
Number OtherPrime() {
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "DH", nullptr), EVP_PKEY_CTX_free);
  char group[] = "ffdhe8192";
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
      OSSL_PARAM_construct_end()};
  EVP_PKEY* made = nullptr;
  Require(EVP_PKEY_paramgen_init(context.get()) == 1 &&
              EVP_PKEY_CTX_set_params(context.get(), params) == 1 &&
              EVP_PKEY_generate(context.get(), &made) == 1,
          "a group");
  const Key key(made, EVP_PKEY_free);
  BIGNUM* prime = nullptr;
  Require(EVP_PKEY_get_bn_param(made, OSSL_PKEY_PARAM_FFC_P, &prime) == 1, "its prime");
  return Own(prime);
}

Key HugeKey() {
  const std::unique_ptr<BN_CTX, void (*)(BN_CTX*)> scratch(BN_CTX_new(), BN_CTX_free);
  const Number p = Own(BN_get_rfc3526_prime_8192(nullptr));
  const Number q = OtherPrime();
  const Number n = Own(BN_new());
  const Number e = Own(BN_new());
  const Number p1 = Own(BN_dup(p.get()));
  const Number q1 = Own(BN_dup(q.get()));
  const Number phi = Own(BN_new());
  BN_set_word(e.get(), RSA_F4);
  BN_sub_word(p1.get(), 1);
  BN_sub_word(q1.get(), 1);
  BN_mul(n.get(), p.get(), q.get(), scratch.get());
  BN_mul(phi.get(), p1.get(), q1.get(), scratch.get());
  const Number d = Own(BN_mod_inverse(nullptr, e.get(), phi.get(), scratch.get()));
  Require(d != nullptr, "an inverse");
  const Number dp = Own(BN_new());
  const Number dq = Own(BN_new());
  BN_mod(dp.get(), d.get(), p1.get(), scratch.get());
  BN_mod(dq.get(), d.get(), q1.get(), scratch.get());
  const Number inverse = Own(BN_mod_inverse(nullptr, q.get(), p.get(), scratch.get()));
  const std::unique_ptr<OSSL_PARAM_BLD, void (*)(OSSL_PARAM_BLD*)> build(OSSL_PARAM_BLD_new(),
                                                                         OSSL_PARAM_BLD_free);
  const std::pair<const char*, const BIGNUM*> parts[] = {
      {OSSL_PKEY_PARAM_RSA_N, n.get()},          {OSSL_PKEY_PARAM_RSA_E, e.get()},
      {OSSL_PKEY_PARAM_RSA_D, d.get()},          {OSSL_PKEY_PARAM_RSA_FACTOR1, p.get()},
      {OSSL_PKEY_PARAM_RSA_FACTOR2, q.get()},    {OSSL_PKEY_PARAM_RSA_EXPONENT1, dp.get()},
      {OSSL_PKEY_PARAM_RSA_EXPONENT2, dq.get()}, {OSSL_PKEY_PARAM_RSA_COEFFICIENT1, inverse.get()}};
  for (const auto& [name, number] : parts) {
    Require(OSSL_PARAM_BLD_push_BN(build.get(), name, number) == 1, name);
  }
  const std::unique_ptr<OSSL_PARAM, void (*)(OSSL_PARAM*)> params(
      OSSL_PARAM_BLD_to_param(build.get()), OSSL_PARAM_free);
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY* made = nullptr;
  Require(EVP_PKEY_fromdata_init(context.get()) == 1 &&
              EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_KEYPAIR, params.get()) == 1,
          "a key of 16384 bits");
  return {made, EVP_PKEY_free};
}

template <typename Write>
std::string Pem(Write write) {
  const std::unique_ptr<BIO, void (*)(BIO*)> out(BIO_new(BIO_s_mem()), BIO_free_all);
  Require(write(out.get()) == 1, "PEM");
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

std::string PemOf(X509* certificate) {
  return Pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

void AddCommonName(const std::string& name, X509* to) {
  if (name.empty()) return;
  Require(X509_NAME_add_entry_by_NID(X509_get_subject_name(to), NID_commonName, MBSTRING_UTF8,
                                     reinterpret_cast<const unsigned char*>(name.data()),
                                     static_cast<int>(name.size()), -1, 0) == 1,
          "a common name");
}

void AddExtension(int nid, const std::string& value, X509* to) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  Require(extension != nullptr && X509_add_ext(to, extension, -1) == 1, "an extension");
  X509_EXTENSION_free(extension);
}

// By hand, so that a name may have any bytes.
void AddNames(const CertificateSpec& spec, X509* to) {
  if (spec.names.empty()) return;
  GENERAL_NAMES* const names = sk_GENERAL_NAME_new_null();
  for (const auto& [kind, text] : spec.names) {
    GENERAL_NAME* const name = GENERAL_NAME_new();
    std::string bytes = text;
    if (kind == 'I') {
      bytes.assign(text.find(':') != std::string::npos ? 16 : 4, '\0');
      Require(inet_pton(bytes.size() == 4 ? AF_INET : AF_INET6, text.c_str(), bytes.data()) == 1,
              "an address");
    }
    ASN1_STRING* const value =
        ASN1_STRING_type_new(kind == 'I' ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
    ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size()));
    GENERAL_NAME_set0_value(name, kind == 'I' ? GEN_IPADD : kind == 'U' ? GEN_URI : GEN_DNS, value);
    sk_GENERAL_NAME_push(names, name);
  }
  Require(X509_add1_ext_i2d(to, NID_subject_alt_name, names, 0, 0) == 1, "names");
  GENERAL_NAMES_free(names);
}

Made NewCertificate(EVP_PKEY* key, const CertificateSpec& spec, const X509_NAME* issuer,
                    EVP_PKEY* issuer_key, bool is_ca) {
  static int64_t serial = 0;
  Made made(X509_new(), X509_free);
  X509* const x509 = made.get();
  X509_set_version(x509, X509_VERSION_3);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(x509), ++serial);
  const std::time_t now = WallMs() / 1000;
  ASN1_TIME_set(X509_getm_notBefore(x509), now + spec.begins_s);
  ASN1_TIME_set(X509_getm_notAfter(x509), now + spec.ends_s);
  AddCommonName(spec.common_name, x509);
  AddCommonName(spec.more_common_name, x509);
  X509_set_issuer_name(x509, issuer != nullptr ? issuer : X509_get_subject_name(x509));
  X509_set_pubkey(x509, key);
  AddExtension(NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "CA:FALSE", x509);
  if (is_ca) AddExtension(NID_key_usage, "critical,keyCertSign", x509);
  if (!spec.usage.empty()) AddExtension(NID_ext_key_usage, spec.usage, x509);
  AddNames(spec, x509);
  Require(X509_sign(x509, issuer_key, EVP_sha256()) > 0, "a signature");
  return made;
}

}  // namespace

Authority::Authority(const std::string& name, const Authority* issuer) : key_(NewKey()) {
  const CertificateSpec spec{.common_name = name};
  const bool root = issuer == nullptr;
  certificate_ = NewCertificate(key_.get(), spec,
                                root ? nullptr : X509_get_subject_name(issuer->certificate_.get()),
                                root ? key_.get() : issuer->key_.get(), /*is_ca=*/true);
  if (!root) chain_ = PemOf(certificate_.get()) + issuer->chain_;
}

IssuedCertificate Authority::Issue(const CertificateSpec& spec) const {
  return IssueFor(NewKey(), spec);
}

IssuedCertificate Authority::IssueHuge(const CertificateSpec& spec) const {
  return IssueFor(HugeKey(), spec);
}

IssuedCertificate Authority::IssueFor(const Key& key, const CertificateSpec& spec) const {
  const Made made = NewCertificate(key.get(), spec, X509_get_subject_name(certificate_.get()),
                                   key_.get(), /*is_ca=*/false);
  return {PemOf(made.get()) + chain_, Pem([&](BIO* out) {
            return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

std::string Authority::certificate() const { return PemOf(certificate_.get()); }

CertificateFiles WriteCertificate(const std::string& dir, const std::string& name,
                                  const IssuedCertificate& issued) {
  CertificateFiles files{dir + "/" + name + ".pem", dir + "/" + name + ".key"};
  WriteStringToFile(files.certificate, issued.certificate);
  WriteStringToFile(files.key, issued.key);
  return files;
}

}  // namespace nowcalls::testing
