#include "engine/rpc/flow_name.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "core/rules/flow_number.h"
#include "engine/permission.h"

namespace nowcalls::engine::rpc {
namespace {

using core::FlowSlot;
using core::FlowTable;
using core::NamespaceSlot;

// Numbers that an error names.
constexpr size_t kShownMax = 4;

NamespaceSlot SpaceOf(const Call& call) {
  if (call.connection->session == core::kNoSession) {
    return call.core()->flows().FindNamespace(kDefaultNamespace);
  }
  return call.core()->books().sessions().at(call.connection->session).name_space;
}

wire::RequestError SeveralRules(const Call& call, std::string_view name,
                                const std::vector<FlowSlot>& slots) {
  const FlowTable& flows = call.core()->flows();
  std::string numbers;
  for (size_t i = 0; i < std::min(slots.size(), kShownMax); ++i) {
    const core::Flow& flow = flows.at(slots[i]);
    numbers += (i == 0 ? "" : ", ") + std::to_string(flow.id.value) +
               (flow.keyed ? " by value" : "") + " of namespace " +
               flows.name_space(flow.name_space).name;
  }
  if (slots.size() > kShownMax) numbers += " and more";
  return {wire::ErrorCode::kBadParams,
          std::string(wire::MethodName(call.request.method)) + ": flow_id " + Quoted(name) +
              " is the resource of several rules: " + numbers + "; ask by number"};
}

// A number that no flow has: that of the name, unless a rule has taken it.
FlowId NumberWithoutFlow(const FlowTable& flows, std::string_view name_space,
                         std::string_view name) {
  FlowId id = core::FlowNumberOf(name_space, name);
  while (!FindAll(flows, id).empty()) ++id.value;
  return id;
}

// The flow's number for a request of this kind. Of the other kind's flow it may be that of a rule
// with another name, which must not answer: 0, a bad request.
int64_t NumberFor(const FlowTable& flows, FlowKind kind, FlowSlot slot) {
  const core::Flow& flow = flows.at(slot);
  if (flow.key().kind == kind) return flow.id.value;
  const FlowSlot meant = flows.Find({flow.id, kind});
  return meant != core::kNoFlow && flows.at(meant).active() ? 0 : flow.id.value;
}

struct Found {
  FlowSlot first;
  bool several = false;
};

Found FindIn(const FlowTable& flows, NamespaceSlot space, const core::FlowName& name) {
  Found found;
  ForEachNamed(flows, space, name, [&](FlowSlot slot) {
    found.several = found.first != core::kNoFlow;
    if (!found.several) found.first = slot;
    return !found.several;
  });
  return found;
}

std::vector<FlowSlot> SomeIn(const FlowTable& flows, NamespaceSlot space,
                             const core::FlowName& name) {
  std::vector<FlowSlot> slots;
  ForEachNamed(flows, space, name, [&](FlowSlot slot) {
    slots.push_back(slot);
    return slots.size() <= kShownMax;
  });
  return slots;
}

// The flow of this name in which the request has a token; kNoFlow: it has none.
FlowSlot FlowOfRequest(const Call& call, const core::FlowName& name, uint64_t request_id) {
  FlowSlot found = core::kNoFlow;
  if (request_id == 0 || call.connection->session == core::kNoSession) return found;
  const core::Books& books = call.core()->books();
  books.tokens().ForEachOfRequest(call.connection->session, request_id, [&](core::TokenSlot token) {
    const FlowSlot slot = books.tokens().at(token).flow_slot;
    const core::Flow& flow = books.flows().at(slot);
    if (flow.key().kind == name.kind && flow.rule->resource == name.resource) found = slot;
  });
  return found;
}

}  // namespace

std::vector<FlowSlot> FindInSight(const Call& call, const core::FlowName& name,
                                  NamespaceSlot space) {
  const FlowTable& flows = call.core()->flows();
  const core::Sight sight = SightOf(*call.connection);
  std::vector<FlowSlot> found;
  const auto visit = [&](FlowSlot slot) {
    ++call.core()->books().looks();
    if (sight.Has(flows, slot)) found.push_back(slot);
    return found.size() <= kShownMax;
  };
  const bool has_session = call.connection->session != core::kNoSession;
  if (space == core::kNoNamespace && has_session) space = SpaceOf(call);
  if (space == core::kNoNamespace) {
    ForEachNamed(flows, name, visit);
  } else {
    ForEachNamed(flows, space, name, visit);
  }
  return found;
}

bool ResolveName(const Call& call, const core::FlowName& name, uint64_t request_id,
                 int64_t* flow_id) {
  const FlowTable& flows = call.core()->flows();
  const NamespaceSlot space = SpaceOf(call);
  const std::string_view name_space =
      space == core::kNoNamespace ? kDefaultNamespace : flows.name_space(space).name;
  if (!MayReach(call, name_space)) return false;
  if (const FlowSlot slot = FlowOfRequest(call, name, request_id); slot != core::kNoFlow) {
    *flow_id = flows.at(slot).id.value;
    return true;
  }
  // The first of these decides: a rule in force; one of the other kind, or a removed one with
  // tokens out, for which the core has its answers; none.
  for (const core::FlowName& wanted : {name, core::FlowName{name.resource, OtherThan(name.kind)},
                                       core::FlowName{name.resource, name.kind, true}}) {
    if (space == core::kNoNamespace) break;
    const Found found = FindIn(flows, space, wanted);
    if (found.first == core::kNoFlow) continue;
    if (found.several && wanted.kind == name.kind && !wanted.removed) {
      ReplyError(call, SeveralRules(call, name.resource, SomeIn(flows, space, wanted)));
      return false;
    }
    *flow_id = NumberFor(flows, name.kind, found.first);
    return true;
  }
  *flow_id = NumberWithoutFlow(flows, name_space, name.resource).value;
  return true;
}

bool ResolveChoice(const Call& call, std::string_view name, FlowChoice* choice) {
  const FlowTable& flows = call.core()->flows();
  std::vector<FlowSlot> slots;
  for (const bool removed : {false, true}) {
    for (const FlowKind kind : kFlowKinds) {
      if (choice->kind.value_or(kind) != kind) continue;
      for (const FlowSlot slot : FindInSight(call, {name, kind, removed})) slots.push_back(slot);
    }
    if (!slots.empty()) break;
  }
  if (slots.empty()) {
    // The record that removed the rule may be on its way.
    ReplyErrorAfterCommit(
        call, {wire::ErrorCode::kBadParams,
               std::string(wire::MethodName(call.request.method)) + ": flow_id " + Quoted(name) +
                   (choice->kind == FlowKind::kValue ? " by value" : "") +
                   " has neither a rule nor tokens"});
    return false;
  }
  const FlowKey first = flows.at(slots.front()).key();
  const auto all = [&](auto is_so) {
    return std::all_of(slots.begin(), slots.end(),
                       [&](FlowSlot slot) { return is_so(flows.at(slot).key()); });
  };
  if (!all([&](const FlowKey& key) { return key.id == first.id; })) {
    ReplyErrorAfterCommit(call, SeveralRules(call, name, slots));
    return false;
  }
  choice->id = first.id;
  if (all([&](const FlowKey& key) { return key.kind == first.kind; })) choice->kind = first.kind;
  return true;
}

}  // namespace nowcalls::engine::rpc
