// What clients call: hello, ping, acquire, acquire_all, release, keep, cancel, request,
// request_param.
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/rates/rates.h"
#include "engine/permission.h"
#include "engine/rpc/flow_name.h"
#include "engine/rpc/handlers.h"

namespace nowcalls::engine::rpc {
namespace {

// A client that did not say hello gets a session of its connection, in the default namespace.
// False: it cannot have one, and was told so.
bool HasSession(const Call& call) {
  if (call.connection->session != core::kNoSession) return true;
  if (!MayReach(call, kDefaultNamespace)) return false;
  Result<core::HelloAnswer> session = call.core()->Hello(
      call.step, {.name_space = kDefaultNamespace, .display_id = "@" + call.connection->peer.name});
  if (!session.ok()) {
    ReplyError(call, ErrorOf(session.status()));
    return false;
  }
  call.connection->session = session->session;
  return true;
}

// Two items that are one flow by different names are as bad as one item twice.
bool ResolveAll(const Call& call, wire::AcquireAllParams* params) {
  bool named = false;
  for (wire::AcquireAllParams::Item& item : params->items) {
    if (item.flow_name.empty()) continue;
    named = true;
    const FlowKind kind = FlowKindIf(item.param.has_value());
    if (!ResolveFlow(call, kind, &item, params->request_id)) return false;
    item.flow_name = {};
  }
  wire::RequestError error;
  if (!named || wire::CheckItems(params->items, &error)) return true;
  ReplyError(call, error);
  return false;
}

// One item out of reach refuses all.
bool MayReachAll(const Call& call, const wire::AcquireAllParams& params) {
  if (SightOf(*call.connection).all()) return true;
  for (size_t i = 0; i < params.items.size(); ++i) {
    const wire::AcquireAllParams::Item& item = params.items[i];
    const FlowKey key{FlowId{item.flow_id}, FlowKindIf(item.param.has_value())};
    if (!MayReach(call, key, i)) return false;
  }
  return true;
}

// Calls a second are not recorded one by one, so their answer leaves at once. `values`: of the
// request.
void ReplyRate(const Call& call, const core::RateAnswer& answer,
               std::span<const Param> values = {}) {
  std::optional<Param> value;
  if (answer.value.has_value()) value = values[*answer.value];
  wire::EncodeRate(call.request.msgid,
                   {.status = answer.status,
                    .remaining = answer.remaining,
                    .wait_ms = static_cast<uint64_t>(answer.wait_ms),
                    .refused_by = answer.refused_by,
                    .value = value},
                   call.Immediate());
}

// The value of the request, if its limit refuses.
std::optional<Param> FullValue(const core::AcquireAnswer& answer,
                               const std::optional<Param>& value) {
  const bool of_value =
      answer.refused_by == RefusedBy::kParam || answer.refused_by == RefusedBy::kOverLevel;
  return answer.status == TokenStatus::kBlocked && of_value ? value : std::nullopt;
}

// If the connection asked for them in hello.
std::optional<wire::Terms> TermsFor(const Connection& connection, const core::TokenTerms& terms) {
  if (!connection.wants_terms) return std::nullopt;
  return wire::Terms{.strategy = static_cast<uint64_t>(terms.timeout_strategy),
                     .resource_timeout_ms = static_cast<uint64_t>(terms.resource_timeout_ms),
                     .client_offline_ms = static_cast<uint64_t>(terms.client_offline_ms)};
}

}  // namespace

void Hello(const Call& call) {
  wire::HelloParams params;
  wire::RequestError error;
  if (!wire::DecodeHello(call.request.params, &params, &error)) return ReplyError(call, error);
  if (call.connection->session != core::kNoSession) {
    return ReplyError(call, {wire::ErrorCode::kHelloState,
                             "hello: this connection has a session already; hello comes once, "
                             "before the first acquire"});
  }
  if (!MayReach(call, params.name_space)) return;
  Result<core::HelloAnswer> answer =
      call.core()->Hello(call.step, {.name_space = params.name_space,
                                     .client_id = params.client_id,
                                     .display_id = "@" + call.connection->peer.name,
                                     .instance = params.instance,
                                     .exclusive = params.exclusive});
  if (!answer.ok()) return ReplyError(call, ErrorOf(answer.status()));
  call.connection->session = answer->session;
  // Listen finds the connection by its session, so the session comes first.
  if (params.lost) call.service.late->Listen(*call.connection);
  call.connection->wants_terms = params.terms;
  wire::EncodeHello(call.request.msgid,
                    {.server_version = call.service.version,
                     .session = answer->session_id.value,
                     .sessions_online = answer->sessions_online,
                     .resumed_tokens = answer->resumed_tokens},
                    call.AfterCommit());
}

void Ping(const Call& call) {
  wire::RequestError error;
  if (!wire::DecodeNoParams(call.request.method, call.request.params, &error))
    return ReplyError(call, error);
  wire::EncodePing(call.request.msgid, static_cast<uint64_t>(call.step.now.ms), call.Immediate());
}

void Acquire(const Call& call) {
  wire::AcquireParams params;
  wire::RequestError error;
  if (!wire::DecodeAcquire(call.request.params, &params, &error)) return ReplyError(call, error);
  const FlowKind kind = FlowKindIf(params.param.has_value());
  if (!ResolveFlow(call, kind, &params, params.request_id) ||
      !MayReach(call, FlowKey{FlowId{params.flow_id}, kind}) || !HasSession(call)) {
    return;
  }
  core::AcquireRequest request{.flow = FlowId{params.flow_id},
                               .count = params.count,
                               .prioritized = params.prioritized,
                               .request_id = params.request_id,
                               .hold_ms = static_cast<int64_t>(params.hold_ms),
                               .param = params.param};
  if (params.wait_ms) request.wait_ms = static_cast<int64_t>(*params.wait_ms);
  const std::optional<core::AcquireAnswer> answer =
      call.core()->Acquire(call.step, call.connection->session, request,
                           {.owner = call.connection->id, .tag = call.request.msgid});
  if (!answer.has_value()) return;  // It waits, and is answered late.
  ReplyAcquire(call.service.outputs, call.connection, call.request.msgid, *answer,
               FullValue(*answer, params.param));
}

void ReplyAcquire(Outputs* outputs, Connection* connection, uint32_t msgid,
                  const core::AcquireAnswer& answer, const std::optional<Param>& value) {
  const bool granted = answer.status == TokenStatus::kOk;
  wire::EncodeAcquire(msgid,
                      {.status = answer.status,
                       .token_id = answer.token_id.value,
                       .fence = answer.fence.value,
                       .now_calls = static_cast<uint64_t>(answer.now_calls),
                       .level = static_cast<uint64_t>(answer.level),
                       .hold_ms = static_cast<uint64_t>(answer.hold_ms),
                       .refused_by = answer.refused_by,
                       .value = value,
                       .terms = granted ? TermsFor(*connection, answer.terms) : std::nullopt},
                      granted ? outputs->AfterCommit(connection) : outputs->Immediate(connection));
}

void AcquireAll(const Call& call) {
  // The items live in the service: their memory is used again.
  wire::AcquireAllParams& params = call.service.group;
  wire::RequestError error;
  if (!wire::DecodeAcquireAll(call.request.params, &params, &error)) return ReplyError(call, error);
  if (!ResolveAll(call, &params) || !MayReachAll(call, params) || !HasSession(call)) return;
  std::array<core::AllItem, kAcquireAllMax> items;
  for (size_t i = 0; i < params.items.size(); ++i) {
    const wire::AcquireAllParams::Item& item = params.items[i];
    items[i] = {
        .flow = FlowId{item.flow_id}, .count = item.count, .param = item.param, .rate = item.rate};
  }
  core::AcquireAllRequest request{.items = std::span(items).first(params.items.size()),
                                  .prioritized = params.prioritized,
                                  .request_id = params.request_id,
                                  .hold_ms = static_cast<int64_t>(params.hold_ms)};
  if (params.wait_ms) request.wait_ms = static_cast<int64_t>(*params.wait_ms);
  const std::optional<core::AcquireAllAnswer> answer =
      call.core()->AcquireAll(call.step, call.connection->session, request,
                              {.owner = call.connection->id, .tag = call.request.msgid});
  if (!answer.has_value()) return;  // It waits, and is answered late.
  ReplyAcquireAll(call.service.outputs, call.connection, call.request.msgid, *answer);
}

void ReplyAcquireAll(Outputs* outputs, Connection* connection, uint32_t msgid,
                     const core::AcquireAllAnswer& answer) {
  wire::AcquireAllReply reply{.status = answer.status,
                              .refused_by = answer.refused_by,
                              .flow_id = answer.flow.value,
                              .now_calls = static_cast<uint64_t>(answer.now_calls),
                              .level = static_cast<uint64_t>(answer.level)};
  if (answer.value.has_value()) reply.value = answer.value->view();
  reply.tokens.reserve(answer.tokens.size());
  bool has_tokens = false;
  for (const core::GrantedToken& token : answer.tokens) {
    const bool is_token = token.id != TokenId{};
    has_tokens = has_tokens || is_token;
    reply.tokens.push_back({.token_id = token.id.value,
                            .fence = token.fence.value,
                            .hold_ms = static_cast<uint64_t>(token.hold_ms),
                            .terms = is_token ? TermsFor(*connection, token.terms) : std::nullopt});
  }
  // Rates alone rest on no record.
  wire::EncodeAcquireAll(
      msgid, reply, has_tokens ? outputs->AfterCommit(connection) : outputs->Immediate(connection));
}

void Request(const Call& call) {
  wire::RateParams params;
  wire::RequestError error;
  if (!wire::DecodeRequest(call.request.params, &params, &error)) return ReplyError(call, error);
  if (!ResolveFlow(call, FlowKind::kFlow, &params) ||
      !MayReach(call, FlowKey{FlowId{params.flow_id}})) {
    return;
  }
  ReplyRate(call, call.core()->rates().Request(call.step, {.flow = FlowId{params.flow_id},
                                                           .count = params.count,
                                                           .prioritized = params.prioritized}));
}

void RequestParam(const Call& call) {
  wire::ValueRateParams params;
  wire::RequestError error;
  wire::ParamList* const values = &call.service.params;
  if (!wire::DecodeRequestParam(call.request.params, &params, values, &error))
    return ReplyError(call, error);
  if (!ResolveFlow(call, FlowKind::kValue, &params) ||
      !MayReach(call, FlowKey{FlowId{params.flow_id}, FlowKind::kValue})) {
    return;
  }
  ReplyRate(call,
            call.core()->rates().RequestParams(call.step, FlowId{params.flow_id}, params.count,
                                               values->values()),
            values->values());
}

// ALREADY_RELEASE waits for the commit too, as in Release.
void Cancel(const Call& call) {
  wire::CancelParams params;
  wire::RequestError error;
  if (!wire::DecodeCancel(call.request.params, &params, &error)) return ReplyError(call, error);
  if (!HasSession(call)) return;
  ReplyStatus(call, call.core()->Cancel(call.step, call.connection->session, params.request_id));
}

// ALREADY_RELEASE waits for the commit too: the record that ended the token may be on its way, and
// a crash that lost the record would bring the token back. The session's own tokens are in reach,
// wherever their rules have moved.
void Release(const Call& call) {
  wire::TokenParams params;
  wire::RequestError error;
  if (!wire::DecodeToken(call.request.method, call.request.params, &params, &error))
    return ReplyError(call, error);
  ReplyStatus(call,
              call.core()->Release(call.step, call.connection->session, TokenId{params.token_id},
                                   core::TokenScope::kSession, params.outcome));
}

void Keep(const Call& call) {
  wire::TokenParams params;
  wire::RequestError error;
  if (!wire::DecodeToken(call.request.method, call.request.params, &params, &error))
    return ReplyError(call, error);
  core::KeepAnswer answer{.status = TokenStatus::kAlreadyRelease};
  // Keeps would hold room of another namespace for ever.
  if (IsInSight(SightOf(*call.connection), call.core()->books(), TokenId{params.token_id})) {
    answer = call.core()->Keep(call.step, call.connection->session, TokenId{params.token_id});
  }
  if (call.request.notification) return;
  // A keep is a record: the deadline that it promises must outlive a crash.
  wire::KeepReply reply{.status = answer.status, .hold_ms = static_cast<uint64_t>(answer.hold_ms)};
  if (answer.status == TokenStatus::kOk) reply.terms = TermsFor(*call.connection, answer.terms);
  wire::EncodeKeep(call.request.msgid, reply, call.AfterCommit());
}

}  // namespace nowcalls::engine::rpc
