#include "access/access_list.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <optional>

namespace nowcalls::access {

Digest DigestOf(std::string_view secret) {
  Digest digest;
  static_assert(std::tuple_size_v<Digest> == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return digest;
}

// Each digest is compared whole, and none ends the search.
const Entry* AccessList::FindByDigest(const Digest& digest) const {
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    for (const Digest& its : entry.secrets) {
      if (CRYPTO_memcmp(its.data(), digest.data(), digest.size()) == 0) found = &entry;
    }
  }
  return found;
}

const Entry* AccessList::FindByCertificate(std::string_view name) const {
  for (const Entry& entry : entries_) {
    const auto& names = entry.certificates;
    if (std::find(names.begin(), names.end(), name) != names.end()) return &entry;
  }
  return nullptr;
}

const Entry* AccessList::FindByHost(const std::string& host) const {
  const std::optional<Address> address = AddressOf(host);
  if (!address.has_value()) return nullptr;
  const Entry* found = nullptr;
  int longest = -1;
  for (const Entry& entry : entries_) {
    for (const Network& network : entry.networks) {
      if (network.prefix <= longest || !Holds(network, *address)) continue;
      longest = network.prefix;
      found = &entry;
    }
  }
  return found;
}

}  // namespace nowcalls::access
