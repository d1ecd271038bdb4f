#include "unit/engine/tenants.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/books.h"
#include "core/tables/wait_queues.h"
#include "support/only_flow.h"
#include "wire/admin_messages.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::testing {
namespace {

using access::Role;
using wire::Method;
using wire::sentinel::RequestType;

std::string WaitingRequest(uint32_t msgid, int64_t flow) {
  wire::OutputBuffer out;
  wire::EncodeAcquireRequest(msgid, {.flow_id = flow, .count = 2, .wait_ms = 3'600'000}, &out);
  return std::string(out.view());
}

template <size_t kSize>
bool IsOneOf(Method method, const std::array<Method, kSize>& methods) {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

void AddOfClients(Method method, const Subject& subject, wire::OutputBuffer* out) {
  switch (method) {
    case Method::kHello:
      return wire::EncodeHelloRequest(7, {.name_space = subject.name_space}, out);
    case Method::kIdentify: return wire::EncodeIdentifyRequest(7, "", out);
    case Method::kPing:
    case Method::kInfo: return wire::EncodePlainRequest(7, method, out);
    case Method::kAcquire: {
      wire::AcquireParams params{.flow_id = subject.flow, .count = 1};
      return wire::EncodeAcquireRequest(7, params, out);
    }
    case Method::kAcquireAll: {
      wire::AcquireAllParams params;
      params.items = {{.flow_id = 1, .count = 3}, {.flow_id = subject.flow, .count = 1}};
      if (subject.flow == 1) params.items.pop_back();
      return wire::EncodeAcquireAllRequest(7, params, out);
    }
    case Method::kRelease:
    case Method::kKeep: return wire::EncodeTokenRequest(7, method, subject.token, out);
    case Method::kCancel: return wire::EncodeCancelRequest(7, 70, out);
    case Method::kRequest:
      return wire::EncodeRateRequest(7, {.flow_id = subject.flow, .count = 1}, out);
    case Method::kRequestParam: {
      const std::vector<Param> values = {{ParamType::kString, "value-7"}};
      return wire::EncodeValueRateRequest(7, {.flow_id = subject.flow, .count = 1}, values, out);
    }
    default: return;
  }
}

void AddListing(Method method, const Subject& subject, wire::OutputBuffer* out) {
  switch (method) {
    case Method::kRulesList:
      return wire::EncodeRulesListRequest(7, {.name_space = subject.name_space, .page = {}}, out);
    case Method::kFlow: return wire::EncodeFlowRequest(7, {subject.flow}, out);
    case Method::kFlows:
    case Method::kSessions:
    case Method::kNamespaces:
    case Method::kHistory: return wire::EncodePageRequest(7, method, {.limit = 100}, out);
    case Method::kTokens: {
      wire::TokensParams params{.page = {.limit = 100}};
      params.flow_id = subject.flow;
      return wire::EncodeTokensRequest(7, params, out);
    }
    case Method::kParams:
      return wire::EncodeParamsRequest(7, {.flow_id = subject.flow, .limit = 10}, out);
    case Method::kWaiters: {
      wire::WaitersParams params;
      params.flow_id = subject.flow;
      return wire::EncodeWaitersRequest(7, params, out);
    }
    default: return;
  }
}

void AddOfAdministrators(Method method, const Subject& subject, wire::OutputBuffer* out) {
  const std::string& name_space = subject.name_space;
  switch (method) {
    case Method::kRulesLoad: return wire::EncodeRulesLoadRequest(7, name_space, "[]", out);
    case Method::kReclaim:
      return wire::EncodeReclaimRequest(7, {.token_id = subject.token, .reason = "r"}, out);
    case Method::kReclaimClient:
      return wire::EncodeReclaimClientRequest(
          7, {.name_space = name_space, .client_id = "bobs-worker", .reason = "r"}, out);
    case Method::kReclaimFlow:
      return wire::EncodeReclaimFlowRequest(7, {.flow_id = subject.flow, .reason = "r"}, out);
    case Method::kPurge: return wire::EncodePurgeRequest(7, {.flow_id = subject.flow}, out);
    case Method::kDrain:
      return wire::EncodeDrainRequest(7, {.flow_id = subject.flow, .on = true}, out);
    case Method::kReclaimNamespace:
      return wire::EncodeReclaimNamespaceRequest(7, {.name_space = name_space, .reason = "r"}, out);
    case Method::kDrainNamespace:
      return wire::EncodeDrainNamespaceRequest(7, {.name_space = name_space, .on = true}, out);
    case Method::kBackup: return wire::EncodeBackupRequest(7, {.to = "/copy"}, out);
    case Method::kCopy:
    case Method::kCluster:
    case Method::kHandover: return wire::EncodePlainRequest(7, method, out);
    case Method::kCopyPiece: return wire::EncodeCopyPieceRequest(7, {.file = "backup.json"}, out);
    default: return;
  }
}

}  // namespace

Tenants::Tenants() : h(Limits(), {}) {
  h.SetAccess({PrincipalEntry("ann", Role::kAdministrator, {{"shop"}}),
               PrincipalEntry("bob", Role::kAdministrator, {{"bank"}}),
               PrincipalEntry("root", Role::kAdministrator)});
  root = h.ConnectAs("root");
  constexpr int64_t kLongMs = 600'000;
  for (const Subject& subject : {own, other}) {
    REQUIRE(Load(subject.name_space, {{.flow = subject.flow,
                                       .count = 2,
                                       .resource_timeout_ms = kLongMs,
                                       .client_offline_ms = kLongMs}}) == "ok");
  }
  anns = h.ConnectAs("ann");
  h.Call(anns, HelloRequest(1, "shop", "anns-worker"));
  own.token = h.Take(anns, own.flow);
  h.Send(anns, WaitingRequest(2, own.flow));
  bobs = h.ConnectAs("bob");
  h.Call(bobs, HelloRequest(1, "bank", "bobs-worker"));
  other.token = h.Take(bobs, other.flow);
  h.Send(bobs, WaitingRequest(2, other.flow));
  h.Settle();
  h.driver().TakeLog();
}

bool Tenants::StillThere() {
  const core::FlowTable& flows = h.core().flows();
  const core::Flow& flow = flows.at(core::OnlyFlow(flows, other.flow));
  return flow.active() && !flow.draining && flow.lane.now_calls == 1 && flow.lane.waiting() == 1;
}

std::string Tenants::Load(std::string_view name_space, const std::vector<RuleOptions>& rules) {
  wire::OutputBuffer out;
  wire::EncodeRulesLoadRequest(1, name_space, RulesJson(rules), &out);
  return h.Call(root, out.view()).ErrorText();
}

std::string RequestAbout(Method method, const Subject& subject) {
  wire::OutputBuffer out;
  AddOfClients(method, subject, &out);
  AddListing(method, subject, &out);
  AddOfAdministrators(method, subject, &out);
  return std::string(out.view());
}

bool NamesFlow(Method method) {
  return IsOneOf(method, std::to_array({Method::kAcquire, Method::kAcquireAll, Method::kRequest,
                                        Method::kRequestParam, Method::kFlow, Method::kTokens,
                                        Method::kParams, Method::kWaiters, Method::kReclaimFlow,
                                        Method::kPurge, Method::kDrain}));
}

bool NamesNamespace(Method method) {
  return IsOneOf(method, std::to_array({Method::kHello, Method::kRulesList, Method::kRulesLoad,
                                        Method::kReclaimClient, Method::kReclaimNamespace,
                                        Method::kDrainNamespace}));
}

std::string SentinelRequest(RequestType type, std::string_view name_space, int64_t flow,
                            uint64_t token) {
  wire::OutputBuffer out;
  switch (type) {
    case RequestType::kPing: wire::sentinel::EncodePingRequest(1, name_space, &out); break;
    case RequestType::kFlow:
    case RequestType::kAcquire:
      wire::sentinel::EncodeCallRequest(1, type, {flow, 1, false}, &out);
      break;
    case RequestType::kParamFlow: {
      const std::vector<Param> values = {{ParamType::kString, "value-7"}};
      wire::sentinel::EncodeParamCallRequest(1, flow, 1, values, &out);
      break;
    }
    case RequestType::kRelease:
    case RequestType::kKeep: wire::sentinel::EncodeTokenRequest(1, type, token, &out); break;
  }
  return std::string(out.view());
}

TokenStatus TakeSentinelStatus(EngineHarness* h, engine::ConnectionId id) {
  std::string& written = h->driver().socket(id).written;
  std::string_view bytes = written;
  wire::sentinel::Response response;
  REQUIRE(wire::sentinel::TakeResponse(&bytes, &response) == wire::sentinel::Answer::kWhole);
  written.clear();
  return response.status;
}

}  // namespace nowcalls::testing
