// Closing: how connections end.
//
// Thread: loop. Three ways: End answers what was asked and then closes; Refuse tells the peer why
// and then ends; Abort closes at once.
#ifndef NOWCALLS_ENGINE_CLOSING_H_
#define NOWCALLS_ENGINE_CLOSING_H_

#include <string>

#include "core/core.h"
#include "engine/batches.h"
#include "engine/connection.h"
#include "engine/driver.h"

namespace nowcalls::engine {

class Inputs;
class LateAnswers;
class Outputs;

class Closing {
 public:
  Closing(core::Core* core, Driver* driver, Batches* batches, Inputs* inputs, Outputs* outputs,
          LateAnswers* late);

  // Takes nothing more from the connection, and closes it when what it asked is answered. Its
  // acquires that wait leave the queue unanswered.
  void End(Connection* connection);
  // End, with a line in the log: "connection HOST:PORT WHY; closing it". The peer must have been
  // told.
  void EndRefused(Connection* connection, const std::string& why);
  // Tells the peer and ends the connection, because it `why`.
  void Refuse(Connection* connection, const std::string& why);
  void Abort(Connection* connection, const std::string& why);

  // REQUIRES: the connection is ending. Answers may have left since.
  void CloseIfAnswered(Connection* connection);
  void EndSession(Connection* connection);

 private:
  void Log(const Connection& connection, const std::string& why);

  core::Core* const core_;
  Driver* const driver_;
  Batches* const batches_;
  Inputs* const inputs_;
  Outputs* const outputs_;
  LateAnswers* const late_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_CLOSING_H_
