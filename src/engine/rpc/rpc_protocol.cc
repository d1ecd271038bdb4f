#include "engine/rpc/rpc_protocol.h"

#include <utility>

#include "base/text.h"
#include "engine/permission.h"
#include "engine/rpc/handlers.h"
#include "engine/rpc/methods.h"
#include "wire/format.h"

namespace nowcalls::engine::rpc {

bool RpcProtocol::BeginsWith(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte == wire::kRequestByte || byte == wire::kNotificationByte;
}

Taken RpcProtocol::Take(Connection* connection, std::string_view input, const Visit& visit,
                        std::string* why) {
  using Outcome = wire::MessageSplitter::Outcome;
  // All connections share one LookAhead: what it knows is of the visit before.
  if (visit.first) service_->look_ahead.Restart();
  size_t size = 0;
  // Within a message only the splitter knows the way; between messages LookAhead may know the size.
  if (!splitter_.in_message()) {
    if (!BeginsWith(input.front())) return {.outcome = Taken::Outcome::kForeign};
    size = service_->look_ahead.Next(input);
  }
  const Outcome outcome = size > 0 ? Outcome::kMessage : splitter_.Next(input, &size);
  if (outcome == Outcome::kMessage) return Do(connection, input.substr(0, size), visit, why);
  if (outcome == Outcome::kIncomplete) return {.outcome = Taken::Outcome::kIncomplete};
  // The stream cannot be used behind a refused message.
  *why = "sent a message that is refused: " + splitter_.error();
  AnswerRefused(connection, input, *why);
  return {.outcome = Taken::Outcome::kRefused};
}

// One whole message. The envelope must be a request; anything wrong within the parameters is an
// error of that request, and the connection goes on.
Taken RpcProtocol::Do(Connection* connection, std::string_view message, const Visit& visit,
                      std::string* why) {
  wire::Envelope envelope;
  wire::RequestError error;
  if (!wire::DecodeEnvelope(message, &envelope, &error)) {
    *why = "sent what is not a request: " + error.message;
    AnswerRefused(connection, message, *why);
    return {.outcome = Taken::Outcome::kRefused};
  }
  const MethodRow* method = FindMethod(envelope.method);
  uint64_t& requests = service_->requests[static_cast<size_t>(envelope.method)];
  if (method == nullptr) {
    ++requests;
    ReplyUnknown(connection, envelope);
    return {.bytes = message.size()};
  }
  const Call call{*service_, connection, envelope, visit.step, *method, &late_};
  // A notification has no answer: nobody would hear of the token that an acquire issues.
  if (envelope.notification && !method->as_notification) {
    ++requests;
    return {.bytes = message.size()};
  }
  if (!HasRole(*connection, method->needs)) {
    ++requests;
    ReplyNotAllowed(call, access::WhyNot(connection->identity.principal, method->needs, {}));
    return {.bytes = message.size()};
  }
  const InputWaits waits = WaitsFor(method->cost, visit);
  if (waits != InputWaits::kNothing) return {.outcome = Taken::Outcome::kWaits, .waits = waits};
  ++requests;  // A message that had to wait came here before.
  method->handler(call);
  return {.bytes = message.size(), .cost = &method->cost, .values = ValuesOf(method->id)};
}

void RpcProtocol::ReplyUnknown(Connection* connection, const wire::Envelope& request) const {
  if (request.notification) return;
  wire::EncodeError(request.msgid,
                    {wire::ErrorCode::kUnknownMethod,
                     "method " + Quoted(request.method_name) + " is not known to this server"},
                    service_->outputs->Immediate(connection));
}

// Values or items that the request at hand had looked up.
size_t RpcProtocol::ValuesOf(wire::Method method) const {
  if (method == wire::Method::kRequestParam) return service_->params.values().size();
  // An item costs as much as an acquire: it is a record, too.
  constexpr size_t kCostPerItem = 2;
  return method == wire::Method::kAcquireAll ? kCostPerItem * service_->group.items.size() : 0;
}

void RpcProtocol::AnswerAcquireAll(Connection* connection, uint32_t tag,
                                   const core::AcquireAllAnswer& answer) {
  ReplyAcquireAll(service_->outputs, connection, tag, answer);
}

void RpcProtocol::AnswerAcquire(Connection* connection, uint32_t tag,
                                const core::AcquireAnswer& answer) {
  ReplyAcquire(service_->outputs, connection, tag, answer);
}

// Behind the record: a peer hears only of ends that a crash cannot undo. Sessions offline are not
// told; their next hello, keep or release tells them.
void RpcProtocol::TellLoss(Connection* connection, const core::Loss& loss) {
  wire::EncodeLost(loss.token.value, loss.flow.value, loss.reason,
                   service_->outputs->AfterCommit(connection));
}

void RpcProtocol::AnswerBackup(Connection* connection, const Result<wire::BackupReply>& made) {
  const std::optional<uint32_t> msgid = std::exchange(late_.backup, std::nullopt);
  connection->owes_answer = false;
  if (connection->closed() || !msgid.has_value()) return;
  wire::OutputBuffer* const out = service_->outputs->Immediate(connection);
  if (made.ok()) return wire::EncodeBackup(*msgid, *made, out);
  wire::EncodeError(*msgid, ErrorOf(made.status().WithContext("backup")), out);
}

// The words say nothing of what would be right, nor what was wrong.
void RpcProtocol::AnswerWrongSecret(Connection* connection) {
  const std::optional<uint32_t> msgid = std::exchange(late_.wrong_secret, std::nullopt);
  if (connection->closed() || !msgid.has_value()) return;
  wire::EncodeError(*msgid, {wire::ErrorCode::kPermission, "identify: the secret is wrong"},
                    service_->outputs->Immediate(connection));
}

// Appended behind the ready answers to earlier requests. Without a msgid nobody can be told.
void RpcProtocol::AnswerRefused(Connection* connection, std::string_view input,
                                std::string_view why) {
  const std::optional<uint32_t> msgid = wire::FindMsgid(input);
  if (!msgid.has_value()) return;
  wire::EncodeError(*msgid, {wire::ErrorCode::kMalformed, "the connection " + std::string(why)},
                    service_->outputs->Immediate(connection));
}

}  // namespace nowcalls::engine::rpc
