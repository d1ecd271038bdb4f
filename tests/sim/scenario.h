// Scenario: a world in which nothing goes wrong by itself, for tests that tell what happens.
//
// Thread: one at a time. Everything takes a microsecond; the server is started by hand. What
// happened is read as text, and must be exactly that.
#ifndef NOWCALLS_SIM_SCENARIO_H_
#define NOWCALLS_SIM_SCENARIO_H_

#include <cstddef>
#include <string>
#include <vector>

#include "sim/world.h"

namespace nowcalls::sim {

class Scenario {
 public:
  using Lines = std::vector<std::string>;

  explicit Scenario(const std::vector<SimRule>& rules, size_t nodes = 1);
  // The oracle has found nothing.
  ~Scenario();
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;

  World& world() { return world_; }
  SimServer& server() { return world_.server(); }
  // A client of namespace "shop" that is connected and has said hello.
  SimClient& Client(const std::string& name);
  void Open(SimClient* client);
  // A client of frames in namespace "shop" that has sent its PING.
  SimSentinel& Sentinel(const std::string& name);
  void Open(SimSentinel* sentinel);

  void Pass(int64_t duration_ms) { world_.RunFor(duration_ms * kMs); }
  // Long enough for an answer, short for every deadline.
  void Settle() { Pass(2); }
  void LoadRules(const std::vector<SimRule>& rules);
  // A client acquires, and has the token.
  void Take(SimClient* client, int64_t flow, uint64_t request_id = 0);
  // The process is gone; the batch under way, if there is one, survives or is lost.
  void Kill(bool batch_survives);
  void Start();
  // Another node takes the claim and leads; the batch under way is in the log or is not. Returns
  // the old writer, which does not know it yet.
  SimServer& TakeClaim(bool batch_lands);
  // The same, and the old writer is told.
  void Depose(bool batch_lands);
  void Terminate();  // And waits for the end.

  size_t tokens_in_ledger() { return world_.Dump().tokens.size(); }
  // What has happened since it was last asked, one line each.
  Lines Told() { return world_.trace().TakeTexts(); }

 private:
  World world_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SCENARIO_H_
