// What a message makes the core look at is charged to its sender, so a turn stays short however
// large the world is: no connection can hold up the others by what it asks.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/books.h"
#include "engine/rpc/methods.h"
#include "support/engine_harness.h"
#include "wire/admin_messages.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using testing::EngineReply;
using wire::Method;

// Values of flow 1, each with a token, and as many acquires that wait.
constexpr uint32_t kValues = 6'000;
// What a turn has room for, with what has just been read, what waited and work, is 16,384 units of
// eight looks each. The last message of a budget may exceed it.
constexpr uint64_t kLooksPerTurnMax = 160'000;

Limits WideLimits() {
  Limits limits;
  limits.waiters_per_connection_max = 2 * kValues;
  limits.waiters_per_rule_max = 2 * kValues;
  return limits;
}

std::vector<testing::RuleOptions> WorldRules() {
  std::vector<testing::RuleOptions> rules;
  rules.push_back({.flow = 1,
                   .count = 1,
                   .resource_timeout_ms = 600'000,
                   .client_offline_ms = 600'000,
                   .param = core::ParamRule{}});
  for (int64_t flow = 2; flow <= 1'000; ++flow) {
    rules.push_back({.flow = flow, .count = 1, .resource_timeout_ms = 600'000});
  }
  return rules;
}

// Waiters, tokens and keys of one flow, values with calls a second, flows, sessions, connections.
class LargeWorld {
 public:
  explicit LargeWorld(uint32_t values) : h(WideLimits(), WorldRules()), holder_(h.Connect()) {
    h.Call(holder_, testing::HelloRequest(1, "default", "holder"));
    for (uint32_t i = 0; i < 2 * values; ++i) {
      const std::string value = "value-" + std::to_string(i % values);
      wire::OutputBuffer out;
      wire::AcquireParams acquire{.flow_id = 1, .count = 1, .wait_ms = 3'600'000};
      acquire.param = Param{ParamType::kString, value};
      wire::EncodeAcquireRequest(i, acquire, &out);
      const std::vector<Param> asked = {*acquire.param};
      wire::EncodeValueRateRequest(i, {.flow_id = 1, .count = 1}, asked, &out);
      h.Send(holder_, out.view());
      h.Settle();
    }
    h.TakeReplies(holder_);
    for (uint32_t i = 0; i < values / 10; ++i) {
      const ConnectionId id = h.Connect("127.0.0.1:3");
      h.Send(id, testing::HelloRequest(1, "default", "client-" + std::to_string(i)));
    }
    h.Settle();
  }

  uint64_t looks() { return h.core().books().looks(); }

  EngineHarness h;

 private:
  const ConnectionId holder_;
};

void AddOfClients(Method method, uint32_t id, wire::OutputBuffer* out) {
  switch (method) {
    case Method::kHello: wire::EncodeHelloRequest(id, {.name_space = "default"}, out); break;
    case Method::kIdentify: wire::EncodeIdentifyRequest(id, "secret", out); break;
    case Method::kAcquire: {
      wire::AcquireParams params{.flow_id = 1, .count = 1, .wait_ms = 1'000};
      params.param = Param{ParamType::kString, "value-7"};
      wire::EncodeAcquireRequest(id, params, out);
      break;
    }
    case Method::kAcquireAll: {
      wire::AcquireAllParams params;
      for (int64_t flow = 2; flow < 66; ++flow) params.items.push_back({flow, 1});
      params.wait_ms = 1'000;
      wire::EncodeAcquireAllRequest(id, params, out);
      break;
    }
    case Method::kRelease:
    case Method::kKeep: wire::EncodeTokenRequest(id, method, 1, out); break;
    case Method::kPing:
    case Method::kInfo: wire::EncodePlainRequest(id, method, out); break;
    case Method::kCancel: wire::EncodeCancelRequest(id, id + 1, out); break;
    case Method::kRequest: wire::EncodeRateRequest(id, {.flow_id = 2, .count = 1}, out); break;
    case Method::kRequestParam: {
      const std::vector<Param> values(60, Param{ParamType::kString, "value-7"});
      wire::EncodeValueRateRequest(id, {.flow_id = 1, .count = 1}, values, out);
      break;
    }
    default: break;
  }
}

void AddListing(Method method, uint32_t id, wire::OutputBuffer* out) {
  switch (method) {
    case Method::kRulesList:
      wire::EncodeRulesListRequest(id, {.name_space = {}, .page = {.limit = 1000}}, out);
      break;
    case Method::kFlow: wire::EncodeFlowRequest(id, {1}, out); break;
    case Method::kFlows:
    case Method::kSessions:
    case Method::kNamespaces:
    case Method::kHistory: wire::EncodePageRequest(id, method, {.limit = 1000}, out); break;
    case Method::kTokens: {
      wire::TokensParams params{.page = {.limit = 1000}};
      params.client_id = "nobody";
      wire::EncodeTokensRequest(id, params, out);
      break;
    }
    case Method::kParams: wire::EncodeParamsRequest(id, {.flow_id = 1, .limit = 10}, out); break;
    case Method::kWaiters: {
      wire::WaitersParams params;
      params.client_id = "nobody";
      wire::EncodeWaitersRequest(id, params, out);
      break;
    }
    default: break;
  }
}

void AddOfAdministrators(Method method, uint32_t id, wire::OutputBuffer* out) {
  switch (method) {
    case Method::kRulesLoad: wire::EncodeRulesLoadRequest(id, "default", "[]", out); break;
    case Method::kReclaim:
      wire::EncodeReclaimRequest(id, {.token_id = 1, .reason = "r"}, out);
      break;
    case Method::kReclaimClient:
      wire::EncodeReclaimClientRequest(
          id, {.name_space = "default", .client_id = "holder", .reason = "r"}, out);
      break;
    case Method::kReclaimFlow:
      wire::EncodeReclaimFlowRequest(id, {.flow_id = 1, .reason = "r"}, out);
      break;
    case Method::kPurge: wire::EncodePurgeRequest(id, {.flow_id = 1}, out); break;
    case Method::kDrain: wire::EncodeDrainRequest(id, {.flow_id = 1, .on = true}, out); break;
    case Method::kReclaimNamespace:
      wire::EncodeReclaimNamespaceRequest(id, {.name_space = "default", .reason = "r"}, out);
      break;
    case Method::kDrainNamespace:
      wire::EncodeDrainNamespaceRequest(id, {.name_space = "default", .on = true}, out);
      break;
    case Method::kBackup: wire::EncodeBackupRequest(id, {.to = "/copy"}, out); break;
    case Method::kCopy:
    case Method::kCluster:
    case Method::kHandover: wire::EncodePlainRequest(id, method, out); break;
    case Method::kCopyPiece: wire::EncodeCopyPieceRequest(id, {.file = "backup.json"}, out); break;
    default: break;
  }
}

// A request of each method that makes the world as much work as it can. Empty: the method is new,
// and needs one here.
std::string Example(Method method, uint32_t id) {
  wire::OutputBuffer out;
  AddOfClients(method, id, &out);
  AddListing(method, id, &out);
  AddOfAdministrators(method, id, &out);
  return std::string(out.view());
}

TEST_CASE(
    "whatever method floods a large world, each turn is short and others are answered in it") {
  for (const rpc::MethodRow& method : rpc::AllMethods()) {
    CAPTURE(wire::MethodName(method.id));
    LargeWorld world(kValues);
    const ConnectionId attacker = world.h.Connect("127.0.0.1:2");
    const ConnectionId other = world.h.Connect("127.0.0.1:4");
    std::string flood;
    for (uint32_t i = 0; i < 300; ++i) flood += Example(method.id, i);
    REQUIRE_FALSE(flood.empty());
    uint64_t before = world.looks();
    world.h.Send(attacker, flood);
    for (uint32_t turn = 1; turn <= 60; ++turn) {
      world.h.Send(other, testing::PlainRequest(turn, Method::kPing));
      world.h.Turn();
      CHECK(world.looks() - before <= kLooksPerTurnMax);
      before = world.looks();
      CHECK(world.h.TakeIds(other) == testing::Ids(turn, turn));
      if (world.h.BeginCommit()) world.h.FinishCommit();
      world.h.TakeReplies(attacker);
    }
  }
}

TEST_CASE("what is shown of one flow costs no more when very many wait for it") {
  const auto looks_of = [](uint32_t values) {
    LargeWorld world(values);
    const ConnectionId c = world.h.Connect();
    const uint64_t before = world.looks();
    REQUIRE(world.h.Call(c, Example(Method::kFlow, 1)).ErrorText() == "ok");
    return world.looks() - before;
  };
  CHECK(looks_of(kValues) == looks_of(1));
}

// Of flows 1 to 64, with `value` if it is not empty.
std::string GroupOf64(uint32_t id, const std::string& value = {}) {
  wire::AcquireAllParams params;
  for (int64_t flow = 1; flow <= 64; ++flow) {
    params.items.push_back({flow, 1});
    if (!value.empty()) params.items.back().param = Param{ParamType::kString, value};
  }
  wire::OutputBuffer out;
  wire::EncodeAcquireAllRequest(id, params, &out);
  return std::string(out.view());
}

TEST_CASE("a turn grants no more tokens to groups than to single acquires") {
  std::vector<testing::RuleOptions> rules;
  for (int64_t flow = 1; flow <= 64; ++flow) {
    rules.push_back({.flow = flow, .count = 1e9, .resource_timeout_ms = 600'000});
  }
  EngineHarness h(Limits(), rules);
  std::string groups;
  for (uint32_t i = 0; i < 20; ++i) groups += GroupOf64(i);
  for (int i = 0; i < 40; ++i) h.Send(h.Connect("127.0.0.1:2"), groups);
  size_t before = h.core().books().tokens().size();
  CHECK(before <= 2'100);  // Of the turn that has read them.
  while (h.engine().input_waits()) {
    h.Turn();
    CHECK(h.core().books().tokens().size() - before <= 4'200);
    before = h.core().books().tokens().size();
  }
}

TEST_CASE("a group is charged the bytes of its values") {
  std::vector<testing::RuleOptions> rules;
  for (int64_t flow = 1; flow <= 64; ++flow) {
    rules.push_back({.flow = flow, .count = 0, .param = core::ParamRule{}});
  }
  EngineHarness h(Limits(), rules);
  const ConnectionId c = h.Connect();
  uint32_t sent = 0;
  for (; sent < 30; ++sent) h.Send(c, GroupOf64(sent, std::string(1000, 'v')));
  uint32_t answered = 0;
  for (uint32_t turns = 0; answered < sent; ++turns) {
    REQUIRE(turns < 100);
    h.Turn();
    const size_t in_turn = h.TakeIds(c).size();
    CHECK(in_turn <= 12);
    answered += static_cast<uint32_t>(in_turn);
  }
}

TEST_CASE("a release is charged the groups that it makes the server look at") {
  std::vector<testing::RuleOptions> rules;
  for (int64_t flow = 1; flow <= 64; ++flow) {
    rules.push_back({.flow = flow, .count = 1, .resource_timeout_ms = 600'000});
  }
  EngineHarness h(Limits(), rules);
  const ConnectionId holder = h.Connect();
  h.Take(holder, 1);
  h.Take(holder, 64);
  wire::AcquireAllParams params;
  params.wait_ms = 3'600'000;
  for (int64_t flow = 1; flow <= 64; ++flow) params.items.push_back({flow, 1});
  const ConnectionId waits = h.Connect("127.0.0.1:2");
  wire::OutputBuffer out;
  for (uint32_t i = 0; i < 900; ++i) wire::EncodeAcquireAllRequest(i, params, &out);
  for (size_t at = 0; at < out.view().size(); at += 4096) {
    h.Send(waits, out.view().substr(at, 4096));
    h.Settle();
  }
  REQUIRE(h.core().wait_queues().size() == 900);
  // Each acquire and release of flow 1 sends the first groups on to the line of flow 64.
  std::string flood;
  for (uint32_t i = 0; i < 100; ++i) {
    wire::OutputBuffer pair;
    wire::EncodeAcquireRequest(i, {.flow_id = 1, .count = 1, .request_id = i + 1}, &pair);
    wire::EncodeCancelRequest(i, i + 1, &pair);
    flood += pair.view();
  }
  uint64_t before = h.core().books().looks();
  h.Send(holder, flood);
  h.Turn();
  CHECK(h.core().books().looks() - before <= kLooksPerTurnMax);
}

}  // namespace
}  // namespace nowcalls::engine
