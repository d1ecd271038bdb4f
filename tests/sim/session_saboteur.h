// SessionSaboteur: breaks one promise of a client session on purpose, between the session and its
// connection or its callers, so that a test can demand that the judge notices.
//
// Thread: one at a time. With a sabotage of others it does nothing.
#ifndef NOWCALLS_SIM_SESSION_SABOTEUR_H_
#define NOWCALLS_SIM_SESSION_SABOTEUR_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/prng.h"
#include "sim/saboteur.h"

namespace nowcalls::sim {

class SessionSaboteur {
 public:
  SessionSaboteur(Sabotage kind, uint64_t seed) : kind_(kind), prng_(seed ^ 0x5ab0) {}

  // Whether a message of the session is not sent. What the session is answered instead is appended
  // to *replies.
  bool Swallows(std::string_view message, std::string* replies);
  // Whether the session is given a message of the server.
  bool Hears(std::string_view message) const;
  bool hears_all() const { return kind_ != Sabotage::kSessionDeaf; }
  // Whether a caller is not told of its answer.
  bool Forgets() { return kind_ == Sabotage::kSessionSilent && prng_.Below(20) == 0; }

 private:
  const Sabotage kind_;
  Prng prng_;
  std::set<uint64_t> asked_;  // Request ids.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SESSION_SABOTEUR_H_
