// Acquires that wait, through connections: who hears what, and when.
#include <doctest/doctest.h>

#include "support/engine_harness.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using testing::EngineReply;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::TokenRequest;
using wire::Method;
using MsgIds = std::vector<uint32_t>;

std::string Waiting(uint32_t msgid, uint64_t wait_ms, uint64_t request_id = 0) {
  wire::OutputBuffer out;
  wire::EncodeAcquireRequest(
      msgid, {.flow_id = 1, .count = 1, .wait_ms = wait_ms, .request_id = request_id}, &out);
  return std::string(out.view());
}

std::string Cancel(uint32_t msgid, uint64_t request_id) {
  wire::OutputBuffer out;
  wire::EncodeCancelRequest(msgid, request_id, &out);
  return std::string(out.view());
}

std::vector<testing::RuleOptions> OneCall() {
  return {{.flow = 1, .count = 1, .resource_timeout_ms = 60'000, .client_offline_ms = 1000}};
}

TEST_CASE("a waiter hears of its grant when the grant is durable, other requests go on meanwhile") {
  EngineHarness h({}, OneCall());
  const ConnectionId a = h.Connect();
  const ConnectionId b = h.Connect("127.0.0.1:2");
  const uint64_t token = h.Take(a);
  h.Send(b, Waiting(1, 5000) + PlainRequest(2, Method::kPing));
  h.Settle();
  CHECK(h.TakeIds(b) == MsgIds{2});
  h.Send(a, TokenRequest(3, Method::kRelease, token));
  h.Turn();
  CHECK(h.TakeIds(b).empty());
  REQUIRE(h.BeginCommit());
  h.Turn();
  CHECK(h.TakeIds(b).empty());
  h.FinishCommit();
  h.Turn();
  const auto replies = h.TakeReplies(b);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].msgid == 1);
  CHECK(replies[0].acquire().status == TokenStatus::kOk);
  CHECK(replies[0].acquire().now_calls == 1);
}

TEST_CASE("a wait that is over for nothing is answered with the limit") {
  EngineHarness h({}, OneCall());
  const ConnectionId a = h.Connect();
  h.Take(a);
  h.Send(a, Waiting(1, 300));
  h.Pass(250);
  CHECK(h.TakeIds(a).empty());
  h.Pass(50);
  const auto replies = h.TakeReplies(a);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].acquire().status == TokenStatus::kBlocked);
  CHECK(replies[0].acquire().refused_by == RefusedBy::kQueueTimeout);
  CHECK(replies[0].acquire().level == 1);
}

TEST_CASE("waiting does not count as a request in flight, so a client can release and cancel") {
  Limits limits;
  limits.requests_in_flight_max = 2;
  EngineHarness h(limits, OneCall());
  const ConnectionId a = h.Connect();
  h.Take(a);
  std::string bytes;
  for (uint32_t id = 1; id <= 10; ++id) bytes += Waiting(id, 5000, 100 + id);
  h.Send(a, bytes);
  h.Settle();
  CHECK(h.driver().socket(a).reading);
  CHECK(h.core().wait_queues().size() == 10);
  const EngineReply cancelled = [&] {
    h.Send(a, Cancel(50, 103));
    h.Settle();
    auto replies = h.TakeReplies(a);
    REQUIRE(replies.size() == 2);
    CHECK(replies[0].msgid + replies[1].msgid == 53);
    return replies[0].msgid == 3 ? replies[0] : replies[1];
  }();
  CHECK(cancelled.acquire().refused_by == RefusedBy::kCancelled);
  CHECK(h.core().wait_queues().size() == 9);
}

TEST_CASE("a connection that closes leaves the queue, and the next one is served") {
  EngineHarness h({}, OneCall());
  const ConnectionId a = h.Connect();
  const uint64_t token = h.Take(a);
  const ConnectionId b = h.Connect("127.0.0.1:2");
  const ConnectionId c = h.Connect("127.0.0.1:3");
  const ConnectionId d = h.Connect("127.0.0.1:4");
  h.Send(b, Waiting(1, 5000));
  h.Send(c, Waiting(1, 5000));
  h.Send(d, Waiting(1, 5000));
  h.Settle();
  SUBCASE("by being cut") { h.Disconnect(b); }
  SUBCASE("by its end of the stream") { h.engine().OnEndOfInput(b, h.now()); }
  SUBCASE("by an error of its own") { h.Send(b, "\xff"); }
  h.Settle();
  CHECK(h.core().wait_queues().size() == 2);
  CHECK(h.Call(a, TokenRequest(2, Method::kRelease, token)).status() == TokenStatus::kReleaseOk);
  h.Settle();
  CHECK(h.TakeIds(c) == MsgIds{1});
  CHECK(h.core().wait_queues().size() == 1);
}

TEST_CASE("a client that comes back asks again and gets the token it was granted unheard") {
  EngineHarness h({}, OneCall());
  const ConnectionId a = h.Connect();
  h.Send(a, HelloRequest(1, "default", "a") + Waiting(2, 0, 77));
  REQUIRE(h.BeginCommit());
  h.Disconnect(a);  // The answer is lost.
  h.FinishCommit();
  h.Settle();
  const ConnectionId again = h.Connect();
  h.Call(again, HelloRequest(1, "default", "a"));
  const wire::AcquireReply reply = h.Call(again, Waiting(2, 0, 77)).acquire();
  CHECK(reply.status == TokenStatus::kOk);
  CHECK(h.core().books().tokens().size() == 1);
  CHECK(h.Call(again, TokenRequest(3, Method::kRelease, reply.token_id)).status() ==
        TokenStatus::kReleaseOk);
}

TEST_CASE("the answer to a request asked again waits for the token's record like the first") {
  EngineHarness h({}, OneCall());
  const ConnectionId a = h.Connect();
  h.Send(a, Waiting(1, 0, 77));
  REQUIRE(h.BeginCommit());
  h.Send(a, Waiting(2, 0, 77));
  h.Turn();
  CHECK(h.TakeIds(a).empty());
  h.FinishCommit();
  h.Turn();
  const auto replies = h.TakeReplies(a);
  REQUIRE(replies.size() == 2);
  CHECK(replies[0].acquire().token_id == replies[1].acquire().token_id);
}

TEST_CASE("cancel before any acquire has nothing to end, and is remembered, also without hello") {
  EngineHarness h;
  const ConnectionId a = h.Connect();
  CHECK(h.Call(a, Cancel(1, 7)).status() == TokenStatus::kAlreadyRelease);
  const wire::AcquireReply late = h.Call(a, Waiting(2, 0, 7)).acquire();
  CHECK(late.status == TokenStatus::kBlocked);
  CHECK(late.refused_by == RefusedBy::kCancelled);
}

TEST_CASE("who waits when the server ends is told NOT_AVAILABLE") {
  EngineHarness h({}, OneCall());
  const ConnectionId a = h.Connect();
  h.Take(a);
  h.Send(a, Waiting(1, 5000));
  h.Settle();
  h.engine().BeginShutdown(h.now());
  h.Settle();
  const auto replies = h.TakeReplies(a);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].acquire().status == TokenStatus::kNotAvailable);
  CHECK(h.engine().idle());
}

TEST_CASE("a flow shows who waits and since when") {
  EngineHarness h({}, OneCall());
  const ConnectionId a = h.Connect();
  h.Take(a);
  h.Send(a, Waiting(1, 5000));
  const int64_t since_ms = h.now().ms;
  h.Pass(100);
  h.Send(a, Waiting(2, 5000));
  wire::OutputBuffer out;
  wire::EncodeFlowRequest(3, {1}, &out);
  const auto row = wire::DecodeFlowRow(h.Call(a, out.view()).result);
  REQUIRE(row.ok());
  CHECK(row->waiters == 2);
  CHECK(row->waiting_since_ms == since_ms);
  CHECK(row->counters->queued == 2);
}

TEST_CASE("a level that a source of rules raises is answered to the waiter in the same turn") {
  EngineHarness h({}, OneCall());
  const ConnectionId a = h.Connect();
  h.Take(a);
  h.Send(a, Waiting(1, 5000));
  h.Settle();
  RuleSink* sink = h.engine().RulesAt(h.now());
  const auto set = sink->Check("rpc", "default", testing::RulesJson({{.flow = 1, .count = 2}}));
  REQUIRE(set.ok());
  REQUIRE(sink->Replace({*set}).ToString() == "ok");
  h.Turn();
  CHECK(h.TakeIds(a).empty());
  REQUIRE(h.BeginCommit());
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(a) == MsgIds{1});
}

// Remembers when the last batch was sealed, and when the youngest token was issued.
struct Times : ledger::EntityVisitor {
  Status OnEntity(const ledger::Entity& entity) override {
    if (const auto* seal = ledger::As<ledger::Seal>(entity)) sealed_ms = seal->ledger_ms;
    const auto* const token = ledger::As<ledger::Token>(entity);
    if (token != nullptr) issued_ms = std::max(issued_ms, token->issued_ms);
    return {};
  }

  int64_t sealed_ms = 0;
  int64_t issued_ms = 0;
};

// A driver may have read its clock before something that took its time within the turn.
TEST_CASE("a batch is not sealed before what is in it, whichever time its driver reads") {
  Limits limits;
  limits.output_bytes_max = 10;
  EngineHarness h(limits, {{.flow = 1, .count = 3, .resource_timeout_ms = 60'000}});
  wire::OutputBuffer all;
  wire::EncodeAcquireRequest(1, {.flow_id = 1, .count = 3, .wait_ms = 5000}, &all);
  const ConnectionId stuck = h.Connect();
  const ConnectionId holder = h.Connect("127.0.0.1:2");
  const ConnectionId next = h.Connect("127.0.0.1:3");
  h.Take(holder, 1);
  h.Send(stuck, all.view());
  h.Send(next, Waiting(1, 5000));
  h.Settle();
  REQUIRE(h.core().wait_queues().size() == 2);
  h.driver().socket(stuck).stuck = true;
  h.Send(stuck, PlainRequest(9, Method::kPing) + PlainRequest(10, Method::kPing));
  h.engine().ResumeInput(h.now() + 5);
  h.engine().TurnEnd();
  REQUIRE(h.driver().socket(stuck).closed);
  REQUIRE(h.BeginCommit());
  h.FinishCommit();
  Times times;
  REQUIRE(h.store().Load(&times).ok());
  CHECK(times.issued_ms == h.now().ms + 5);
  CHECK(times.sealed_ms >= times.issued_ms);
}

// Found by a peer that does not read, while the answers of others are being flushed.
TEST_CASE("a connection that is closed while answers leave may end the waits of others") {
  Limits limits;
  limits.output_bytes_max = 10;
  limits.tokens_max = 2;
  EngineHarness h(limits, {{.flow = 1, .count = 3, .resource_timeout_ms = 60'000},
                           {.flow = 2, .count = 3, .resource_timeout_ms = 60'000}});
  const auto waiting = [](int64_t count) {
    wire::OutputBuffer out;
    wire::EncodeAcquireRequest(1, {.flow_id = 1, .count = count, .wait_ms = 5000}, &out);
    return std::string(out.view());
  };
  const ConnectionId stuck = h.Connect();
  const ConnectionId holder = h.Connect("127.0.0.1:2");
  h.Take(holder, 1);
  h.Send(stuck, waiting(3));
  std::vector<ConnectionId> crowd;
  for (int i = 0; i < 40; ++i) {
    crowd.push_back(h.Connect("127.0.0.1:" + std::to_string(100 + i)));
    h.Send(crowd.back(), waiting(1));
  }
  h.Settle();
  h.Take(holder, 2);
  REQUIRE(h.core().wait_queues().size() == 41);
  h.driver().socket(stuck).stuck = true;
  h.Send(stuck, PlainRequest(9, Method::kPing) + PlainRequest(10, Method::kPing));
  h.Turn();
  CHECK(h.driver().socket(stuck).closed);
  for (const ConnectionId id : crowd) {
    const auto replies = h.TakeReplies(id);
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].acquire().refused_by == RefusedBy::kTokenLimit);
  }
}

TEST_CASE("a hello that makes room for 3,000 waiters lets them go over several turns and batches") {
  Limits limits;
  limits.batch_bytes_max = 100'000;
  std::vector<testing::RuleOptions> rules;
  for (int64_t flow = 1; flow <= 6; ++flow) {
    rules.push_back({.flow = flow,
                     .count = 500,
                     .avg_local = true,
                     .resource_timeout_ms = 600'000,
                     .client_offline_ms = 600'000});
  }
  EngineHarness h(limits, rules);
  const ConnectionId holder = h.Connect();
  std::vector<ConnectionId> crowd;
  for (int64_t flow = 1; flow <= 6; ++flow) {
    REQUIRE(h.Call(holder, testing::AcquireRequest(1, flow, 500)).acquire().status ==
            TokenStatus::kOk);
    crowd.push_back(h.Connect("127.0.0.1:2"));
    // In a namespace of their own, so that they do not raise the level.
    h.Call(crowd.back(), HelloRequest(1, "others", "c" + std::to_string(flow)));
    std::string requests;
    for (uint32_t id = 1; id <= 500; ++id) {
      wire::OutputBuffer out;
      wire::EncodeAcquireRequest(id, {.flow_id = flow, .count = 1, .wait_ms = 600'000}, &out);
      requests += out.view();
    }
    h.Send(crowd.back(), requests);
    h.Settle();
  }
  REQUIRE(h.core().wait_queues().size() == 3000);
  const size_t before = h.core().books().tokens().size();
  h.Send(h.Connect("127.0.0.1:3"), HelloRequest(1, "default", "new"));
  CHECK(h.core().books().tokens().size() - before <= 1000);
  CHECK(h.engine().NextDeadline() <= h.now());
  h.Turn();
  h.Turn();
  h.Turn();
  // The batch is full by then, and who waits for more stays where he is.
  CHECK(h.core().wait_queues().size() > 0);
  h.Settle();
  CHECK(h.core().wait_queues().size() == 0);
  CHECK(h.core().books().tokens().size() - before == 3000);
  for (const ConnectionId id : crowd) CHECK(h.TakeIds(id) == testing::Ids(1, 500));
}

}  // namespace
}  // namespace nowcalls::engine
