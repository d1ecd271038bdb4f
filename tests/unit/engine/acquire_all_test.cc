// acquire_all through the engine: its answers, when they leave, and what shares its ids.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using testing::EngineReply;
using wire::AcquireAllParams;
using wire::AcquireAllReply;

std::string All(uint32_t msgid, const AcquireAllParams& params) {
  wire::OutputBuffer out;
  wire::EncodeAcquireAllRequest(msgid, params, &out);
  return std::string(out.view());
}

AcquireAllReply ReplyOf(const EngineReply& reply) {
  REQUIRE(reply.ErrorText() == "ok");
  const Result<AcquireAllReply> decoded = wire::DecodeAcquireAllReply(reply.result);
  REQUIRE(decoded.ok());
  return *decoded;
}

// A request with one call of each of the flows.
AcquireAllParams Of(const std::vector<int64_t>& flows, uint64_t wait_ms = 0) {
  AcquireAllParams params;
  for (const int64_t flow : flows) params.items.push_back({.flow_id = flow, .count = 1});
  if (wait_ms > 0) params.wait_ms = wait_ms;
  return params;
}

const std::vector<testing::RuleOptions> kTwoFlows = {{.flow = 1, .count = 1},
                                                     {.flow = 2, .count = 1}};

TEST_CASE("the tokens of an acquire_all leave when their one batch is durable") {
  EngineHarness h(Limits(), kTwoFlows);
  const ConnectionId a = h.Connect();
  h.Send(a, All(7, Of({2, 1})));
  h.Turn();
  CHECK(h.TakeReplies(a).empty());
  REQUIRE(h.BeginCommit());
  CHECK(h.core().books().tokens().size() == 2);
  CHECK(h.TakeReplies(a).empty());
  h.FinishCommit();
  h.Turn();
  const std::vector<EngineReply> replies = h.TakeReplies(a);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].msgid == 7);
  const AcquireAllReply reply = ReplyOf(replies[0]);
  CHECK(reply.status == TokenStatus::kOk);
  CHECK(reply.flow_id == 0);
  REQUIRE(reply.tokens.size() == 2);
  CHECK(reply.tokens[0].fence < reply.tokens[1].fence);
  CHECK(reply.tokens[0].hold_ms == 4000);
  const auto release = [&](uint64_t token) {
    return h.Call(a, testing::TokenRequest(8, wire::Method::kRelease, token)).status();
  };
  CHECK(release(reply.tokens[0].token_id) == TokenStatus::kReleaseOk);
  CHECK(h.Take(a, 2) != 0);
  CHECK(release(reply.tokens[1].token_id) == TokenStatus::kReleaseOk);
}

TEST_CASE("a refusal of an acquire_all names the rule, and does not wait for a commit") {
  EngineHarness h(Limits(), kTwoFlows);
  const ConnectionId a = h.Connect();
  h.Take(a, 2);
  h.Send(a, All(7, Of({1, 2})));
  h.Turn();
  const std::vector<EngineReply> replies = h.TakeReplies(a);
  REQUIRE(replies.size() == 1);
  const AcquireAllReply reply = ReplyOf(replies[0]);
  CHECK(reply.status == TokenStatus::kBlocked);
  CHECK(reply.refused_by == RefusedBy::kLevel);
  CHECK(reply.flow_id == 2);
  CHECK(reply.now_calls == 1);
  CHECK(reply.level == 1);
  CHECK(reply.tokens.empty());
  CHECK(h.Call(a, All(8, Of({1, 1}))).ErrorText() ==
        "BAD_PARAMS: acquire_all: items must not hold flow_id 1 with the same param twice");
  CHECK(h.Call(a, All(9, {})).ErrorText() == "BAD_PARAMS: acquire_all: items must be 1..64, got 0");
}

TEST_CASE("an acquire_all that waited is answered late, in its own form") {
  EngineHarness h(Limits(), kTwoFlows);
  const ConnectionId a = h.Connect();
  const ConnectionId b = h.Connect("127.0.0.1:2000");
  const uint64_t held = h.Take(a, 2);
  for (const uint32_t msgid : {7, 8}) h.Send(b, All(msgid, Of({1, 2}, 1000)));
  h.Settle();
  CHECK(h.TakeReplies(b).empty());
  CHECK(h.Call(a, testing::TokenRequest(1, wire::Method::kRelease, held)).status() ==
        TokenStatus::kReleaseOk);
  const std::vector<EngineReply> granted = h.TakeReplies(b);
  REQUIRE(granted.size() == 1);
  CHECK(granted[0].msgid == 7);
  CHECK(ReplyOf(granted[0]).tokens.size() == 2);
  h.Pass(1000);
  const std::vector<EngineReply> refused = h.TakeReplies(b);
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].msgid == 8);
  const AcquireAllReply reply = ReplyOf(refused[0]);
  CHECK(reply.refused_by == RefusedBy::kQueueTimeout);
  CHECK(reply.flow_id == 2);
}

TEST_CASE("an acquire_all as a notification does nothing") {
  EngineHarness h(Limits(), kTwoFlows);
  const ConnectionId a = h.Connect();
  const std::string request = All(7, Of({1, 2}));
  h.Send(a, "\x93\x02" + request.substr(3));
  CHECK(h.Call(a, testing::PlainRequest(8, wire::Method::kPing)).ErrorText() == "ok");
  CHECK(h.core().books().tokens().size() == 0);
}

TEST_CASE("a group of 64 with an id is one request, also after a crash") {
  std::vector<testing::RuleOptions> rules;
  std::vector<int64_t> flows;
  for (int64_t flow = 1; flow <= int64_t{kAcquireAllMax}; ++flow) {
    rules.push_back({.flow = flow, .count = 1});
    flows.push_back(flow);
  }
  EngineHarness h(Limits(), rules);
  AcquireAllParams params = Of(flows);
  params.request_id = 77;
  const auto ask = [&] {
    const ConnectionId a = h.Connect();
    h.Call(a, testing::HelloRequest(1, "app", "a"));
    return ReplyOf(h.Call(a, All(2, params)));
  };
  const AcquireAllReply first = ask();
  REQUIRE(first.tokens.size() == kAcquireAllMax);
  h.Restart();
  const AcquireAllReply second = ask();
  REQUIRE(second.tokens.size() == kAcquireAllMax);
  for (size_t i = 0; i < first.tokens.size(); ++i) {
    CHECK(first.tokens[i].token_id == second.tokens[i].token_id);
  }
  CHECK(h.core().books().tokens().size() == kAcquireAllMax);
}

}  // namespace
}  // namespace nowcalls::engine
