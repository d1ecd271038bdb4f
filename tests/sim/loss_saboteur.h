// LossSaboteur: breaks what a server promises of the notices of lost tokens.
//
// Thread: one at a time. It is shown what passes between clients and the engine, and remembers
// which connection was granted which token.
#ifndef NOWCALLS_SIM_LOSS_SABOTEUR_H_
#define NOWCALLS_SIM_LOSS_SABOTEUR_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sim/network.h"
#include "wire/messages.h"

namespace nowcalls::sim {

class LossSaboteur {
 public:
  enum class Kind : uint8_t {
    kNone,
    kOfReleased,  // A release is followed by a notice that the token is lost.
    kEarly,       // A notice comes with the request to take the token back, before the commit.
    kWithheld,    // No notice comes.
  };

  explicit LossSaboteur(Kind kind) : kind_(kind) {}

  bool tampers() const { return kind_ != Kind::kNone; }
  // A request on its way to the engine. Returns what the client is sent at once.
  std::string OnRequest(LinkId link, const wire::Envelope& envelope);
  // What the client is given instead of the engine's message.
  std::string OnReply(LinkId link, std::string_view message);

 private:
  struct Grant {
    LinkId link = 0;
    int64_t flow = 0;
  };
  using Call = std::pair<LinkId, uint32_t>;  // With its msgid.

  std::string Notice(uint64_t token, EndReason reason) const;

  const Kind kind_;
  std::set<LinkId> listeners_;
  std::map<Call, int64_t> acquires_;   // Their flows.
  std::map<Call, uint64_t> releases_;  // Their tokens.
  std::map<uint64_t, Grant> grants_;   // By token.
  std::map<LinkId, std::string> early_;
  std::set<uint64_t> told_early_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_LOSS_SABOTEUR_H_
