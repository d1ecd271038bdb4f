// An access file: what is taken is found again, and changes of its text change nothing else.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "access/access_edit.h"
#include "access/access_file.h"
#include "access/access_list.h"
#include "fuzz/targets.h"

namespace nowcalls::fuzz {
namespace {

constexpr char kFile[] = "fuzz.toml";
constexpr size_t kEditedMax = 4;  // Principals; each costs two parses.

void CheckFinds(const access::AccessList& list) {
  for (const access::Entry& entry : list.entries()) {
    REQUIRE(entry.principal.role != access::Role::kAnybody);
    REQUIRE_FALSE(entry.principal.name.empty());
    REQUIRE(entry.secrets.size() + entry.certificates.size() + entry.networks.size() > 0);
    for (const access::Digest& digest : entry.secrets) REQUIRE(list.FindByDigest(digest) == &entry);
    for (const std::string& name : entry.certificates) {
      REQUIRE(list.FindByCertificate(name) == &entry);
    }
    for (const access::Network& network : entry.networks) {
      REQUIRE(access::Holds(network, network.address));
    }
  }
  REQUIRE(list.FindByDigest(access::DigestOf("")) == nullptr);
}

void CheckEdits(std::string_view text, const access::AccessList& list) {
  const access::Digest fresh = access::DigestOf("fuzz");
  if (list.FindByDigest(fresh) != nullptr) return;
  for (size_t i = 0; i < std::min(kEditedMax, list.entries().size()); ++i) {
    const std::string& name = list.entries()[i].principal.name;
    const auto changed = access::WithSecret(text, kFile, name, fresh);
    if (!changed.ok()) {
      REQUIRE(changed.status().code() != StatusCode::kNotFound);
      continue;
    }
    std::vector<access::Entry> after = access::ParseAccess(*changed, kFile).entries;
    after[i].secrets.erase(after[i].secrets.begin());
    REQUIRE(after == list.entries());
  }
}

}  // namespace

void FuzzAccess(std::string_view input) {
  const auto list = access::AccessList::Parse(input, kFile);
  if (!list.ok()) {
    REQUIRE(list.status().code() == StatusCode::kInvalidArgument);
    REQUIRE(list.status().message().starts_with("fuzz.toml:"));
    return;
  }
  CheckFinds(**list);
  CheckEdits(input, **list);
}

}  // namespace nowcalls::fuzz
