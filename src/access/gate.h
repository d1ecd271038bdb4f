// Gate: takes a peer for a principal, by what it shows.
//
// Thread: any; a value. Without a list whoever reaches the server is an administrator of all.
#ifndef NOWCALLS_ACCESS_GATE_H_
#define NOWCALLS_ACCESS_GATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "access/access.h"
#include "access/access_list.h"
#include "net/peer.h"
#include "nowcalls/status.h"

namespace nowcalls::access {

// By what a peer is known. The last that fits counts: a shown secret most.
enum class Proof : uint8_t {
  kNothing,      // Role kAnybody: it may show a secret.
  kOpen,         // There is no list.
  kNetwork,      //
  kCertificate,  //
  kMachine,      // A Unix socket's peer of root or of the server's user: administrator.
  kSecret,       //
};
std::string_view ProofName(Proof proof);  // "certificate"

struct Identity {
  Principal principal{};
  Proof proof = Proof::kNothing;
  Digest secret{};  // With kSecret.

  bool known() const { return proof != Proof::kNothing; }
};

class Gate {
 public:
  Gate() = default;
  explicit Gate(std::shared_ptr<const AccessList> list) : list_(std::move(list)) {}
  // `of_members`: the secret of the cluster's members, who are administrators.
  Gate(std::shared_ptr<const AccessList> list, const Digest& of_members)
      : list_(std::move(list)), of_members_(of_members) {}

  bool open() const { return list_ == nullptr; }

  // By address, certificate or credentials of the kernel. Who shakes hands is nobody.
  Identity Greet(const net::Peer& peer) const;
  // kPermissionDenied: wrong, without a hint. kFailedPrecondition: others can read this connection.
  // An open gate greets.
  Result<Identity> Show(const net::Peer& peer, std::string_view secret) const;
  // After another list came: its new identity. nullopt: the peer is nobody any more, is another, or
  // may less; its connection ends.
  std::optional<Identity> Again(const net::Peer& peer, const Identity& identity) const;

 private:
  // nullopt: of nobody.
  std::optional<Principal> PrincipalBy(const Digest& secret, bool right) const;

  std::shared_ptr<const AccessList> list_{};
  std::optional<Digest> of_members_{};
};

}  // namespace nowcalls::access

#endif  // NOWCALLS_ACCESS_GATE_H_
