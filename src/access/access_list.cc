#include "access/access_list.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <optional>

namespace nowcalls::access {

Digest DigestOf(std::string_view secret) {
  Digest digest;
  static_assert(std::tuple_size_v<Digest> == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return digest;
}

AccessList::AccessList(std::vector<Entry> entries) : entries_(std::move(entries)) {
  for (const Entry& entry : entries_) {
    for (const Digest& digest : entry.secrets) by_digest_.emplace(digest, &entry);
    for (const std::string& name : entry.certificates) by_certificate_.emplace(name, &entry);
    for (const Network& network : entry.networks) {
      by_network_.emplace(network, &entry);
      prefixes_.insert(network.prefix);
    }
  }
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

const Entry* AccessList::FindByRightDigest(const Digest& digest) const {
  const auto found = by_digest_.find(digest);
  return found == by_digest_.end() ? nullptr : found->second;
}

const Entry* AccessList::FindByCertificate(std::string_view name) const {
  const auto found = by_certificate_.find(name);
  return found == by_certificate_.end() ? nullptr : found->second;
}

const Entry* AccessList::FindByHost(const std::string& host) const {
  const std::optional<Address> address = AddressOf(host);
  if (!address.has_value()) return nullptr;
  for (const int prefix : prefixes_) {
    const Network around = NetworkAround(*address, prefix);
    const auto found = by_network_.find(around);
    if (found != by_network_.end() && Holds(around, *address)) return found->second;
  }
  return nullptr;
}

}  // namespace nowcalls::access
