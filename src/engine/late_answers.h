// LateAnswers: answers to acquires that waited, and notices of lost tokens.
//
// Thread: loop. Send follows every call of the core.
#ifndef NOWCALLS_ENGINE_LATE_ANSWERS_H_
#define NOWCALLS_ENGINE_LATE_ANSWERS_H_

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
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
    if (core_->books().sessions().has_losses()) TellLosses();
  }

  // Tells it the losses of its session, until Forget.
  void Listen(const Connection& connection) {
    listeners_[connection.session].push_back(connection.id);
  }
  // Call before the connection leaves its session.
  void Forget(const Connection& connection) {
    const auto found = listeners_.find(connection.session);
    if (found == listeners_.end()) return;
    std::erase(found->second, connection.id);
    if (found->second.empty()) listeners_.erase(found);
  }

 private:
  void SendAll() {  // A closed connection gets none.
    for (const core::LateAnswer& late : core_->TakeLateAnswers()) {
      Connection* connection = connections_->Get(late.ticket.owner);
      if (!connection->open() && connection->state != ConnectionState::kEnding) continue;
      if (late.all.has_value()) {
        connection->protocol->AnswerAcquireAll(connection, late.ticket.tag, *late.all);
      } else {
        connection->protocol->AnswerAcquire(connection, late.ticket.tag, late.answer);
      }
      outputs_->Count(connection);
    }
  }

  void TellLosses() {
    for (const core::Loss& loss : core_->TakeLosses()) {
      const auto found = listeners_.find(loss.session_slot);
      if (found == listeners_.end()) continue;
      // A copy, in case telling a loss ends a connection: Forget changes the list.
      const std::vector<ConnectionId> listeners = found->second;
      for (const ConnectionId id : listeners) {
        Connection* connection = connections_->Get(id);
        if (!connection->open()) continue;
        connection->protocol->TellLoss(connection, loss);
        outputs_->Count(connection);
      }
    }
  }

  core::Core* const core_;
  Connections* const connections_;
  Outputs* const outputs_;
  absl::flat_hash_map<core::SessionSlot, std::vector<ConnectionId>> listeners_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_LATE_ANSWERS_H_
