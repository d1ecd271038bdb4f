// LateAnswers: brings the answers of acquires that waited to their connections.
//
// Thread: loop. Almost every call of the core may end waits, so Send follows each of them.
#ifndef NOWCALLS_ENGINE_LATE_ANSWERS_H_
#define NOWCALLS_ENGINE_LATE_ANSWERS_H_

#include "core/core.h"
#include "engine/connections.h"
#include "engine/outputs.h"

namespace nowcalls::engine {

class LateAnswers {
 public:
  LateAnswers(core::Core* core, Connections* connections, Outputs* outputs)
      : core_(core), connections_(connections), outputs_(outputs) {}

  void Send() {
    if (core_->has_late_answers()) SendAll();
  }

 private:
  // A connection that is closed gets none.
  void SendAll() {
    for (const core::LateAnswer& late : core_->TakeLateAnswers()) {
      Connection* connection = connections_->Get(late.ticket.owner);
      if (!connection->open() && connection->state != ConnectionState::kEnding) continue;
      connection->protocol->AnswerAcquire(connection, late.ticket.tag, late.answer);
      outputs_->Count(connection);
    }
  }

  core::Core* const core_;
  Connections* const connections_;
  Outputs* const outputs_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_LATE_ANSWERS_H_
