// Inputs: bytes of connections become messages, in turns.
//
// Thread: loop. A visit takes messages of one connection, bounded by cost and budget. Input left
// over waits in a line (lines.h), and its connection is not read meanwhile.
#ifndef NOWCALLS_ENGINE_INPUTS_H_
#define NOWCALLS_ENGINE_INPUTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "engine/batches.h"
#include "engine/connections.h"
#include "engine/driver.h"
#include "engine/held_input.h"
#include "engine/lines.h"
#include "engine/protocols.h"
#include "engine/turn_budget.h"

namespace nowcalls::engine {

class Closing;
class LateAnswers;
class Outputs;
class Strangers;

class Inputs {
 public:
  Inputs(const Limits& limits, core::Core* core, Driver* driver, Connections* connections,
         Batches* batches, BufferPool* buffers, Protocols* protocols, Outputs* outputs,
         LateAnswers* late, Closing* closing, Strangers* strangers);

  void TakeBytes(Connection* connection, std::string_view bytes);
  // Visits waiting connections, within the budget left.
  void Resume();
  void BeginTurn() { budget_ = TurnBudget(); }

  void Drop(Connection* connection);  // Input that is not taken yet.
  size_t DropWaiting();               // Of all that wait for a turn; returns their number.
  std::optional<SlowPeer> OldestIncomplete() const { return held_.OldestIncomplete(); }

  Lines* lines() { return &lines_; }
  const Lines* lines() const { return &lines_; }

 private:
  void Revisit(Connection* connection, int* turn_left);
  size_t TakeMessages(Connection* connection, std::string_view bytes, int* turn_left);
  Taken TakeOne(Connection* connection, std::string_view rest, Visit* visit, int* visit_left);
  void Leave(Connection* connection, std::string_view rest, const Taken& message);
  InputWaits WaitsFor(const Connection& connection) const;
  int Charge(const Taken& message, size_t bytes, uint64_t looks);
  size_t BytesMade(const Connection& connection) const;
  bool MayWork(const Connection* connection) const;
  void Bound();

  const Limits& limits_;
  core::Core* const core_;
  Driver* const driver_;
  Connections* const connections_;
  Batches* const batches_;
  Protocols* const protocols_;
  Outputs* const outputs_;
  LateAnswers* const late_;
  Closing* const closing_;
  Strangers* const strangers_;
  HeldInput held_;
  Lines lines_;
  TurnBudget budget_;
  const Connection* first_in_line_ = nullptr;  // For work: its turn has come.
  std::string why_;                            // What a protocol said of a message it refused.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_INPUTS_H_
