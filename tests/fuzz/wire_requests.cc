#include "fuzz/wire_requests.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "core/tables/token_ids.h"
#include "support/core_harness.h"
#include "wire/admin_messages.h"
#include "wire/client_messages.h"
#include "wire/cluster_messages.h"
#include "wire/namespace_rows.h"
#include "wire/rows.h"

namespace nowcalls::fuzz {
namespace {

using testing::EngineReply;
using wire::Method;
using wire::OutputBuffer;

constexpr int64_t kNumberMax = std::numeric_limits<int64_t>::max();
constexpr uint64_t kUnsignedMax = std::numeric_limits<uint64_t>::max();

// What the length of each table divides is taken from a byte with %.
constexpr Method kMethods[] = {
    Method::kAcquire,        Method::kCluster,   Method::kAcquireAll,
    Method::kParams,         Method::kRequest,   Method::kRequestParam,
    Method::kRelease,        Method::kCopy,      Method::kReclaimNamespace,
    Method::kDrainNamespace, Method::kKeep,      Method::kCancel,
    Method::kIdentify,       Method::kHello,     Method::kWaiters,
    Method::kPing,           Method::kRulesList, Method::kRulesLoad,
    Method::kCopyPiece,      Method::kFlow,      Method::kFlows,
    Method::kTokens,         Method::kSessions,  Method::kInfo,
    Method::kReclaim,        Method::kHistory,   Method::kReclaimClient,
    Method::kReclaimFlow,    Method::kPurge,     Method::kDrain,
    Method::kNamespaces,     Method::kBackup,
};
static_assert(2 * std::size(kMethods) == kMethodChoices);

Method MethodOf(uint8_t choice) {
  const size_t place = choice % kMethodChoices;
  return place == kMethodChoices - 1 ? Method::kHandover : kMethods[place % std::size(kMethods)];
}

constexpr int64_t kFlows[] = {1, 111, 1, 111, 2, 0, -1, kNumberMax};
constexpr int64_t kCounts[] = {1, 2, 1, 3, 1, 0, kCountMax, kCountMax + 1};
constexpr uint64_t kWaits[] = {0, 1, 50, 500, 5000, kWaitMsMax, kWaitMsMax + 1, kUnsignedMax};
constexpr uint32_t kLimits[] = {kListRowsDefault, 1, 2, kListRowsMax, 1, 3, 0, kListRowsMax + 1};
constexpr uint64_t kCursors[] = {0, 1, 2, 3, 4, 5, 111, kUnsignedMax};
constexpr uint32_t kReclaims[] = {1, 2, kReclaimTokensMax, 0};
constexpr std::string_view kKeys[] = {"k0", "k1", "k2", "k3"};

std::string Text(size_t which, const char* ordinary, size_t bytes_max) {
  switch (which % 8) {
    case 5: return std::string(bytes_max, 'x');
    case 6: return std::string(bytes_max + 1, 'x');
    case 7: return "";
    default: return std::string(ordinary) + static_cast<char>('0' + which % 8);
  }
}

std::string Namespace(size_t which) {
  return which % 8 == 0 ? "default" : Text(which, "shop", kNamespaceBytesMax);
}

std::string Client(size_t which) {
  return which % 8 == 4 ? "@127.0.0.1:1000" : Text(which, "c", kClientIdBytesMax);
}

std::string Reason(size_t which) { return Text(which, "why", kReasonBytesMax); }

// From the first, or back from the last.
uint64_t TokenOf(uint8_t byte, uint64_t next_fence) {
  static const core::TokenIds ids(testing::HarnessOptions().token_id_key);
  constexpr uint64_t kNone[] = {0, 1, core::TokenIds::kMax, kUnsignedMax};
  if (byte >= 252) return kNone[byte % 4];
  const uint64_t back = byte % 64;
  const uint64_t fence =
      byte < 128 ? (next_fence > back + 1 ? next_fence - back - 1 : 1) : 1 + back;
  return ids.FromFence(Fence{fence}).value;
}

// Instead of flow 0. A rule that is loaded for it has no flowId, and the resource "r0".
std::string_view NameInstead(int64_t flow, uint8_t byte) {
  constexpr std::string_view kNames[] = {"", "r0", "r1", "r111"};
  return flow == 0 ? kNames[byte / 64] : "";
}

wire::AcquireParams Acquire(ByteSource* input) {
  const uint8_t what = input->Byte();
  const uint8_t options = input->Byte();
  wire::AcquireParams params{.flow_id = kFlows[what % 8],
                             .count = kCounts[what / 8 % 8],
                             .prioritized = options % 2 == 1,
                             .request_id = static_cast<uint64_t>(options / 2 % 8)};
  if (what >= 64) params.wait_ms = kWaits[options / 16 % 8];
  if (options >= 160) params.param = Param{ParamType::kString, kKeys[options % 4]};
  params.flow_name = NameInstead(params.flow_id, what);
  return params;
}

// Up to seven items, which may be none, or two of one flow and key.
void EncodeAcquireAll(uint32_t msgid, ByteSource* input, OutputBuffer* out) {
  const wire::AcquireParams like = Acquire(input);
  wire::AcquireAllParams params{.items = std::vector<wire::AcquireAllParams::Item>(like.count % 8),
                                .prioritized = like.prioritized,
                                .wait_ms = like.wait_ms,
                                .request_id = like.request_id};
  for (wire::AcquireAllParams::Item& item : params.items) {
    const uint8_t what = input->Byte();
    item.flow_id = kFlows[what % 8];
    item.count = kCounts[what / 8 % 8];
    if (what >= 128) item.param = Param{ParamType::kString, kKeys[what / 32 % 4]};
    item.rate = what % 16 >= 12;
    item.flow_name = NameInstead(item.flow_id, what);
  }
  wire::EncodeAcquireAllRequest(msgid, params, out);
}

void EncodeRates(Method method, uint32_t msgid, ByteSource* input, OutputBuffer* out) {
  const uint8_t what = input->Byte();
  const int64_t flow = kFlows[what % 8];
  const int64_t count = kCounts[what / 8 % 8];
  if (method == Method::kRequest) {
    return wire::EncodeRateRequest(msgid, {flow, count, what >= 128, NameInstead(flow, what)}, out);
  }
  std::vector<ParamValue> values(input->Byte() % 4);
  for (ParamValue& value : values) {
    const uint8_t byte = input->Byte();
    value = byte < 128 ? ParamValue(ParamType::kString, Text(byte, "key", kParamBytesMax))
                       : ParamValue(ParamType::kInt, std::string(4, static_cast<char>(byte)));
  }
  std::vector<Param> views;
  for (const ParamValue& value : values) views.push_back(value.view());
  wire::EncodeValueRateRequest(msgid, {flow, count, NameInstead(flow, what)}, views, out);
}

wire::PageParams Page(uint8_t byte) {
  return {.limit = kLimits[byte % 8], .cursor = kCursors[byte / 8 % 8]};
}

wire::TokensParams Tokens(ByteSource* input, std::string* client) {
  const uint8_t filter = input->Byte();
  wire::TokensParams params;
  params.page = Page(input->Byte());
  if (filter % 2 == 1) params.flow_id = kFlows[filter / 8 % 8];
  if (filter / 2 % 2 == 1) {
    *client = Client(filter / 8);
    params.client_id = *client;
  }
  if (filter / 4 % 2 == 1) params.min_age_ms = filter / 8 * 100;
  if (filter % 8 == 7) params.session = filter / 8;
  if (params.flow_id == 0) params.flow_name = NameInstead(0, filter);
  return params;
}

// Up to three rules of three bytes each.
std::string Rules(ByteSource* input) {
  constexpr double kRuleCounts[] = {2, 1, 0, 3, 2.5, 1e9, 1e300, -1};
  constexpr int64_t kTimes[] = {2000, 100, 60'000, kRuleTimeMsMax};
  std::vector<testing::RuleOptions> rules(input->Byte() % 4);
  for (testing::RuleOptions& rule : rules) {
    const uint8_t what = input->Byte();
    const uint8_t times = input->Byte();
    const uint8_t others = input->Byte();
    rule.flow = kFlows[what % 8];
    rule.count = kRuleCounts[what / 8 % 8];
    rule.avg_local = what / 64 % 2 == 1;
    rule.shadow = what >= 128 && times >= 128;
    rule.resource_timeout_ms = kTimes[times % 4];
    rule.client_offline_ms = kTimes[times / 4 % 4];
    rule.max_queueing_ms = kTimes[times / 16 % 4];
    rule.refuse_strategy = others % 5;
    rule.max_per_client = others / 8 % 4;
    rule.max_per_client_percent = rule.max_per_client == 0 && others >= 128 ? 50 : 0;
    if (rule.max_per_client == 0 && others / 32 % 4 == 3) {
      rule.param.emplace();
      rule.max_per_client_percent = 0;
    }
  }
  return testing::RulesJson(rules);
}

void Notification(Method method, uint64_t token, MadeRequest* made) {
  made->bytes =
      method == Method::kRelease ? "\x93\x02\xa7release\x91\xcf" : "\x93\x02\xa4keep\x91\xcf";
  for (int shift = 56; shift >= 0; shift -= 8) made->bytes += static_cast<char>(token >> shift);
  made->answered.reset();
}

// Of the methods that change nothing but what administrators ask for.
void EncodeAdmin(Method method, const RequestContext& context, ByteSource* input,
                 OutputBuffer* out) {
  const uint32_t msgid = context.msgid;
  const uint8_t what = input->Byte();
  const int64_t flow = kFlows[what % 8];
  const std::string reason = Reason(what / 8);
  const uint32_t limit = kReclaims[what / 64];
  switch (method) {
    case Method::kReclaim:
      return wire::EncodeReclaimRequest(
          msgid, {.token_id = TokenOf(input->Byte(), context.next_fence), .reason = reason}, out);
    case Method::kReclaimClient: {
      const uint8_t who = input->Byte();
      const std::string name_space = Namespace(who);
      const std::string client = Client(who / 8);
      return wire::EncodeReclaimClientRequest(
          msgid, {.name_space = name_space, .client_id = client, .reason = reason, .limit = limit},
          out);
    }
    case Method::kReclaimFlow:
      return wire::EncodeReclaimFlowRequest(
          msgid, {.flow_id = flow, .reason = reason, .limit = limit}, out);
    case Method::kPurge:
      return wire::EncodePurgeRequest(msgid, {.flow_id = flow, .limit = limit, .reason = reason},
                                      out);
    case Method::kDrain:
      return wire::EncodeDrainRequest(msgid, {.flow_id = flow, .on = what < 128, .reason = reason},
                                      out);
    case Method::kReclaimNamespace: {
      const std::string name_space = Namespace(what);
      return wire::EncodeReclaimNamespaceRequest(msgid,
                                                 {.name_space = name_space,
                                                  .reason = reason,
                                                  .limit = limit,
                                                  .first_flow = what < 64 ? uint64_t{2} : 0},
                                                 out);
    }
    case Method::kDrainNamespace: {
      const std::string name_space = Namespace(what);
      return wire::EncodeDrainNamespaceRequest(
          msgid, {.name_space = name_space, .on = what < 128, .reason = reason, .limit = limit},
          out);
    }
    case Method::kBackup:
      return wire::EncodeBackupRequest(msgid, {.to = what % 8 == 7 ? "no/path" : "/b"}, out);
    case Method::kCopyPiece:
      return wire::EncodeCopyPieceRequest(
          msgid, {.file = what % 8 == 7 ? "../x" : "backup.json", .offset = what}, out);
    default: FAIL("no method of administrators");
  }
}

void EncodeListing(Method method, uint32_t msgid, ByteSource* input, OutputBuffer* out) {
  switch (method) {
    case Method::kFlow: return wire::EncodeFlowRequest(msgid, {kFlows[input->Byte() % 8]}, out);
    case Method::kParams: {
      const int64_t flow = kFlows[input->Byte() % 8];
      return wire::EncodeParamsRequest(msgid, {flow, Page(input->Byte()).limit}, out);
    }
    case Method::kWaiters: {
      std::string client;
      const wire::TokensParams like = Tokens(input, &client);
      return wire::EncodeWaitersRequest(msgid, {like.flow_id, like.client_id, like.page.limit},
                                        out);
    }
    case Method::kTokens: {
      std::string client;
      const wire::TokensParams params = Tokens(input, &client);
      return wire::EncodeTokensRequest(msgid, params, out);
    }
    case Method::kRulesList: {
      const std::string name_space = Namespace(input->Byte());
      wire::RulesListParams params{.name_space = {}, .page = Page(input->Byte())};
      if (!name_space.empty()) params.name_space = name_space;
      return wire::EncodeRulesListRequest(msgid, params, out);
    }
    default: return wire::EncodePageRequest(msgid, method, Page(input->Byte()), out);
  }
}

void EncodeClient(Method method, const RequestContext& context, ByteSource* input,
                  OutputBuffer* out) {
  const uint32_t msgid = context.msgid;
  switch (method) {
    case Method::kHello: {
      const uint8_t who = input->Byte();
      const std::string client = Client(who / 8);
      const auto id = who < 192 ? std::optional<std::string_view>(client) : std::nullopt;
      return wire::EncodeHelloRequest(msgid,
                                      {.name_space = Namespace(who),
                                       .client_id = id,
                                       .instance = who % 3 == 2 ? who : uint64_t{0}},
                                      out);
    }
    case Method::kIdentify: return wire::EncodeIdentifyRequest(msgid, Client(input->Byte()), out);
    case Method::kAcquire: return wire::EncodeAcquireRequest(msgid, Acquire(input), out);
    case Method::kAcquireAll: return EncodeAcquireAll(msgid, input, out);
    case Method::kRequest:
    case Method::kRequestParam: return EncodeRates(method, msgid, input, out);
    case Method::kCancel: return wire::EncodeCancelRequest(msgid, (input->Byte() + 1) % 8, out);
    case Method::kRulesLoad: {
      const std::string name_space = Namespace(input->Byte());
      return wire::EncodeRulesLoadRequest(msgid, name_space, Rules(input), out);
    }
    default: return wire::EncodePlainRequest(msgid, method, out);
  }
}

bool IsAdmin(Method method) {
  constexpr Method kAdmin[] = {
      Method::kReclaim,  Method::kReclaimClient, Method::kReclaimFlow,      Method::kPurge,
      Method::kDrain,    Method::kBackup,        Method::kReclaimNamespace, Method::kDrainNamespace,
      Method::kCopyPiece};
  return std::find(std::begin(kAdmin), std::end(kAdmin), method) != std::end(kAdmin);
}

bool IsListing(Method method) {
  constexpr Method kListings[] = {Method::kFlow,      Method::kFlows,   Method::kTokens,
                                  Method::kSessions,  Method::kHistory, Method::kNamespaces,
                                  Method::kRulesList, Method::kParams,  Method::kWaiters};
  return std::find(std::begin(kListings), std::end(kListings), method) != std::end(kListings);
}

template <typename Decoded>
void CheckDecoded(const Decoded& decoded) {
  REQUIRE(decoded.status().ToString() == "ok");
}

void CheckListing(Method method, std::string_view result) {
  switch (method) {
    case Method::kFlow: return CheckDecoded(wire::DecodeFlowRow(result));
    case Method::kFlows: return CheckDecoded(wire::DecodeFlowPage(result));
    case Method::kParams: return CheckDecoded(wire::DecodeParamRows(result));
    case Method::kWaiters: return CheckDecoded(wire::DecodeWaiterRows(result));
    case Method::kTokens: return CheckDecoded(wire::DecodeTokenPage(result));
    case Method::kSessions: return CheckDecoded(wire::DecodeSessionPage(result));
    case Method::kHistory: return CheckDecoded(wire::DecodeHistoryPage(result));
    case Method::kNamespaces: return CheckDecoded(wire::DecodeNamespacePage(result));
    default: REQUIRE_FALSE(result.empty());  // Rules are shown as they came.
  }
}

}  // namespace

wire::ClusterReply ClusterOfTwo() {
  wire::ClusterReply reply{.cluster = "c", .prefix = "/p", .term = 3, .writer = "a:1"};
  reply.members = {{.member = "a", .address = "a:1", .leads = true},
                   {.member = "b", .address = "b:1"}};
  return reply;
}

MadeRequest MakeRequest(const RequestContext& context, ByteSource* input) {
  const uint8_t choice = input->Byte();
  const Method method = MethodOf(choice);
  MadeRequest made;
  made.answered = method;
  OutputBuffer out;
  if (method == Method::kRelease || method == Method::kKeep) {
    const uint64_t token = TokenOf(input->Byte(), context.next_fence);
    if (choice >= 192) {
      Notification(method, token, &made);
      return made;
    }
    const auto outcome = static_cast<CallOutcome>(choice / 64 % kCallOutcomeCount);
    method == Method::kRelease ? wire::EncodeReleaseRequest(context.msgid, token, outcome, &out)
                               : wire::EncodeTokenRequest(context.msgid, method, token, &out);
  } else if (IsAdmin(method)) {
    EncodeAdmin(method, context, input, &out);
  } else if (IsListing(method)) {
    EncodeListing(method, context.msgid, input, &out);
  } else {
    EncodeClient(method, context, input, &out);
  }
  made.bytes = std::string(out.view());
  return made;
}

MadeRequest MakeRequestOf(const RequestContext& context, uint8_t method, std::string_view params) {
  const Method chosen = MethodOf(method);
  const std::string_view name = wire::MethodName(chosen);
  MadeRequest made;
  made.answered = chosen;
  made.bytes = std::string("\x94\x00\xce", 3);
  for (int shift = 24; shift >= 0; shift -= 8) {
    made.bytes += static_cast<char>(context.msgid >> shift);
  }
  made.bytes += static_cast<char>(0xa0 + name.size());
  made.bytes += name;
  made.bytes += params;
  return made;
}

void CheckReply(Method method, const EngineReply& reply) {
  if (reply.error.has_value()) {
    REQUIRE(reply.error->code != wire::ErrorCode::kInternal);
    REQUIRE_FALSE(reply.error->message.empty());
    return;
  }
  const std::string_view result = reply.result;
  if (IsListing(method)) return CheckListing(method, result);
  switch (method) {
    case Method::kHello: return CheckDecoded(wire::DecodeHelloReply(result));
    case Method::kIdentify: return CheckDecoded(wire::DecodeIdentifyReply(result));
    case Method::kAcquire: return CheckDecoded(wire::DecodeAcquireReply(result));
    case Method::kAcquireAll: return CheckDecoded(wire::DecodeAcquireAllReply(result));
    case Method::kKeep: return CheckDecoded(wire::DecodeKeepReply(result));
    case Method::kRequest:
    case Method::kRequestParam: return CheckDecoded(wire::DecodeRateReply(result));
    case Method::kRelease:
    case Method::kReclaim:
    case Method::kCancel: return CheckDecoded(wire::DecodeStatusReply(result));
    case Method::kPing:
    case Method::kHandover:
    case Method::kRulesLoad: return CheckDecoded(wire::DecodeUintReply(result));
    case Method::kReclaimClient:
    case Method::kReclaimFlow:
    case Method::kPurge: return CheckDecoded(wire::DecodeReclaimedReply(result));
    case Method::kDrain: return CheckDecoded(wire::DecodeDrainReply(result));
    case Method::kReclaimNamespace: return CheckDecoded(wire::DecodeReclaimNamespaceReply(result));
    case Method::kDrainNamespace: return CheckDecoded(wire::DecodeDrainNamespaceReply(result));
    case Method::kBackup:
    case Method::kCopy: return CheckDecoded(wire::DecodeBackupReply(result));
    case Method::kCopyPiece: return CheckDecoded(wire::DecodeCopyPieceReply(result));
    case Method::kCluster: return CheckDecoded(wire::DecodeClusterReply(result));
    default: REQUIRE_FALSE(result.empty());
  }
}

}  // namespace nowcalls::fuzz
