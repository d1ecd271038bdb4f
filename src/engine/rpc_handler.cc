#include "engine/rpc_handler.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace nowcalls::engine {
namespace {

constexpr std::string_view kDefaultNamespace = "default";

}  // namespace

wire::RequestError RpcHandler::ErrorOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound: return {wire::ErrorCode::kBadParams, status.message()};
    case StatusCode::kAlreadyExists: return {wire::ErrorCode::kConflict, status.message()};
    case StatusCode::kUnavailable:  // The server ends.
    case StatusCode::kResourceExhausted: return {wire::ErrorCode::kOverloaded, status.message()};
    default: return {wire::ErrorCode::kInternal, status.ToString()};
  }
}

RpcHandler::RpcHandler(core::Core* core, RuleSink* rules, ReplyBuffers* replies, Driver* driver,
                       std::string version, std::function<nlohmann::ordered_json(Instant)> info)
    : core_(core),
      replies_(replies),
      driver_(driver),
      version_(std::move(version)),
      info_(std::move(info)) {
  NOWCALLS_CHECK(rules_.Start(rules).ok());
}

void RpcHandler::HandleRequest(Connection* connection, const wire::Envelope& request,
                               const core::Step& turn) {
  const Call call{connection, request, turn};
  switch (request.method) {
    case wire::Method::kAcquire: return Acquire(call);
    case wire::Method::kRelease: return Release(call);
    case wire::Method::kKeep: return Keep(call);
    case wire::Method::kHello: return Hello(call);
    case wire::Method::kPing: return Ping(call);
    case wire::Method::kReclaim: return Reclaim(call);
    case wire::Method::kCancel: return Cancel(call);
    case wire::Method::kRulesList: return RulesList(call);
    case wire::Method::kRulesLoad: return RulesLoad(call);
    case wire::Method::kFlow: return Flow(call);
    case wire::Method::kFlows: return Flows(call);
    case wire::Method::kTokens: return Tokens(call);
    case wire::Method::kSessions: return Sessions(call);
    case wire::Method::kInfo: return Info(call);
    case wire::Method::kHistory: return History(call);
    case wire::Method::kReclaimClient: return ReclaimClient(call);
    case wire::Method::kReclaimFlow: return ReclaimFlow(call);
    case wire::Method::kPurge: return Purge(call);
    case wire::Method::kDrain: return Drain(call);
    case wire::Method::kNamespaces: return Namespaces(call);
    case wire::Method::kBackup: return Backup(call);
    case wire::Method::kUnknown: break;
  }
  ReplyError(call, {wire::ErrorCode::kUnknownMethod,
                    "method " + Quoted(request.method_name) + " is not known to this server"});
}

void RpcHandler::HandleNotification(Connection* connection, const wire::Envelope& notification,
                                    const core::Step& turn) {
  wire::TokenParams params;
  wire::RequestError ignored;
  const bool release = notification.method == wire::Method::kRelease;
  if (!release && notification.method != wire::Method::kKeep) return;
  if (!wire::DecodeToken(notification.method, notification.params, &params, &ignored)) return;
  if (release) {
    static_cast<void>(core_->Release(turn, connection->session, TokenId{params.token_id}));
  } else {
    static_cast<void>(core_->Keep(turn, connection->session, TokenId{params.token_id}));
  }
}

void RpcHandler::Hello(const Call& call) {
  wire::HelloParams params;
  wire::RequestError error;
  if (!wire::DecodeHello(call.request.params, &params, &error)) return ReplyError(call, error);
  if (call.connection->session != core::kNoSession) {
    return ReplyError(call, {wire::ErrorCode::kHelloState,
                             "hello: this connection has a session already; hello comes once, "
                             "before the first acquire"});
  }
  Result<core::HelloAnswer> answer =
      core_->Hello(call.turn, params.name_space, params.client_id, "@" + call.connection->peer);
  if (!answer.ok()) return ReplyError(call, ErrorOf(answer.status()));
  call.connection->session = answer->session;
  wire::EncodeHello(call.request.msgid,
                    {.server_version = version_,
                     .session = answer->session_id.value,
                     .sessions_online = answer->sessions_online,
                     .resumed_tokens = answer->resumed_tokens},
                    replies_->AfterCommit(call.connection));
}

void RpcHandler::Ping(const Call& call) {
  wire::RequestError error;
  if (!wire::DecodeNoParams(call.request.method, call.request.params, &error))
    return ReplyError(call, error);
  wire::EncodePing(call.request.msgid, static_cast<uint64_t>(call.turn.now.ms),
                   replies_->Immediate(call.connection));
}

// A client that did not say hello gets a session of its own; false: it was told that it cannot.
bool RpcHandler::HasSession(const Call& call) {
  if (call.connection->session != core::kNoSession) return true;
  Result<core::HelloAnswer> session =
      core_->Hello(call.turn, kDefaultNamespace, std::nullopt, "@" + call.connection->peer);
  if (!session.ok()) {
    ReplyError(call, ErrorOf(session.status()));
    return false;
  }
  call.connection->session = session->session;
  return true;
}

void RpcHandler::Acquire(const Call& call) {
  wire::AcquireParams params;
  wire::RequestError error;
  if (!wire::DecodeAcquire(call.request.params, &params, &error)) return ReplyError(call, error);
  if (!HasSession(call)) return;
  core::AcquireRequest request{.flow = FlowId{params.flow_id},
                               .count = params.count,
                               .prioritized = params.prioritized,
                               .request_id = params.request_id};
  if (params.wait_ms) request.wait_ms = static_cast<int64_t>(*params.wait_ms);
  const std::optional<core::AcquireAnswer> answer =
      core_->Acquire(call.turn, call.connection->session, request,
                     {.owner = call.connection->id, .tag = call.request.msgid});
  if (answer.has_value()) ReplyAcquire(call.connection, call.request.msgid, *answer);
}

void RpcHandler::ReplyAcquire(Connection* connection, uint32_t msgid,
                              const core::AcquireAnswer& answer) {
  wire::EncodeAcquire(msgid,
                      {.status = answer.status,
                       .token_id = answer.token_id.value,
                       .fence = answer.fence.value,
                       .now_calls = static_cast<uint64_t>(answer.now_calls),
                       .level = static_cast<uint64_t>(answer.level),
                       .hold_ms = static_cast<uint64_t>(answer.hold_ms),
                       .refused_by = answer.refused_by},
                      answer.status == TokenStatus::kOk ? replies_->AfterCommit(connection)
                                                        : replies_->Immediate(connection));
}

// ALREADY_RELEASE waits too, as it does for a release.
void RpcHandler::Cancel(const Call& call) {
  wire::CancelParams params;
  wire::RequestError error;
  if (!wire::DecodeCancel(call.request.params, &params, &error)) return ReplyError(call, error);
  if (!HasSession(call)) return;
  ReplyStatus(call, core_->Cancel(call.turn, call.connection->session, params.request_id));
}

// Also for ALREADY_RELEASE the reply waits: the record that ended the token may still be on its
// way, and a crash that lost it would bring the token back.
void RpcHandler::Release(const Call& call) {
  wire::TokenParams params;
  wire::RequestError error;
  if (!wire::DecodeToken(call.request.method, call.request.params, &params, &error))
    return ReplyError(call, error);
  ReplyStatus(call, core_->Release(call.turn, call.connection->session, TokenId{params.token_id}));
}

void RpcHandler::Keep(const Call& call) {
  wire::TokenParams params;
  wire::RequestError error;
  if (!wire::DecodeToken(call.request.method, call.request.params, &params, &error))
    return ReplyError(call, error);
  const core::KeepAnswer answer =
      core_->Keep(call.turn, call.connection->session, TokenId{params.token_id});
  wire::EncodeKeep(call.request.msgid, answer.status, static_cast<uint64_t>(answer.hold_ms),
                   replies_->AfterCommit(call.connection));
}

void RpcHandler::ReplyError(const Call& call, const wire::RequestError& error) {
  wire::EncodeError(call.request.msgid, error, replies_->Immediate(call.connection));
}

void RpcHandler::ReplyErrorAfterCommit(const Call& call, const wire::RequestError& error) {
  wire::EncodeError(call.request.msgid, error, replies_->AfterCommit(call.connection));
}

void RpcHandler::ReplyStatus(const Call& call, TokenStatus status) {
  wire::EncodeStatus(call.request.msgid, status, replies_->AfterCommit(call.connection));
}

}  // namespace nowcalls::engine
