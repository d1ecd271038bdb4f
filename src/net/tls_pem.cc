#include "net/tls_pem.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/only_owner_writes.h"

namespace nowcalls::net {
namespace {

constexpr size_t kFileBytesMax = 1024 * 1024;

using Memory = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;

std::string TextOf(BIO* memory) {
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(memory, &bytes);
  return {bytes, static_cast<size_t>(size)};
}

// `danger`: of others than the owner who write it; empty: none.
Result<std::string> ReadFile(const std::string& file, const std::string& danger) {
  const auto failed = [&](int error) {
    return Status::IoError("cannot read " + file + ": " + std::generic_category().message(error));
  };
  // Without O_NONBLOCK the open of a pipe waits for its writer.
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed(errno);
  const std::unique_ptr<const int, void (*)(const int*)> closed(
      &fd, [](const int* opened) { close(*opened); });
  struct stat found {};
  if (fstat(fd, &found) != 0) return failed(errno);
  if (!S_ISREG(found.st_mode)) return Status::InvalidArgument(file + " is no regular file");
  if (!danger.empty()) {
    NOWCALLS_RETURN_IF_ERROR(CheckOnlyOwnerWrites(file, found.st_mode, danger));
  }
  std::string text;
  char chunk[4096];
  ssize_t size = 0;
  while ((size = read(fd, chunk, sizeof(chunk))) > 0) {
    text.append(chunk, static_cast<size_t>(size));
    if (text.size() > kFileBytesMax) {
      return Status::InvalidArgument(file + " is longer than 1 MiB, so it is no file of PEM");
    }
  }
  if (size < 0) return failed(errno);
  return text;
}

// In place of OpenSSL's, which asks at the terminal.
int RefusePassphrase(char* /*to*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return 0;
}

bool NothingIsLeft() {
  const auto error = ERR_peek_last_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

}  // namespace

std::string PemOf(X509* certificate) {
  const Memory out(BIO_new(BIO_s_mem()));
  if (out == nullptr || PEM_write_bio_X509(out.get(), certificate) != 1) throw std::bad_alloc();
  return TextOf(out.get());
}

std::string PemOf(EVP_PKEY* key) {
  const Memory out(BIO_new(BIO_s_secmem()));
  if (out == nullptr ||
      PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    throw std::bad_alloc();
  }
  return TextOf(out.get());
}

std::string LastTlsError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "for an unknown reason";
}

namespace {

Result<std::vector<Certificate>> ReadAll(const std::string& file, const std::string& danger) {
  const Result<std::string> text = ReadFile(file, danger);
  if (!text.ok()) return text.status();
  const Memory bytes(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  std::vector<Certificate> certificates;
  bool asked = false;
  ERR_clear_error();
  for (;;) {
    Certificate next(PEM_read_bio_X509(bytes.get(), nullptr, RefusePassphrase, &asked));
    if (next == nullptr) break;
    certificates.push_back(std::move(next));
  }
  if (!NothingIsLeft()) {
    return Status::InvalidArgument(file + ": certificate " +
                                   std::to_string(certificates.size() + 1) +
                                   " cannot be read: " + LastTlsError());
  }
  if (certificates.empty()) {
    return Status::InvalidArgument(
        file + " has no certificate: it must be PEM, with \"-----BEGIN CERTIFICATE-----\"");
  }
  return certificates;
}

}  // namespace

Result<std::vector<Certificate>> ReadCertificates(const std::string& file) {
  return ReadAll(file, "");
}

Result<std::vector<Certificate>> ReadClientCas(const std::string& file) {
  return ReadAll(file, "it says who may come in");
}

Result<PrivateKey> ReadKey(const std::string& file) {
  Result<std::string> text = ReadFile(file, "it proves who this is");
  if (!text.ok()) return text.status();
  const Memory bytes(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  bool asked = false;
  ERR_clear_error();
  PrivateKey key(PEM_read_bio_PrivateKey(bytes.get(), nullptr, RefusePassphrase, &asked));
  const bool none = text->find("PRIVATE KEY-----") == std::string::npos;
  OPENSSL_cleanse(text->data(), text->size());
  if (key != nullptr) return key;
  if (asked) {
    return Status::InvalidArgument(file +
                                   " is encrypted with a passphrase, which nobody could "
                                   "enter: store the key without one");
  }
  if (none) {
    return Status::InvalidArgument(
        file + " has no key: it must be PEM, with \"-----BEGIN PRIVATE KEY-----\"");
  }
  return Status::InvalidArgument(file + ": the key cannot be read: " + LastTlsError());
}

}  // namespace nowcalls::net
