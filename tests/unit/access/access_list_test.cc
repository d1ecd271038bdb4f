// Networks, and whom a list finds by what is shown.
#include "access/access_list.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "access/network.h"
#include "base/hex.h"

namespace nowcalls::access {
namespace {

Entry Named(const std::string& name) { return {.principal = {.name = name}}; }

Entry WithNetworks(const std::string& name, const std::vector<std::string>& networks) {
  Entry entry = Named(name);
  for (const std::string& text : networks) {
    const Result<Network> network = ParseNetwork(text);
    REQUIRE_MESSAGE(network.ok(), network.status().message());
    entry.networks.push_back(*network);
  }
  return entry;
}

std::string NameOf(const Entry* entry) { return entry == nullptr ? "-" : entry->principal.name; }

TEST_CASE("a digest is SHA-256 of the secret") {
  const Digest digest = DigestOf("abc");
  CHECK(ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()}) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("of networks that hold an address the one with the longest prefix wins") {
  const AccessList list({WithNetworks("wide", {"10.0.0.0/8", "2001:db8::/32"}),
                         WithNetworks("one", {"10.1.2.3/32"}),
                         WithNetworks("narrow", {"10.1.0.0/16", "2001:db8:1::/48"}),
                         WithNetworks("all", {"0.0.0.0/0"})});
  CHECK(NameOf(list.FindByHost("10.1.2.3")) == "one");
  CHECK(NameOf(list.FindByHost("10.1.2.4")) == "narrow");
  CHECK(NameOf(list.FindByHost("10.2.0.0")) == "wide");
  CHECK(NameOf(list.FindByHost("11.0.0.0")) == "all");
  CHECK(NameOf(list.FindByHost("2001:db8:1::7")) == "narrow");
  CHECK(NameOf(list.FindByHost("2001:db8:2::7")) == "wide");
  CHECK(NameOf(list.FindByHost("2001:db9::7")) == "-");
  CHECK(NameOf(list.FindByHost("")) == "-");
  CHECK(NameOf(list.FindByHost("localhost")) == "-");
}

TEST_CASE("an IPv4 address that is mapped to IPv6 is the IPv4 address") {
  const AccessList list({WithNetworks("v4", {"10.1.0.0/16"}),
                         WithNetworks("mapped", {"::ffff:10.2.0.0/112"}),
                         WithNetworks("v6", {"::/0"})});
  CHECK(NameOf(list.FindByHost("::ffff:10.1.2.3")) == "v4");
  CHECK(NameOf(list.FindByHost("10.2.0.1")) == "mapped");
  CHECK(NameOf(list.FindByHost("fd00::1")) == "v6");
  // All of IPv6 is no address of IPv4.
  CHECK(NameOf(list.FindByHost("10.3.0.1")) == "-");
  CHECK(NameOf(list.FindByHost("::ffff:10.3.0.1")) == "-");
}

TEST_CASE("a network is an address in digits and a prefix that has all of its bits") {
  for (const char* good : {"0.0.0.0/0", "::/0", "127.0.0.1/32", "::1/128", "192.168.128.0/17"}) {
    CAPTURE(good);
    CHECK(ParseNetwork(good).ok());
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"", "must be ADDRESS/PREFIX in digits, such as 10.1.0.0/16, got ''"},
      {"shop/8", "must be ADDRESS/PREFIX in digits, such as 10.1.0.0/16, got 'shop/8'"},
      {"10.1/16", "must be ADDRESS/PREFIX in digits, such as 10.1.0.0/16, got '10.1/16'"},
      {"fe80::1%eth0/64",
       "must be ADDRESS/PREFIX in digits, such as 10.1.0.0/16, got 'fe80::1%eth0/64'"},
      {"::1", "must be ADDRESS/PREFIX, with /128 for one address, got '::1'"},
      {"10.0.0.0/33", "must be ADDRESS/PREFIX with a prefix from 0 to 32, got '10.0.0.0/33'"},
      {"10.0.0.0/", "must be ADDRESS/PREFIX with a prefix from 0 to 32, got '10.0.0.0/'"},
      {"10.0.0.0/8x", "must be ADDRESS/PREFIX with a prefix from 0 to 32, got '10.0.0.0/8x'"},
      {"10.0.0.0/-1", "must be ADDRESS/PREFIX with a prefix from 0 to 32, got '10.0.0.0/-1'"},
      {"::/129", "must be ADDRESS/PREFIX with a prefix from 0 to 128, got '::/129'"},
      {"10.1.2.3/16", "must be a network, such as 10.1.0.0/16, got '10.1.2.3/16'"},
      {"10.1.255.0/17", "must be a network, such as 10.1.128.0/17, got '10.1.255.0/17'"},
      {"fd00:1::1/32", "must be a network, such as fd00:1::/32, got 'fd00:1::1/32'"},
  };
  for (const auto& [text, message] : wrong) {
    CHECK(ParseNetwork(text).status().message() == message);
  }
}

TEST_CASE("names of certificates are compared byte for byte") {
  Entry entry = Named("a");
  entry.certificates = {"x", "spiffe://prod/a"};
  const AccessList list({Named("none"), entry});
  CHECK(NameOf(list.FindByCertificate("spiffe://prod/a")) == "a");
  for (const char* other : {"", "X", "spiffe://prod/a/", "spiffe://prod/*", "SPIFFE://prod/a"}) {
    CAPTURE(other);
    CHECK(list.FindByCertificate(other) == nullptr);
  }
}

TEST_CASE("a full list finds what was right before by digest, name and address") {
  std::vector<Entry> entries;
  for (int i = 0; i < 1'000; ++i) {
    Entry entry = Named("p" + std::to_string(i));
    for (int k = 0; k < 4; ++k) {
      entry.secrets.push_back(DigestOf(std::to_string(i) + "-" + std::to_string(k)));
    }
    for (int k = 0; k < 100; ++k) {
      const std::string number = std::to_string(i * 100 + k);
      entry.certificates.push_back("spiffe://prod/" + number);
      entry.networks.push_back(
          {.address = {10, static_cast<uint8_t>(k), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                       static_cast<uint8_t>(i / 256), static_cast<uint8_t>(i % 256)},
           .prefix = 128});
    }
    entries.push_back(std::move(entry));
  }
  const AccessList list(std::move(entries));
  const Digest digest = DigestOf("500-2");
  const char* const names[] = {"p500", "p501", "p300"};
  const Entry* const found[] = {list.FindByRightDigest(digest),
                                list.FindByCertificate("spiffe://prod/50107"),
                                list.FindByHost("a07::12c")};
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE(found[i] != nullptr);
    CHECK(found[i]->principal.name == names[i]);
  }
}

TEST_CASE("a digest is found whole, whichever of a principal's it is") {
  Entry entry = Named("a");
  entry.secrets = {DigestOf("old"), DigestOf("new")};
  const AccessList list({Named("none"), entry, Named("last")});
  for (const char* secret : {"old", "new"}) {
    CHECK(NameOf(list.FindByDigest(DigestOf(secret))) == "a");
    CHECK(NameOf(list.FindByRightDigest(DigestOf(secret))) == "a");
  }
  for (size_t byte = 0; byte < sizeof(Digest); ++byte) {
    Digest wrong = DigestOf("new");
    wrong[byte] ^= 1;
    CHECK(list.FindByDigest(wrong) == nullptr);
    CHECK(list.FindByRightDigest(wrong) == nullptr);
  }
}

}  // namespace
}  // namespace nowcalls::access
