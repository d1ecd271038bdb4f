#include "access/gate.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

namespace nowcalls::access {
namespace {

using Patterns = std::vector<std::string>;

bool IsOfMachine(const net::Peer& peer) {
  if (!peer.credentials.has_value()) return false;
  return peer.credentials->uid == 0 || peer.credentials->uid == geteuid();
}

// Nobody but the two ends reads what passes.
bool IsPrivate(const net::Peer& peer) {
  return peer.encrypted || peer.loopback || peer.credentials.has_value();
}

// Whether one of the patterns has all names of `pattern`.
bool CoversPattern(const Patterns& patterns, std::string_view pattern) {
  const std::string_view begin = pattern.substr(0, pattern.find('*'));
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view other) {
    if (!other.ends_with('*')) return other == pattern;
    return begin.starts_with(other.substr(0, other.size() - 1));
  });
}

bool MayLess(const Principal& now, const Principal& before) {
  if (now.role < before.role) return true;
  if (!now.namespaces.has_value() || now.namespaces == before.namespaces) return false;
  const Patterns all = {"*"};
  const Patterns& patterns = before.namespaces.has_value() ? *before.namespaces : all;
  return !std::all_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return CoversPattern(*now.namespaces, pattern);
  });
}

}  // namespace

std::string_view ProofName(Proof proof) {
  switch (proof) {
    case Proof::kNothing: return "nothing";
    case Proof::kOpen: return "open";
    case Proof::kNetwork: return "network";
    case Proof::kCertificate: return "certificate";
    case Proof::kMachine: return "machine";
    case Proof::kSecret: return "secret";
  }
  return "";
}

// `right`: it was right before, so its comparison tells nobody anything.
std::optional<Principal> Gate::PrincipalBy(const Digest& secret, bool right) const {
  if (of_members_ == secret) {
    return Principal{.name = "member of the cluster", .role = Role::kAdministrator};
  }
  const Entry* const entry = right ? list_->FindByRightDigest(secret) : list_->FindByDigest(secret);
  if (entry == nullptr) return std::nullopt;
  return entry->principal;
}

Identity Gate::Greet(const net::Peer& peer) const {
  if (peer.shakes_hands) return {};
  if (open()) return {.principal = PrincipalOf(peer), .proof = Proof::kOpen};
  if (IsOfMachine(peer)) return {.principal = PrincipalOf(peer), .proof = Proof::kMachine};
  if (!peer.certificate.empty()) {
    const Entry* const entry = list_->FindByCertificate(peer.certificate);
    if (entry != nullptr) return {.principal = entry->principal, .proof = Proof::kCertificate};
  }
  if (const Entry* const entry = list_->FindByHost(peer.host); entry != nullptr) {
    return {.principal = entry->principal, .proof = Proof::kNetwork};
  }
  return {};
}

Result<Identity> Gate::Show(const net::Peer& peer, std::string_view secret) const {
  if (open()) return Greet(peer);
  if (!IsPrivate(peer)) {
    return Status::FailedPrecondition(
        "secrets are taken over TLS, from the machine itself and over its Unix socket only");
  }
  const Digest digest = DigestOf(secret);
  std::optional<Principal> principal = PrincipalBy(digest, /*right=*/false);
  if (!principal) return Status::PermissionDenied("the secret is wrong");
  return Identity{.principal = *std::move(principal), .proof = Proof::kSecret, .secret = digest};
}

std::optional<Identity> Gate::Again(const net::Peer& peer, const Identity& identity) const {
  Identity now;
  // A secret that was taken away ends what it began, whatever else the peer could show.
  if (identity.proof == Proof::kSecret && !open()) {
    std::optional<Principal> principal = PrincipalBy(identity.secret, /*right=*/true);
    if (!principal) return std::nullopt;
    now = {.principal = *std::move(principal), .proof = Proof::kSecret, .secret = identity.secret};
  } else {
    now = Greet(peer);
  }
  if (!identity.known()) return now;
  const bool is_other = !open() && now.principal.name != identity.principal.name;
  if (is_other || !now.known() || MayLess(now.principal, identity.principal)) return std::nullopt;
  return now;
}

}  // namespace nowcalls::access
