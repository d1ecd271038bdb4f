// HandshakeBudget: how many connections that shake hands a turn receives from.
//
// Thread: loop. At most kPerTurnMax, and about kNsPerTurn of work: a step costs 0.5 ms with most
// keys, 5 ms with others.
#ifndef NOWCALLS_SERVER_LOOP_HANDSHAKE_BUDGET_H_
#define NOWCALLS_SERVER_LOOP_HANDSHAKE_BUDGET_H_

#include <algorithm>
#include <cstdint>

namespace nowcalls::server {

class HandshakeBudget {
 public:
  static constexpr uint64_t kPerTurnMax = 4;
  static constexpr uint64_t kNsPerTurn = 5'000'000;

  void BeginTurn() { taken_ = 0; }
  // Whether one more may be received from; the first always may.
  bool Take() {
    const uint64_t most =
        std::clamp<uint64_t>(kNsPerTurn / std::max<uint64_t>(step_ns_, 1), 1, kPerTurnMax);
    return taken_ < most && ++taken_ > 0;
  }
  // The dearest step counts, and is forgotten bit by bit: cheap ones come between.
  void Took(uint64_t ns) { step_ns_ = std::max(ns, step_ns_ - step_ns_ / 16); }

 private:
  uint64_t taken_ = 0;  // In this turn.
  uint64_t step_ns_ = 0;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOOP_HANDSHAKE_BUDGET_H_
