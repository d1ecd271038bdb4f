#include "engine/closing.h"

#include "engine/inputs.h"
#include "engine/late_answers.h"
#include "engine/outputs.h"

namespace nowcalls::engine {

Closing::Closing(core::Core* core, Driver* driver, Batches* batches, Inputs* inputs,
                 Outputs* outputs, LateAnswers* late)
    : core_(core),
      driver_(driver),
      batches_(batches),
      inputs_(inputs),
      outputs_(outputs),
      late_(late) {}

void Closing::End(Connection* connection) {
  connection->state = ConnectionState::kEnding;
  // Input that is not taken yet stays unanswered.
  inputs_->Drop(connection);
  // The peer can release nothing any more, so it is granted nothing more. If no reply keeps the
  // connection open, EndSession drops the waiters.
  if (connection->requests_in_flight() > 0) {
    core_->DropWaiters(batches_->Step(), connection->id);
    late_->Send();
  }
  CloseIfAnswered(connection);
}

void Closing::EndRefused(Connection* connection, const std::string& why) {
  Log(*connection, why);
  End(connection);
}

void Closing::Refuse(Connection* connection, const std::string& why) {
  if (connection->protocol != nullptr) {
    connection->protocol->AnswerRefused(connection, connection->input_left(), why);
  }
  EndRefused(connection, why);
}

void Closing::Abort(Connection* connection, const std::string& why) {
  Log(*connection, why);
  // Closed first: the calls below may make replies, and a closed connection gets none.
  connection->state = ConnectionState::kClosed;
  inputs_->Drop(connection);
  outputs_->SetKept(connection, 0);
  EndSession(connection);
  driver_->Close(connection->id, /*flush=*/false);
}

void Closing::CloseIfAnswered(Connection* connection) {
  if (connection->closed() || connection->requests_in_flight() > 0) return;
  // A peer that ends its side learns no earlier that its secret was wrong.
  if (connection->wrong_secret_until.has_value()) return;
  // A backup takes long, and its answer needs no session: the session need not wait for it.
  if (connection->owes_answer) return EndSession(connection);
  // The last answers go to the driver before Close, which sends what it buffers.
  outputs_->Flush(connection);
  if (connection->closed()) return;  // The peer does not read, and Flush has aborted it.
  connection->state = ConnectionState::kClosed;
  // From here the driver times the peer: output_stalled_ms for each piece that the socket takes,
  // and kCloseMsMax to close its end.
  outputs_->LeaveToDriver(connection);
  EndSession(connection);
  driver_->Close(connection->id, /*flush=*/true);
}

void Closing::EndSession(Connection* connection) {
  if (connection->session == core::kNoSession) return;
  // Forget first: it finds the listener by its session.
  late_->Forget(*connection);
  core_->Goodbye(batches_->Step(), connection->session, connection->id,
                 "@" + connection->peer.name);
  connection->session = core::kNoSession;
  late_->Send();
}

void Closing::Log(const Connection& connection, const std::string& why) {
  driver_->Log(Severity::kWarn, LogTopic::kPeer,
               "connection " + connection.peer.name + " " + why + "; closing it",
               {{"peer", connection.peer.name}, {"reason", why}});
}

}  // namespace nowcalls::engine
