#include "engine/rpc/service.h"

#include <utility>

#include "access/access.h"
#include "base/check.h"
#include "engine/identities.h"
#include "engine/permission.h"
#include "engine/rpc/flow_name.h"
#include "engine/rpc/methods.h"
#include "wire/method.h"

namespace nowcalls::engine::rpc {
namespace {

void ReplyFlowNotAllowed(const Call& call, FlowId flow, std::optional<size_t> item) {
  const std::string where = item.has_value() ? "in items[" + std::to_string(*item) + "] " : "";
  ReplyNotAllowed(call, where + "is about flow_id " + std::to_string(flow.value) + ", which " +
                            call.connection->identity.principal.name + " may not reach");
}

}  // namespace

Service::Service(core::Core* the_core, RuleSink* rules_sink, Outputs* the_outputs,
                 LateAnswers* the_late, Driver* the_driver, Identities* the_identities,
                 std::string the_version, std::function<std::vector<wire::FigureRow>()> the_figures)
    : core(the_core),
      outputs(the_outputs),
      late(the_late),
      driver(the_driver),
      identities(the_identities),
      version(std::move(the_version)),
      figures(std::move(the_figures)),
      look_ahead(the_core->books()) {
  // Only stores the sink: the engine's parts are not complete yet.
  NOWCALLS_CHECK(this->rules.Start(rules_sink).ok());
}

bool MayReach(const Call& call, std::string_view name_space) {
  if (SightOf(*call.connection).Has(name_space)) return true;
  constexpr access::Needs kNamed{access::Role::kAnybody, access::Scope::kNamespace};
  ReplyNotAllowed(call, access::WhyNot(call.connection->identity.principal, kNamed, name_space));
  return false;
}

// Names the flow that was asked for, and nothing that is there.
bool MayReach(const Call& call, const FlowKey& key, std::optional<size_t> item) {
  if (IsInSight(SightOf(*call.connection), call.core()->flows(), key)) return true;
  ReplyFlowNotAllowed(call, key.id, item);
  return false;
}

bool NarrowToReach(const Call& call, std::string_view name, FlowChoice* choice) {
  if (!name.empty() && !ResolveChoice(call, name, choice)) return false;
  const core::Sight sight = SightOf(*call.connection);
  if (sight.all()) return true;
  const core::FlowTable& flows = call.core()->flows();
  std::vector<core::FlowSlot> slots = FindAll(flows, *choice);
  if (slots.empty()) return true;
  std::erase_if(slots, [&](core::FlowSlot slot) { return !sight.Has(flows, slot); });
  if (slots.size() == 1) choice->kind = flows.at(slots.front()).key().kind;
  if (slots.empty()) ReplyFlowNotAllowed(call, choice->id, std::nullopt);
  return !slots.empty();
}

void ReplyNotAllowed(const Call& call, const std::string& why) {
  const std::string name(wire::MethodName(call.request.method));
  call.service.identities->NoteRefused(*call.connection, name, why,
                                       call.method.needs.role == access::Role::kAdministrator,
                                       call.step.now);
  ReplyError(call, {wire::ErrorCode::kPermission, name + " " + why});
}

void ReplyError(const Call& call, const wire::RequestError& error) {
  if (call.request.notification) return;
  wire::EncodeError(call.request.msgid, error, call.Immediate());
}

void ReplyErrorAfterCommit(const Call& call, const wire::RequestError& error) {
  if (call.request.notification) return;
  wire::EncodeError(call.request.msgid, error, call.AfterCommit());
}

void ReplyStatus(const Call& call, TokenStatus status) {
  if (call.request.notification) return;
  wire::EncodeStatus(call.request.msgid, status, call.AfterCommit());
}

wire::RequestError ErrorOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound: return {wire::ErrorCode::kBadParams, status.message()};
    case StatusCode::kAlreadyExists: return {wire::ErrorCode::kConflict, status.message()};
    case StatusCode::kUnavailable:  // The server ends.
    case StatusCode::kResourceExhausted: return {wire::ErrorCode::kOverloaded, status.message()};
    case StatusCode::kFailedPrecondition: return {wire::ErrorCode::kUnsupported, status.message()};
    default: return {wire::ErrorCode::kInternal, status.ToString()};
  }
}

}  // namespace nowcalls::engine::rpc
