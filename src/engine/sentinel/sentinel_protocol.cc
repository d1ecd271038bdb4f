#include "engine/sentinel/sentinel_protocol.h"

#include <optional>
#include <string>

#include "base/limits.h"
#include "base/text.h"
#include "core/books.h"
#include "core/rates/rates.h"
#include "engine/connection.h"
#include "engine/identities.h"
#include "engine/permission.h"
#include "engine/sentinel/requests.h"

namespace nowcalls::engine::sentinel {
namespace {

using wire::sentinel::RequestType;

}  // namespace

bool SentinelProtocol::BeginsWith(char first) {
  return static_cast<uint8_t>(first) <= wire::sentinel::kFirstByteMax;
}

Taken SentinelProtocol::Take(Connection* connection, std::string_view input, const Visit& visit,
                             std::string* /*why*/) {
  using Outcome = wire::sentinel::FrameSplitter::Outcome;
  size_t size = 0;
  // No frame ends the connection: bytes that are no request are answered BAD_REQUEST or skipped.
  switch (splitter_.Next(input, &size)) {
    case Outcome::kIncomplete: return {.outcome = Taken::Outcome::kIncomplete};
    case Outcome::kFrame:
      if (size == wire::sentinel::kLengthBytes) break;
      return {.bytes = size,
              .values = Do(connection, input.substr(0, size).substr(wire::sentinel::kLengthBytes),
                           visit.step)};
    case Outcome::kOversized:
      RefuseOversized(connection, input.substr(wire::sentinel::kLengthBytes));
      break;
    case Outcome::kSkipped: break;
  }
  return {.bytes = size};
}

// Returns how many values were looked up.
size_t SentinelProtocol::Do(Connection* connection, std::string_view payload,
                            const core::Step& step) {
  Request request;
  if (!wire::sentinel::DecodeRequest(payload, &request)) {
    RefuseMalformed(connection, request);
    return 0;
  }
  // A type that does not exist is counted and answered FAIL; the connection goes on.
  Counters& counters = service_->counters;
  const auto index = static_cast<uint8_t>(request.type);
  if (index >= wire::sentinel::kRequestTypeCount) {
    ++counters.requests.back();
    Refuse(connection, request, TokenStatus::kFail);
    return 0;
  }
  ++counters.requests[index];
  if (!HasRole(*connection, kRequests[index].needs)) {
    RefuseNotAllowed(connection, request, step);
    return 0;
  }
  switch (static_cast<RequestType>(request.type)) {
    case RequestType::kFlow: Flow(connection, request, step); break;
    case RequestType::kParamFlow: return ParamFlow(connection, request, step);
    case RequestType::kAcquire: Acquire(connection, request, step); break;
    case RequestType::kRelease: Release(connection, request, step); break;
    case RequestType::kKeep: Keep(connection, request, step); break;
    case RequestType::kPing: Ping(connection, request, step); break;
  }
  return 0;
}

// --- The namespace and the session. ---

void SentinelProtocol::Ping(Connection* connection, const Request& request,
                            const core::Step& step) {
  std::string_view name_space;
  if (!wire::sentinel::DecodePing(request.data, &name_space)) {
    return RefuseMalformed(connection, request);
  }
  if (IsBlank(name_space)) return Refuse(connection, request, TokenStatus::kFail);
  const TokenStatus status = Join(connection, name_space, step);
  if (status != TokenStatus::kOk) return Refuse(connection, request, status);
  const core::Books& books = service_->core->books();
  const core::NamespaceSlot slot = books.sessions().at(connection->session).name_space;
  const uint32_t online = books.flows().name_space(slot).sessions_online;
  wire::sentinel::EncodePing(request.xid, online, service_->outputs->Immediate(connection));
}

// kOk: the connection has a session in this namespace. Its first namespace is its only one: in
// another its tokens would be out of its reach.
TokenStatus SentinelProtocol::Join(Connection* connection, std::string_view name_space,
                                   const core::Step& step) {
  if (connection->session != core::kNoSession) {
    const core::Books& books = service_->core->books();
    const core::NamespaceSlot slot = books.sessions().at(connection->session).name_space;
    const bool same = books.flows().name_space(slot).name == name_space;
    return same ? TokenStatus::kOk : TokenStatus::kFail;
  }
  if (!CheckNamespace(name_space).ok()) return TokenStatus::kFail;
  if (!SightOf(*connection).Has(name_space)) {
    NoteNotAllowed(*connection, step);
    return TokenStatus::kFail;
  }
  const std::string shown = "@" + connection->peer.name;
  const Result<core::HelloAnswer> session = service_->core->Hello(
      step, {.name_space = name_space, .display_id = shown, .of_sentinel = true});
  if (!session.ok()) return TokenStatus::kTooManyRequest;  // sessions_max, namespaces_max.
  connection->session = session->session;
  return TokenStatus::kOk;
}

TokenStatus SentinelProtocol::EnsureSession(Connection* connection, const core::Step& step) {
  if (connection->session != core::kNoSession) return TokenStatus::kOk;
  return Join(connection, kDefaultNamespace, step);
}

// --- Calls a second. They make no session: released clients may send them before a PING. ---

void SentinelProtocol::Flow(Connection* connection, const Request& request,
                            const core::Step& step) {
  wire::sentinel::CallParams params;
  if (!wire::sentinel::DecodeCall(request.data, &params)) {
    return RefuseMalformed(connection, request);
  }
  if (!IsInReach(*connection, params.flow_id, FlowKind::kFlow)) {
    return RefuseNotAllowed(connection, request, step);
  }
  AnswerRate(connection, request,
             service_->core->rates().Request(step, {.flow = FlowId{params.flow_id},
                                                    .count = params.count,
                                                    .prioritized = params.prioritized}));
}

// Returns how many values were looked up.
size_t SentinelProtocol::ParamFlow(Connection* connection, const Request& request,
                                   const core::Step& step) {
  wire::sentinel::ParamCallParams params;
  if (!wire::sentinel::DecodeParamCall(request.data, &service_->params, &params)) {
    RefuseMalformed(connection, request);
    return 0;
  }
  if (!IsInReach(*connection, params.flow_id, FlowKind::kValue)) {
    RefuseNotAllowed(connection, request, step);
    return 0;
  }
  AnswerRate(connection, request,
             service_->core->rates().RequestParams(step, FlowId{params.flow_id}, params.count,
                                                   params.values));
  return params.values.size();
}

void SentinelProtocol::AnswerRate(Connection* connection, const Request& request,
                                  const core::RateAnswer& answer) {
  wire::sentinel::EncodeRate(request.xid, static_cast<RequestType>(request.type), answer.status,
                             static_cast<int32_t>(answer.remaining),
                             static_cast<int32_t>(answer.wait_ms),
                             service_->outputs->Immediate(connection));
}

// --- Tokens. ---

void SentinelProtocol::Acquire(Connection* connection, const Request& request,
                               const core::Step& step) {
  wire::sentinel::CallParams params;
  if (!wire::sentinel::DecodeCall(request.data, &params)) {
    return RefuseMalformed(connection, request);
  }
  // Only acquires are refused while the server ends. FLOW goes on: released clients take
  // NOT_AVAILABLE for BLOCKED.
  if (*service_->ending) return Refuse(connection, request, TokenStatus::kNotAvailable);
  if (!IsInReach(*connection, params.flow_id, FlowKind::kFlow)) {
    return RefuseNotAllowed(connection, request, step);
  }
  if (const TokenStatus status = EnsureSession(connection, step); status != TokenStatus::kOk) {
    return Refuse(connection, request, status);
  }
  // Released clients give up after 20 ms and do not retry: a later grant would be a token that
  // nobody knows. wait_ms_max caps the rule's wait.
  const std::optional<core::AcquireAnswer> answer = service_->core->Acquire(
      step, connection->session,
      {.flow = FlowId{params.flow_id},
       .count = params.count,
       .prioritized = params.prioritized,
       .wait_ms_max = service_->core->books().options().limits.sentinel_wait_ms_max},
      {.owner = connection->id, .tag = request.xid});
  if (answer.has_value()) AnswerAcquire(connection, request.xid, *answer);
}

void SentinelProtocol::AnswerAcquire(Connection* connection, uint32_t tag,
                                     const core::AcquireAnswer& answer) {
  Outputs* const outputs = service_->outputs;
  const bool granted = answer.status == TokenStatus::kOk;
  wire::sentinel::EncodeAcquire(
      tag, answer.status, answer.token_id.value,
      granted ? outputs->AfterCommit(connection) : outputs->Immediate(connection));
}

std::optional<TokenId> SentinelProtocol::TokenOf(Connection* connection, const Request& request,
                                                 const core::Step& step) {
  uint64_t token = 0;
  if (!wire::sentinel::DecodeToken(request.data, &token)) {
    RefuseMalformed(connection, request);
    return std::nullopt;
  }
  // A client that comes back from another port may release before it pings: it gets a session.
  if (const TokenStatus status = EnsureSession(connection, step); status != TokenStatus::kOk) {
    Refuse(connection, request, status);
    return std::nullopt;
  }
  return TokenId{token};
}

// Reaches tokens of all Sentinel connections of the namespace, also of those that a restart or the
// network ended: the client may have come back from another port. ALREADY_RELEASE waits for the
// commit, too: a crash that lost the record of the end would bring the token back.
void SentinelProtocol::Release(Connection* connection, const Request& request,
                               const core::Step& step) {
  const std::optional<TokenId> token = TokenOf(connection, request, step);
  if (!token.has_value()) return;
  const TokenStatus status =
      service_->core->Release(step, connection->session, *token, core::TokenScope::kSentinel);
  wire::sentinel::EncodeStatus(request.xid, request.type, status,
                               service_->outputs->AfterCommit(connection));
}

void SentinelProtocol::Keep(Connection* connection, const Request& request,
                            const core::Step& step) {
  const std::optional<TokenId> token = TokenOf(connection, request, step);
  if (!token.has_value()) return;
  core::KeepAnswer answer{.status = TokenStatus::kAlreadyRelease};
  // Keeps would hold room of another namespace for ever.
  if (IsInSight(SightOf(*connection), service_->core->books(), *token)) {
    answer = service_->core->Keep(step, connection->session, *token, core::TokenScope::kSentinel);
  }
  wire::sentinel::EncodeStatus(request.xid, request.type, answer.status,
                               service_->outputs->AfterCommit(connection));
}

// --- Refusals. ---

void SentinelProtocol::Refuse(Connection* connection, const Request& request, TokenStatus status) {
  wire::sentinel::EncodeRefusal(request.xid, request.type, status,
                                service_->outputs->Immediate(connection));
}

bool SentinelProtocol::IsInReach(const Connection& connection, int64_t flow, FlowKind kind) const {
  return IsInSight(SightOf(connection), service_->core->flows(), FlowKey{FlowId{flow}, kind});
}

void SentinelProtocol::NoteNotAllowed(const Connection& connection, const core::Step& step) {
  service_->identities->NoteRefused(connection, "a request in Sentinel's frames", "",
                                    /*is_act=*/false, step.now);
}

// Sentinel has no word for it; its clients fall back at FAIL as their rules say.
void SentinelProtocol::RefuseNotAllowed(Connection* connection, const Request& request,
                                        const core::Step& step) {
  NoteNotAllowed(*connection, step);
  Refuse(connection, request, TokenStatus::kFail);
}

void SentinelProtocol::RefuseMalformed(Connection* connection, const Request& request) {
  ++service_->counters.malformed;
  Refuse(connection, request, TokenStatus::kBadRequest);
}

// The head of an oversized frame has its xid: it is answered at once, since the client would else
// wait for its timeout. The splitter skips the rest.
void SentinelProtocol::RefuseOversized(Connection* connection, std::string_view payload) {
  Request request;
  wire::sentinel::DecodeRequest(payload, &request);
  RefuseMalformed(connection, request);
  service_->driver->Log(Severity::kWarn, LogTopic::kPeer,
                        "connection " + connection->peer.name + " sent a frame of more than " +
                            std::to_string(wire::sentinel::kPayloadBytesMax) +
                            " bytes; it is answered BAD_REQUEST and skipped",
                        {{"peer", connection->peer.name}});
}

void SentinelProtocol::AnswerRefused(Connection* connection, std::string_view input,
                                     std::string_view /*why*/) {
  Request request;
  // An oversized frame was answered when its head came.
  if (splitter_.skipping() || input.size() < wire::sentinel::kLengthBytes) return;
  if (!wire::sentinel::DecodeRequest(input.substr(wire::sentinel::kLengthBytes), &request)) return;
  Refuse(connection, request, TokenStatus::kBadRequest);
}

}  // namespace nowcalls::engine::sentinel
