// Whom a gate takes a peer for, and what another list changes about that.
#include "access/gate.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/peer.h"

namespace nowcalls::access {
namespace {

constexpr std::string_view kSecret = "ncs_right";

Entry Shop(Role role = Role::kClient) {
  Entry entry;
  entry.principal = {.name = "shop", .role = role, .namespaces = {{"shop", "shop-*"}}};
  entry.secrets = {DigestOf(kSecret)};
  entry.certificates = {"spiffe://shop"};
  entry.networks = {*ParseNetwork("10.1.0.0/16")};
  return entry;
}

Entry Other() {
  Entry entry;
  entry.principal = {.name = "other", .role = Role::kObserver};
  entry.secrets = {DigestOf("ncs_other")};
  entry.networks = {*ParseNetwork("10.2.0.0/16")};
  return entry;
}

Gate GateOf(std::vector<Entry> entries) {
  return Gate(std::make_shared<const AccessList>(std::move(entries)));
}

const net::Peer kStranger{.name = "10.9.0.1:7", .host = "10.9.0.1"};
const net::Peer kOfShop{.name = "10.1.0.1:7", .host = "10.1.0.1"};
const net::Peer kEncrypted{.name = "10.9.0.1:8", .host = "10.9.0.1", .encrypted = true};

net::Peer OfUser(uid_t uid) {
  return {.name = "unix:7/1", .credentials = net::UnixCredentials{7, uid, 0}};
}

TEST_CASE("without a list everybody is an administrator, and no secret is looked at") {
  const Gate gate;
  CHECK(gate.open());
  const Identity identity = gate.Greet(kStranger);
  CHECK(identity.proof == Proof::kOpen);
  CHECK(identity.principal.role == Role::kAdministrator);
  CHECK(identity.principal.name == "10.9.0.1:7");
  CHECK_FALSE(identity.principal.namespaces.has_value());
  CHECK(gate.Show(kStranger, "x")->proof == Proof::kOpen);
}

TEST_CASE("with a list a peer is what it shows, and else nobody") {
  const Gate gate = GateOf({Shop(), Other()});
  CHECK_FALSE(gate.open());
  const Identity nobody = gate.Greet(kStranger);
  CHECK_FALSE(nobody.known());
  CHECK(nobody.principal == Principal{});
  CHECK(nobody.principal.role == Role::kAnybody);
  CHECK(gate.Greet(kOfShop).proof == Proof::kNetwork);
  CHECK(gate.Greet(kOfShop).principal == Shop().principal);
  // A certificate says more than a network.
  net::Peer both{.host = "10.2.0.1", .encrypted = true, .certificate = "spiffe://shop"};
  CHECK(gate.Greet(both).proof == Proof::kCertificate);
  CHECK(gate.Greet(both).principal.name == "shop");
  both.certificate = "spiffe://unknown";
  CHECK(gate.Greet(both).proof == Proof::kNetwork);
  CHECK(gate.Greet(both).principal.name == "other");
}

TEST_CASE("of a Unix socket's peers root and the server's user are administrators") {
  const Gate gate = GateOf({Shop()});
  for (const uid_t uid : {uid_t{0}, geteuid()}) {
    CHECK(gate.Greet(OfUser(uid)).proof == Proof::kMachine);
    CHECK(gate.Greet(OfUser(uid)).principal.role == Role::kAdministrator);
    CHECK(gate.Greet(OfUser(uid)).principal.name == "unix:7/1");
  }
  CHECK_FALSE(gate.Greet(OfUser(4711)).known());
  // A secret that is shown counts more, and any user may show one.
  for (const uid_t uid : {uid_t{0}, uid_t{4711}}) {
    CHECK(gate.Show(OfUser(uid), kSecret)->principal.name == "shop");
  }
}

TEST_CASE("a secret is taken over TLS, from this machine and over the Unix socket only") {
  const Gate gate = GateOf({Shop(), Other()});
  for (const net::Peer& safe : {kEncrypted, net::Peer{.host = "127.0.0.1", .loopback = true}}) {
    const Result<Identity> identity = gate.Show(safe, kSecret);
    REQUIRE(identity.ok());
    CHECK(identity->proof == Proof::kSecret);
    CHECK(identity->principal == Shop().principal);
    CHECK(identity->secret == DigestOf(kSecret));
  }
  for (const net::Peer& open : {kStranger, kOfShop, net::Peer{}}) {
    CHECK(gate.Show(open, kSecret).status().code() == StatusCode::kFailedPrecondition);
    // Also for a wrong one: nothing is told of it.
    CHECK(gate.Show(open, "x").status().message() == gate.Show(open, kSecret).status().message());
  }
}

TEST_CASE("a wrong secret has one answer, whatever is wrong with it") {
  const Gate gate = GateOf({Shop(), Other()});
  std::vector<std::string> wrong = {"", "x", "ncs_", std::string(kSecret) + "x",
                                    std::string(kSecret.substr(1))};
  for (size_t i = 0; i < kSecret.size(); ++i) {
    wrong.emplace_back(kSecret);
    wrong.back()[i] ^= 1;
  }
  for (const std::string& secret : wrong) {
    const Status refused = gate.Show(kEncrypted, secret).status();
    CHECK(refused.code() == StatusCode::kPermissionDenied);
    CHECK(refused.message() == "the secret is wrong");
  }
}

// What becomes of a peer of the shop's network, and of one with its secret, when it is `entry`.
std::optional<Identity> ByNetwork(const std::vector<Entry>& entries) {
  std::optional<Identity> now = GateOf(entries).Again(kOfShop, GateOf({Shop()}).Greet(kOfShop));
  const std::optional<Identity> shown =
      GateOf(entries).Again(kEncrypted, *GateOf({Shop()}).Show(kEncrypted, kSecret));
  CHECK(now.has_value() == shown.has_value());
  if (now.has_value()) CHECK(now->principal == shown->principal);
  if (shown.has_value()) CHECK(shown->proof == Proof::kSecret);
  return now;
}

TEST_CASE("another list with the same or more rights gives them in place") {
  CHECK(ByNetwork({Other(), Shop()})->principal == Shop().principal);
  CHECK(ByNetwork({Shop(Role::kAdministrator)})->principal.role == Role::kAdministrator);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"shop*"}, {"*"}, {"a", "shop-*", "shop"}, {"sh*"}}) {
    Entry entry = Shop();
    entry.principal.namespaces = more;
    const auto now = ByNetwork({entry});
    REQUIRE(now.has_value());
    CHECK(now->principal.namespaces == more);
  }
  Entry all = Shop();
  all.principal.namespaces.reset();
  CHECK(ByNetwork({all}).has_value());
}

TEST_CASE("another list that narrows a principal, renames it or leaves it out ends its peers") {
  CHECK_FALSE(ByNetwork({Other()}).has_value());
  CHECK_FALSE(ByNetwork({Shop(Role::kObserver)}).has_value());
  for (const std::vector<std::string>& less :
       {std::vector<std::string>{"shop"}, {"shop-*"}, {"shop", "shop-e*"}, {"shop", "shop-"}}) {
    Entry entry = Shop();
    entry.principal.namespaces = less;
    CHECK_FALSE(ByNetwork({entry}).has_value());
  }
  Entry renamed = Shop();
  renamed.principal.name = "store";
  CHECK_FALSE(ByNetwork({renamed}).has_value());
  // From all namespaces to some; "*" is all.
  const Identity all{.principal = {.name = "shop", .role = Role::kClient},
                     .proof = Proof::kNetwork};
  CHECK_FALSE(GateOf({Shop()}).Again(kOfShop, all).has_value());
  Entry star = Shop();
  star.principal.namespaces = {{"*"}};
  CHECK(GateOf({star}).Again(kOfShop, all).has_value());
}

TEST_CASE("a secret that was taken away ends what it began, though the network is the same") {
  net::Peer peer = kOfShop;
  peer.encrypted = true;
  const Identity shown = *GateOf({Shop()}).Show(peer, kSecret);
  Entry rotated = Shop();
  rotated.secrets = {DigestOf("ncs_new")};
  CHECK_FALSE(GateOf({rotated}).Again(peer, shown).has_value());
  rotated.secrets.push_back(DigestOf(kSecret));
  CHECK(GateOf({rotated}).Again(peer, shown)->proof == Proof::kSecret);
}

TEST_CASE("a peer that was nobody may become somebody, and one that was open must show itself") {
  const Identity nobody = GateOf({Other()}).Greet(kOfShop);
  CHECK(GateOf({Shop()}).Again(kOfShop, nobody)->principal.name == "shop");
  const auto still = GateOf({Other()}).Again(kOfShop, nobody);
  REQUIRE(still.has_value());
  CHECK_FALSE(still->known());
  CHECK_FALSE(GateOf({Shop()}).Again(kOfShop, Gate().Greet(kOfShop)).has_value());
  CHECK(GateOf({Shop()}).Again(OfUser(0), Gate().Greet(OfUser(0)))->proof == Proof::kMachine);
  const auto open = Gate().Again(kOfShop, *GateOf({Shop()}).Show(kEncrypted, kSecret));
  CHECK(open->proof == Proof::kOpen);
}

TEST_CASE("who shakes hands is nobody, whatever its address and the gate") {
  net::Peer peer = kOfShop;
  peer.shakes_hands = true;
  CHECK_FALSE(Gate().Greet(peer).known());
  CHECK_FALSE(GateOf({Shop()}).Greet(peer).known());
  CHECK_FALSE(GateOf({Shop()}).Again(peer, Identity{})->known());
}

TEST_CASE("proofs have names") {
  CHECK(ProofName(Proof::kNothing) == "nothing");
  CHECK(ProofName(Proof::kOpen) == "open");
  CHECK(ProofName(Proof::kNetwork) == "network");
  CHECK(ProofName(Proof::kCertificate) == "certificate");
  CHECK(ProofName(Proof::kMachine) == "machine");
  CHECK(ProofName(Proof::kSecret) == "secret");
}

}  // namespace
}  // namespace nowcalls::access
