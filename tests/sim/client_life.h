// ClientLife: what a simulated client does all day, by seed.
//
// Thread: one at a time. It acquires, waits, keeps, releases, and does what clients should not:
// pauses past its deadlines, gives up, cancels, releases twice, or what is another's, reuses
// request ids, hangs up in the middle of everything. Back on a connection it settles what was left
// unanswered, as wire/PROTOCOL.md asks: by asking again or by cancelling.
#ifndef NOWCALLS_SIM_CLIENT_LIFE_H_
#define NOWCALLS_SIM_CLIENT_LIFE_H_

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "sim/sim_client.h"
#include "sim/world.h"

namespace nowcalls::sim {

class ClientLife {
 public:
  // Request ids are from `first_request_id` on.
  ClientLife(World* world, SimClient* client, uint64_t first_request_id, uint64_t seed);

  void Begin() { ActLater(); }
  // Nothing is begun any more; what has been asked goes on.
  void Stop() { stopped_ = true; }

 private:
  void ActLater();
  void Act();
  void Reconnect();
  void Settle();
  void DoSomething();
  const SimClient::Held* SomeHeld();  // Null: none.
  void AcquireNew();
  void ReleaseWrongly();
  void RequestCalls();
  void AskAgain();
  void CancelSomething();
  bool Leaves();
  SimClient::Wanted Draw();
  void DrawGroup(SimClient::Wanted* wanted);
  void DrawRates(SimClient::Wanted* wanted);

  World* const world_;
  SimClient* const client_;
  Prng prng_;
  Prng holds_prng_;  // A stream of its own, so that seeds mean what they meant.
  Prng group_prng_;  // Of its own, so that clients without groups live as they did before.
  Prng rates_prng_;  // Likewise, of rates in groups.
  uint64_t next_request_id_;
  bool stopped_ = false;

  // The character of this client.
  int64_t pace_us_;
  size_t held_max_;
  uint32_t request_id_chance_;
  uint32_t wait_chance_;
  uint64_t calls_percent_;   // Of what it does that is about calls a second, above a little.
  uint64_t groups_percent_;  // Of its acquires that are acquire_alls.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_CLIENT_LIFE_H_
