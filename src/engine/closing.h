// Closing: how connections end.
//
// Thread: loop. End answers what was asked, then closes. Refuse tells the peer why, then ends.
// Abort closes at once. `why` continues "connection HOST:PORT ".
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

  // Waiting acquires get no answer.
  void End(Connection* connection);
  // End, and logs `why`. REQUIRES: the peer was told.
  void EndRefused(Connection* connection, const std::string& why);
  void Refuse(Connection* connection, const std::string& why);
  void Abort(Connection* connection, const std::string& why);

  // Call when answers may have left. REQUIRES: the connection is ending.
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
