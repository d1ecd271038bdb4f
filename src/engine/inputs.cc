#include "engine/inputs.h"

#include <algorithm>
#include <string>

#include "engine/closing.h"
#include "engine/late_answers.h"
#include "engine/outputs.h"
#include "engine/strangers.h"

namespace nowcalls::engine {
namespace {

// The cost of one visit: some 60 grants, as many as a client with a pipeline has in flight.
constexpr int kVisitCost = 128;
// Looks at tables (core::Books::looks) for one unit of cost.
constexpr uint64_t kLooksPerCost = 8;
// The least cost of a visit, even without a whole message, or without room for one.
constexpr int kEmptyVisitCost = 8;

}  // namespace

Inputs::Inputs(const Limits& limits, core::Core* core, Driver* driver, Connections* connections,
               Batches* batches, BufferPool* buffers, Protocols* protocols, Outputs* outputs,
               LateAnswers* late, Closing* closing, Strangers* strangers)
    : limits_(limits),
      core_(core),
      driver_(driver),
      connections_(connections),
      batches_(batches),
      protocols_(protocols),
      outputs_(outputs),
      late_(late),
      closing_(closing),
      strangers_(strangers),
      held_(buffers) {}

void Inputs::TakeBytes(Connection* connection, std::string_view bytes) {
  size_t taken = 0;
  // The hot path: messages are taken where the driver has read them, and nothing is copied. Only a
  // rest is held.
  if (connection->input.empty()) {
    taken = TakeMessages(connection, bytes, &budget_.new_input_left);
    if (!connection->open()) return;
    if (taken < bytes.size()) held_.Append(connection, bytes.substr(taken));
  } else {
    held_.Append(connection, bytes);
    // The driver had read these bytes before it was told to stop: they wait with the rest.
    if (connection->input_waits == InputWaits::kNothing) {
      taken = TakeMessages(connection, connection->input_left(), &budget_.new_input_left);
      if (!connection->open()) return;
      connection->input_taken += taken;
    }
  }
  if (connection->input_waits != InputWaits::kNothing) driver_->SetReading(connection->id, false);
  held_.Settle(connection, taken > 0, batches_->now());
  Bound();
}

// Goes on with what had arrived when the connection began to wait; then reads again, if all of it
// has been taken.
void Inputs::Revisit(Connection* connection, int* turn_left) {
  lines_.Stop(connection);
  const size_t taken = TakeMessages(connection, connection->input_left(), turn_left);
  if (!connection->open()) return;
  connection->input_taken += taken;
  if (connection->input_waits == InputWaits::kNothing) driver_->SetReading(connection->id, true);
  held_.Settle(connection, /*progressed=*/true, batches_->now());
}

void Inputs::Resume() {
  // Front first. A visit that leaves input stands at the back again.
  while (!lines_.for_turn().empty() && budget_.old_input_left > 0) {
    Revisit(lines_.for_turn().front(), &budget_.old_input_left);
  }
  // Once round the line for work: a connection that waits again does not come twice in a turn.
  for (size_t n = lines_.for_work().size(); n > 0 && budget_.work_left > 0; --n) {
    int visit = kVisitCost;
    first_in_line_ = lines_.for_work().front();
    Revisit(lines_.for_work().front(), &visit);
    first_in_line_ = nullptr;
    // A visit also takes messages that are no work, and may do nothing when it waits for a commit.
    budget_.work_left -= std::max(kVisitCost - visit, kEmptyVisitCost);
  }
}

// Returns how many bytes at the front of `bytes` are done with. A rest begins a message, or the
// connection waits or is not open any more.
size_t Inputs::TakeMessages(Connection* connection, std::string_view bytes, int* turn_left) {
  size_t taken = 0;
  // The first byte of a connection decides its protocol; null if no protocol begins with it.
  if (connection->protocol == nullptr) connection->protocol = protocols_->Make(bytes);
  const int visit_cost = std::min(kVisitCost, *turn_left);
  int left = visit_cost;
  Visit visit{.step = batches_->Step()};
  while (taken < bytes.size()) {
    const std::string_view rest = bytes.substr(taken);
    // Between messages the connection may have to wait. A message that the protocol has begun is
    // completed first: the splitter is within it.
    if (!connection->in_message) {
      InputWaits waits = WaitsFor(*connection);
      if (waits == InputWaits::kNothing && left <= 0) waits = InputWaits::kForTurn;
      if (waits != InputWaits::kNothing) {
        lines_.Wait(connection, waits);
        break;
      }
    }
    // A peer without a protocol cannot be told why; the log has it.
    if (connection->protocol == nullptr) {
      closing_->EndRefused(connection, Protocols::WhyNone(rest.front()));
      return taken;
    }
    const Taken message = TakeOne(connection, rest, &visit, &left);
    if (!connection->open()) return taken;
    if (message.outcome != Taken::Outcome::kTaken) break;
    taken += message.bytes;
    // Nothing more is read, either: the next guess waits for the answer to this one.
    if (connection->wrong_secret_until.has_value()) {
      lines_.Wait(connection, InputWaits::kForSecret);
      break;
    }
  }
  // Visits without a message cost, too: many connections that send a byte each spend the turn.
  *turn_left -= std::max(visit_cost - left, kEmptyVisitCost);
  if (taken > 0 && connection->session != core::kNoSession) {
    core_->Heard(connection->session, batches_->now());
  }
  return taken;
}

// Takes the message at the front of `rest` and charges the visit.
Taken Inputs::TakeOne(Connection* connection, std::string_view rest, Visit* visit,
                      int* visit_left) {
  // 1. What the message may be, and the counts before it.
  visit->may_work = MayWork(connection);
  visit->may_show = !outputs_->SharesWait(1);
  const size_t made_before = BytesMade(*connection);
  const uint64_t looks_before = batches_->looks();
  // 2. The protocol does it. Not taken: the connection waits, ends, or lacks bytes.
  const Taken message = connection->protocol->Take(connection, rest, *visit, &why_);
  visit->first = false;
  connection->in_message = message.outcome == Taken::Outcome::kIncomplete;
  if (message.outcome != Taken::Outcome::kTaken) {
    Leave(connection, rest, message);
    return message;
  }
  // 3. Its replies count, and waiters that it admitted are answered.
  outputs_->Count(connection);
  late_->Send();
  // 4. The price. Bytes made may have fallen: an entry of the history may displace a longer one
  // that was not recorded yet.
  const size_t made = std::max(BytesMade(*connection), made_before) - made_before;
  const uint64_t looks = batches_->looks() - looks_before;
  *visit_left -= Charge(message, message.bytes + made, looks);
  if (connection->stranger != nullptr) strangers_->Count(connection, message.bytes, made);
  return message;
}

// The message at the front of `rest` was not taken. On kRefused, Take has answered the peer.
void Inputs::Leave(Connection* connection, std::string_view rest, const Taken& message) {
  switch (message.outcome) {
    case Taken::Outcome::kTaken: return;
    case Taken::Outcome::kIncomplete:
      if (connection->stranger != nullptr) strangers_->CheckIncomplete(connection, rest.size());
      return;
    case Taken::Outcome::kWaits: return lines_.Wait(connection, message.waits);
    case Taken::Outcome::kForeign:
      return closing_->EndRefused(connection, Protocols::WhyNone(rest.front()));
    case Taken::Outcome::kRefused: return closing_->EndRefused(connection, why_);
  }
}

// Returns what the message costs its visit: base + bytes * per_kib / 1024 + values + looks / 8.
// `bytes` are those of the message, its reply and its records. Work is paid from its own budget;
// after it the connection stands in line again.
int Inputs::Charge(const Taken& message, size_t bytes, uint64_t looks) {
  const Cost& cost = *message.cost;
  const size_t units =
      bytes * static_cast<size_t>(cost.per_kib) / 1024 + message.values + looks / kLooksPerCost;
  const int spent = cost.base + static_cast<int>(units);
  if (!cost.work) return spent;
  budget_.work_left -= spent;
  first_in_line_ = nullptr;
  return 1;
}

// Bytes of replies to the connection and of records; the growth is what a message has made.
size_t Inputs::BytesMade(const Connection& connection) const {
  return connection.ready.size() + connection.waiting_bytes + batches_->open_bytes();
}

// New work stands behind connections that already wait for work.
bool Inputs::MayWork(const Connection* connection) const {
  return budget_.work_left > 0 && (lines_.for_work().empty() || first_in_line_ == connection);
}

InputWaits Inputs::WaitsFor(const Connection& connection) const {
  // A full batch stops every connection; what follows stops this one.
  if (batches_->full()) return InputWaits::kForBatch;
  if (connection.kept >= kKeptPauseBytes) return InputWaits::kForPeer;
  const size_t waiting = connection.waiting_bytes;
  if (connection.requests_in_flight() >= limits_.requests_in_flight_max ||
      waiting >= outputs_->WaitingMax()) {
    return InputWaits::kForReplies;
  }
  // Ready replies leave at the end of the turn, so the next turn has room.
  if (connection.ready.size() + waiting >= kReplyBytesPerTurn) return InputWaits::kForTurn;
  return InputWaits::kNothing;
}

void Inputs::Drop(Connection* connection) {
  lines_.Stop(connection);
  held_.Drop(connection, batches_->now());
}

size_t Inputs::DropWaiting() {
  size_t dropped = 0;
  for (; lines_.for_turn().front() != nullptr; ++dropped) Drop(lines_.for_turn().front());
  for (; lines_.for_work().front() != nullptr; ++dropped) Drop(lines_.for_work().front());
  return dropped;
}

// Invariant 8. The connection that holds most is closed, not the one that sent last: many small
// ones must not suffer for a large one. Its input is dropped, so the loop ends.
void Inputs::Bound() {
  while (held_.total() > limits_.input_total_bytes_max) {
    const auto [size, id] = held_.Most();
    closing_->Refuse(connections_->Get(id),
                     "has sent " + std::to_string(size) +
                         " bytes that are not handled yet, the most of all connections, which "
                         "together exceed " +
                         std::to_string(limits_.input_total_bytes_max));
  }
}

}  // namespace nowcalls::engine
