#include "engine/rpc_handler.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/rule_json.h"
#include "engine/rows.h"
#include "wire/json.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

constexpr std::string_view kDefaultNamespace = "default";

wire::RequestError ErrorOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound: return {wire::ErrorCode::kBadParams, status.message()};
    case StatusCode::kAlreadyExists: return {wire::ErrorCode::kConflict, status.message()};
    case StatusCode::kResourceExhausted: return {wire::ErrorCode::kOverloaded, status.message()};
    default: return {wire::ErrorCode::kInternal, status.ToString()};
  }
}

// Entries one page looks at, so that a filter that matches little does not hold up the loop; such a
// page has fewer rows than asked, even none, and goes on.
constexpr int kLookedAtMax = 2000;

// One page of an ordered map of slots: rows for those that `add_row` accepts, behind the cursor.
// The cursor is the last key looked at.
template <typename Map, typename Rows, typename AddRow>
uint64_t FillPage(const Map& map, const wire::PageParams& page, Rows* rows, AddRow add_row) {
  uint64_t last = 0;
  auto it = map.upper_bound(static_cast<typename Map::key_type>(page.cursor));
  for (int looked_at = 0; it != map.end() && rows->size() < page.limit && looked_at < kLookedAtMax;
       ++looked_at, ++it) {
    add_row(it->second);
    last = static_cast<uint64_t>(it->first);
  }
  return it == map.end() ? 0 : last;
}

}  // namespace

RpcHandler::RpcHandler(core::Core* core, ReplyBuffers* replies, std::string version,
                       std::function<nlohmann::ordered_json(Instant)> info)
    : core_(core), replies_(replies), version_(std::move(version)), info_(std::move(info)) {}

void RpcHandler::HandleRequest(Connection* connection, const wire::Envelope& request,
                               const core::Turn& turn) {
  const Call call{connection, request, turn};
  switch (request.method) {
    case wire::Method::kAcquire: return Acquire(call);
    case wire::Method::kRelease: return Release(call);
    case wire::Method::kKeep: return Keep(call);
    case wire::Method::kHello: return Hello(call);
    case wire::Method::kPing: return Ping(call);
    case wire::Method::kReclaim: return Reclaim(call);
    case wire::Method::kRulesList: return RulesList(call);
    case wire::Method::kRulesLoad: return RulesLoad(call);
    case wire::Method::kFlow: return Flow(call);
    case wire::Method::kFlows: return Flows(call);
    case wire::Method::kTokens: return Tokens(call);
    case wire::Method::kSessions: return Sessions(call);
    case wire::Method::kInfo: return Info(call);
    case wire::Method::kUnknown: break;
  }
  ReplyError(call, {wire::ErrorCode::kUnknownMethod,
                    "method " + Quoted(request.method_name) + " is not known to this server"});
}

void RpcHandler::HandleNotification(Connection* connection, const wire::Envelope& notification,
                                    const core::Turn& turn) {
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

void RpcHandler::Acquire(const Call& call) {
  wire::AcquireParams params;
  wire::RequestError error;
  if (!wire::DecodeAcquire(call.request.params, &params, &error)) return ReplyError(call, error);
  if (call.connection->session == core::kNoSession) {
    Result<core::HelloAnswer> session =
        core_->Hello(call.turn, kDefaultNamespace, std::nullopt, "@" + call.connection->peer);
    if (!session.ok()) return ReplyError(call, ErrorOf(session.status()));
    call.connection->session = session->session;
  }
  const core::AcquireAnswer answer =
      core_->Acquire(call.turn, call.connection->session, FlowId{params.flow_id}, params.count);
  wire::EncodeAcquire(call.request.msgid,
                      {.status = answer.status,
                       .token_id = answer.token_id.value,
                       .fence = answer.fence.value,
                       .now_calls = static_cast<uint64_t>(answer.now_calls),
                       .level = static_cast<uint64_t>(answer.level),
                       .hold_ms = static_cast<uint64_t>(answer.hold_ms),
                       .refused_by = answer.refused_by},
                      answer.status == TokenStatus::kOk ? replies_->AfterCommit(call.connection)
                                                        : replies_->Immediate(call.connection));
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

void RpcHandler::Reclaim(const Call& call) {
  wire::ReclaimParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaim(call.request.params, &params, &error)) return ReplyError(call, error);
  ReplyStatus(call, core_->Reclaim(call.turn, TokenId{params.token_id}, params.reason));
}

void RpcHandler::RulesList(const Call& call) {
  wire::RulesListParams params;
  wire::RequestError error;
  if (!wire::DecodeRulesList(call.request.params, &params, &error)) return ReplyError(call, error);
  std::vector<nlohmann::ordered_json> rows;
  const uint64_t next =
      FillPage(core_->flows().by_id(), params.page, &rows, [&](core::FlowSlot slot) {
        const core::Flow& flow = core_->flows().at(slot);
        if (!flow.active()) return;
        const std::string& name_space = core_->flows().name_space(flow.name_space).name;
        if (params.name_space.has_value() && name_space != *params.name_space) return;
        nlohmann::ordered_json row = {{"namespace", name_space}};
        row.update(nlohmann::ordered_json::parse(core::RuleToJson(*flow.rule)));
        rows.push_back(std::move(row));
      });
  wire::EncodeJsonPage(call.request.msgid, rows, next, replies_->AfterCommit(call.connection));
}

void RpcHandler::RulesLoad(const Call& call) {
  wire::RulesLoadParams params;
  wire::RequestError error;
  if (!wire::DecodeRulesLoad(call.request.params, &params, &error)) return ReplyError(call, error);
  Result<core::ParsedRules> parsed = core::ParseRules(params.json);
  if (!parsed.ok()) return ReplyError(call, ErrorOf(parsed.status().WithContext("rules_load")));
  const uint64_t loaded = parsed->rules.size();
  const Status replaced = core_->ReplaceRules(
      call.turn, {{.name_space = std::string(params.name_space), .parsed = *std::move(parsed)}});
  if (!replaced.ok()) return ReplyError(call, ErrorOf(replaced.WithContext("rules_load")));
  wire::EncodeRulesLoad(call.request.msgid, loaded, replies_->AfterCommit(call.connection));
}

void RpcHandler::Flow(const Call& call) {
  wire::FlowParams params;
  wire::RequestError error;
  if (!wire::DecodeFlow(call.request.params, &params, &error)) return ReplyError(call, error);
  const core::FlowSlot slot = core_->flows().Find(FlowId{params.flow_id});
  if (slot == core::kNoFlow) {
    return ReplyError(
        call, {wire::ErrorCode::kBadParams, "flow: flow_id " + std::to_string(params.flow_id) +
                                                " has neither a rule nor tokens"});
  }
  wire::EncodeFlow(call.request.msgid, RowOf(*core_, core_->flows().at(slot)),
                   replies_->AfterCommit(call.connection));
}

void RpcHandler::Flows(const Call& call) {
  wire::PageParams page;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &page, &error))
    return ReplyError(call, error);
  std::vector<wire::FlowRow> rows;
  const uint64_t next = FillPage(core_->flows().by_id(), page, &rows, [&](core::FlowSlot slot) {
    rows.push_back(RowOf(*core_, core_->flows().at(slot)));
  });
  wire::EncodeFlowPage(call.request.msgid, rows, next, replies_->AfterCommit(call.connection));
}

void RpcHandler::Tokens(const Call& call) {
  wire::TokensParams params;
  wire::RequestError error;
  if (!wire::DecodeTokens(call.request.params, &params, &error)) return ReplyError(call, error);
  core::TokenFilter filter;
  if (params.flow_id.has_value()) filter.flow = FlowId{*params.flow_id};
  if (params.client_id.has_value()) filter.client_id = std::string(*params.client_id);
  filter.min_age_ms = params.min_age_ms;
  Result<core::TokenPage> page =
      core_->ListTokens(call.turn.now, filter, params.page.limit, params.page.cursor);
  if (!page.ok()) return ReplyError(call, ErrorOf(page.status().WithContext("tokens")));
  std::vector<wire::TokenRow> rows;
  rows.reserve(page->tokens.size());
  for (const core::TokenSlot slot : page->tokens) {
    rows.push_back(RowOf(*core_, core_->tokens().at(slot)));
  }
  wire::EncodeTokenPage(call.request.msgid, rows, page->next_cursor,
                        replies_->AfterCommit(call.connection));
}

void RpcHandler::Sessions(const Call& call) {
  wire::PageParams page;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &page, &error))
    return ReplyError(call, error);
  std::vector<wire::SessionRow> rows;
  const uint64_t next = FillPage(
      core_->sessions().by_id(), page, &rows,
      [&](core::SessionSlot slot) { rows.push_back(RowOf(*core_, core_->sessions().at(slot))); });
  wire::EncodeSessionPage(call.request.msgid, rows, next, replies_->AfterCommit(call.connection));
}

void RpcHandler::Info(const Call& call) {
  wire::RequestError error;
  if (!wire::DecodeNoParams(call.request.method, call.request.params, &error))
    return ReplyError(call, error);
  wire::EncodeJsonResult(call.request.msgid, info_(call.turn.now),
                         replies_->Immediate(call.connection));
}

void RpcHandler::ReplyError(const Call& call, const wire::RequestError& error) {
  wire::EncodeError(call.request.msgid, error, replies_->Immediate(call.connection));
}

void RpcHandler::ReplyStatus(const Call& call, TokenStatus status) {
  wire::EncodeStatus(call.request.msgid, status, replies_->AfterCommit(call.connection));
}

}  // namespace nowcalls::engine
