// AccessList: the principals of an access file (tools/manual/security.md).
//
// Thread: any; immutable.
#ifndef NOWCALLS_ACCESS_ACCESS_LIST_H_
#define NOWCALLS_ACCESS_ACCESS_LIST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access/access.h"
#include "access/network.h"
#include "nowcalls/status.h"

namespace nowcalls::access {

// SHA-256 of a secret.
using Digest = std::array<uint8_t, 32>;
Digest DigestOf(std::string_view secret);

struct Entry {
  Principal principal{};
  std::vector<Digest> secrets{};            // Several while one is being replaced.
  std::vector<std::string> certificates{};  // Names, compared byte for byte.
  std::vector<Network> networks{};

  bool operator==(const Entry&) const = default;
};

class AccessList {
 public:
  static constexpr size_t kPrincipalsMax = 1'000;
  static constexpr size_t kSecretsMax = 4;  // Of a principal.
  static constexpr size_t kNamesMax = 100;  // Of its namespaces, certificates, networks, each.
  static constexpr size_t kFileBytesMax = 1 << 20;

  // All or nothing. kInvalidArgument: "FILE:LINE: principal 'checkout': FIELD ..." of the first
  // mistake, with what to do, and how many more there are.
  static Result<std::shared_ptr<const AccessList>> Parse(std::string_view toml,
                                                         const std::string& file);
  // As ReadAccessText (access/access_file.h) by the server, and Parse.
  static Result<std::shared_ptr<const AccessList>> Read(const std::string& file);

  explicit AccessList(std::vector<Entry> entries);
  AccessList(const AccessList&) = delete;
  AccessList& operator=(const AccessList&) = delete;

  // nullptr: nobody has it; so of the next three. Compares in constant time.
  const Entry* FindByDigest(const Digest& digest) const;
  // The same, by an index. Of a secret that was right before.
  const Entry* FindByRightDigest(const Digest& digest) const;
  const Entry* FindByCertificate(std::string_view name) const;
  // The longest prefix wins. `host`: an address in digits.
  const Entry* FindByHost(const std::string& host) const;

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  const std::vector<Entry> entries_;
  // Of these entries.
  std::map<Digest, const Entry*> by_digest_;
  std::map<std::string_view, const Entry*> by_certificate_;
  std::map<Network, const Entry*> by_network_;
  std::set<int, std::greater<>> prefixes_;  // Of by_network_.
};

}  // namespace nowcalls::access

#endif  // NOWCALLS_ACCESS_ACCESS_LIST_H_
