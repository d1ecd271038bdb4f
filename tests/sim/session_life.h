// SessionLife: what a program with the client library does all day, by seed.
//
// Thread: one at a time. It has several calls in progress at once, as if it had threads. It
// acquires with and without waits and with short timeouts, releases, keeps, and asks for calls a
// second. It is killed or closed, and starts anew under the same client id. There it may adopt
// tokens of the process before.
#ifndef NOWCALLS_SIM_SESSION_LIFE_H_
#define NOWCALLS_SIM_SESSION_LIFE_H_

#include <cstddef>
#include <cstdint>

#include "base/prng.h"
#include "sim/session_client.h"
#include "sim/world.h"

namespace nowcalls::sim {

class SessionLife {
 public:
  SessionLife(World* world, SessionClient* client, uint64_t seed);

  void Begin();
  // Nothing is begun any more, and what is held is given back, or left to the server.
  void Stop();
  // The program ends.
  void Leave();

 private:
  void ActLater();
  void Act();
  void DoSomething();
  void AcquireNew();
  void RequestCalls();
  bool Ends();
  void StartAgain();

  World* const world_;
  SessionClient* const client_;
  Prng prng_;
  bool stopped_ = false;
  int64_t starts_us_ = 0;  // Not before then.

  // The character of this program.
  int64_t pace_us_;
  size_t held_max_;
  uint32_t wait_chance_;
  uint32_t hurry_chance_;  // Of a timeout of its own.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SESSION_LIFE_H_
