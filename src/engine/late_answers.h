// LateAnswers: brings the answers of acquires that waited to their connections, and tells those
// that asked for it of tokens that were taken back.
//
// Thread: loop. Almost every call of the core may end waits or tokens, so Send follows each.
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

  // Losses of the connection's session are told to it, until Forget.
  void Listen(const Connection& connection) {
    listeners_[connection.session].push_back(connection.id);
  }
  // The connection leaves its session.
  void Forget(const Connection& connection) {
    const auto found = listeners_.find(connection.session);
    if (found == listeners_.end()) return;
    std::erase(found->second, connection.id);
    if (found->second.empty()) listeners_.erase(found);
  }

 private:
  // A connection that is closed gets none.
  void SendAll() {
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
      // A connection whose peer does not read may be closed by Count, and leave the list.
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
