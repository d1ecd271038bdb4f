// Invariant 1: no reply leaves before the batch it depends on is durable.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/prng.h"
#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::ReadLedger;
using testing::TokenRequest;
using wire::Method;
using MsgIds = std::vector<uint32_t>;

TEST_CASE("the reply to a granted acquire leaves when its batch is durable, not before") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(7, 1));
  h.Turn();
  CHECK(h.driver().socket(c).written.empty());
  REQUIRE(h.BeginCommit());
  h.Turn();
  CHECK(h.driver().socket(c).written.empty());
  h.FinishCommit();
  h.Turn();
  const auto replies = h.TakeReplies(c);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].msgid == 7);
  const wire::AcquireReply reply = replies[0].acquire();
  CHECK(reply.status == TokenStatus::kOk);
  const auto content = ReadLedger(&h.store());
  REQUIRE(content.tokens.size() == 1);
  CHECK(content.tokens[0].key.id.value == reply.token_id);
  CHECK(content.tokens[0].fence.value == reply.fence);
}

TEST_CASE("releases, keeps, reclaims and rule loads wait for their batch too") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const uint64_t released = h.Take(c);
  const uint64_t kept = h.Take(c);
  const uint64_t reclaimed = h.Take(c);
  h.Sleep(10);
  wire::OutputBuffer out;
  wire::EncodeReclaimRequest(3, {reclaimed, "test"}, &out);
  wire::EncodeRulesLoadRequest(4, "other", testing::RulesJson({{.flow = 9}}), &out);
  h.Send(c, TokenRequest(1, Method::kRelease, released) + TokenRequest(2, Method::kKeep, kept) +
                std::string(out.view()));
  h.Turn();
  CHECK(h.driver().socket(c).written.empty());
  REQUIRE(h.BeginCommit());
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(c) == MsgIds{1, 2, 3, 4});
}

TEST_CASE("a refusal leaves at the end of the turn while a commit is in flight") {
  EngineHarness h({}, {{.flow = 1, .count = 1}});
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(1, 1));
  h.Turn();
  REQUIRE(h.BeginCommit());
  h.Send(c, AcquireRequest(2, 1));   // Blocked by the level.
  h.Send(c, AcquireRequest(3, 99));  // No such rule.
  h.Send(c, AcquireRequest(4, 1, 0));
  h.Send(c, PlainRequest(5, Method::kPing));
  h.Send(c, TokenRequest(6, Method::kAcquire, 1));  // Parameters are missing.
  CHECK(h.driver().socket(c).written.empty());
  h.Turn();
  const auto replies = h.TakeReplies(c);
  REQUIRE(replies.size() == 5);
  CHECK(replies[0].acquire().status == TokenStatus::kBlocked);
  CHECK(replies[0].acquire().refused_by == RefusedBy::kLevel);
  CHECK(replies[1].acquire().status == TokenStatus::kNoRuleExists);
  CHECK(replies[2].acquire().status == TokenStatus::kBadRequest);
  CHECK(replies[3].number() == static_cast<uint64_t>(h.now().ms));
  CHECK(replies[4].ErrorText() == "BAD_PARAMS: acquire: count is missing");
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(c) == MsgIds{1});
}

TEST_CASE("ALREADY_RELEASE waits while the release it rests on is in flight") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const uint64_t token = h.Take(c);
  h.Send(c, TokenRequest(1, Method::kRelease, token));
  h.Turn();
  REQUIRE(h.BeginCommit());
  h.Send(c, TokenRequest(2, Method::kRelease, token));
  h.Send(c, TokenRequest(3, Method::kKeep, token));
  h.Turn();
  CHECK(h.driver().socket(c).written.empty());
  h.FinishCommit();
  h.Turn();
  const auto replies = h.TakeReplies(c);
  REQUIRE(replies.size() == 3);
  CHECK(replies[0].status() == TokenStatus::kReleaseOk);
  CHECK(replies[1].status() == TokenStatus::kAlreadyRelease);
  CHECK(replies[2].keep().status == TokenStatus::kAlreadyRelease);
}

TEST_CASE("ALREADY_RELEASE waits also for the open batch, and leaves at once when nothing waits") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const uint64_t token = h.Take(c);
  h.Send(c, TokenRequest(1, Method::kRelease, token) + TokenRequest(2, Method::kRelease, token));
  h.Turn();
  CHECK(h.driver().socket(c).written.empty());
  h.Settle();
  CHECK(h.TakeIds(c) == MsgIds{1, 2});
  h.Send(c, TokenRequest(3, Method::kRelease, token));
  h.Turn();
  CHECK(h.TakeIds(c) == MsgIds{3});
}

TEST_CASE("a listing waits for what it shows") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const ConnectionId reader = h.Connect("127.0.0.1:2");
  h.Send(c, AcquireRequest(1, 1));
  wire::OutputBuffer out;
  wire::EncodeTokensRequest(2, {}, &out);
  wire::EncodeFlowRequest(3, {1}, &out);
  wire::EncodePageRequest(4, Method::kFlows, {}, &out);
  wire::EncodePageRequest(5, Method::kSessions, {}, &out);
  wire::EncodeRulesListRequest(6, {}, &out);
  h.Send(reader, out.view());
  h.Turn();
  CHECK(h.driver().socket(reader).written.empty());
  h.Settle();
  CHECK(h.TakeIds(reader) == MsgIds{2, 3, 4, 5, 6});
}

TEST_CASE("a hello waits for what its count of resumed tokens rests on") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Call(c, HelloRequest(1, "default", "a"));
  h.Send(c, AcquireRequest(2, 1));
  const ConnectionId other = h.Connect("127.0.0.1:2");
  h.Send(other, HelloRequest(3, "default", "a"));
  h.Turn();
  CHECK(h.driver().socket(other).written.empty());
  h.Settle();
  const auto replies = h.TakeReplies(other);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].hello().resumed_tokens == 1);
}

TEST_CASE("while one batch is committed the next one fills, and its replies wait for itself") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const ConnectionId d = h.Connect("127.0.0.1:2");
  h.Send(c, AcquireRequest(1, 1));
  h.Turn();
  REQUIRE(h.BeginCommit());
  h.Send(c, AcquireRequest(2, 1));
  h.Send(d, AcquireRequest(3, 1));
  h.Turn();
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(c) == MsgIds{1});
  CHECK(h.TakeIds(d).empty());
  REQUIRE(h.BeginCommit());
  h.Send(c, AcquireRequest(4, 1));
  h.Turn();
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(c) == MsgIds{2});
  CHECK(h.TakeIds(d) == MsgIds{3});
  h.Settle();
  CHECK(h.TakeIds(c) == MsgIds{4});
}

TEST_CASE("one batch is with the driver, and all that comes meanwhile is the next one") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(1, 1));
  REQUIRE(h.BeginCommit());
  h.Send(c, AcquireRequest(2, 1));
  h.Turn();
  CHECK_FALSE(h.BeginCommit());
  h.Send(c, AcquireRequest(3, 1));
  h.Turn();
  CHECK_FALSE(h.BeginCommit());
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(c) == MsgIds{1});
  REQUIRE(h.BeginCommit());
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(c) == MsgIds{2, 3});
  CHECK(ReadLedger(&h.store()).seal->batch_number == h.core().books().batch_number());
}

TEST_CASE("a sealed batch stays as it is, whatever is asked while it is being committed") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const uint64_t token = h.Take(c);
  h.Send(c, AcquireRequest(1, 1));
  REQUIRE(h.BeginCommit());
  const ledger::CommitBatch& sealed = *h.driver().commit;
  const std::string bytes(sealed.bytes());
  const uint64_t number = sealed.number();
  h.Send(c, AcquireRequest(2, 1) + TokenRequest(3, Method::kRelease, token));
  h.Turn();
  h.Sleep(60'000);
  h.Turn();
  CHECK_FALSE(h.BeginCommit());
  CHECK(&sealed == h.driver().commit);
  CHECK((sealed.bytes() == bytes));
  CHECK(sealed.number() == number);
}

TEST_CASE("a batch that is full takes nothing more while the one before it is committed") {
  Limits limits;
  limits.batch_bytes_max = 100;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(1, 1));
  REQUIRE(h.BeginCommit());
  h.Send(c, AcquireRequest(2, 1) + AcquireRequest(3, 1) + AcquireRequest(4, 1));
  h.Turn();
  CHECK(h.engine().input_held());  // The last one is one too many.
  h.FinishCommit();
  REQUIRE(h.BeginCommit());
  CHECK(h.core().books().tokens().size() == 3);
  h.Settle();
  CHECK(h.TakeIds(c) == MsgIds{1, 2, 3, 4});
}

// Whatever the disk is doing when a request comes, its answer leaves with its own batch.
TEST_CASE("in random lives an answered grant is in the ledger and an answered release is not") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Prng prng(seed);
    EngineHarness h;
    const ConnectionId c = h.Connect();
    std::vector<uint64_t> held;
    std::map<uint32_t, uint64_t> releasing;
    uint32_t msgid = 0;
    for (int step = 0; step < 200; ++step) {
      switch (prng.Below(6)) {
        case 0:
        case 1: h.Send(c, AcquireRequest(++msgid, 1)); break;
        case 2: {
          if (held.empty()) break;
          releasing[++msgid] = held.back();
          h.Send(c, TokenRequest(msgid, Method::kRelease, held.back()));
          held.pop_back();
          break;
        }
        case 3: h.BeginCommit(); break;
        case 4:
          if (h.driver().commit != nullptr) h.FinishCommit();
          break;
        default: h.Turn(); break;
      }
      std::set<uint64_t> stored;
      for (const auto& token : ReadLedger(&h.store()).tokens) stored.insert(token.key.id.value);
      for (const auto& reply : h.TakeReplies(c)) {
        const auto released = releasing.find(reply.msgid);
        if (released == releasing.end()) {
          held.push_back(reply.acquire().token_id);
          REQUIRE(stored.contains(held.back()));
        } else {
          REQUIRE(reply.status() == TokenStatus::kReleaseOk);
          REQUIRE_FALSE(stored.contains(released->second));
        }
      }
    }
    h.Settle();
    REQUIRE(ReadLedger(&h.store()).seal->live_tokens == h.core().books().tokens().size());
  }
}

TEST_CASE("a reply that rests on the batch in flight leaves with it, not with the next") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const uint64_t token = h.Take(c);
  h.Send(c, TokenRequest(1, Method::kRelease, token));
  REQUIRE(h.BeginCommit());
  h.Send(c, TokenRequest(2, Method::kRelease, token));  // Rests on the batch in flight.
  h.Send(c, AcquireRequest(3, 1));                      // Opens the next batch.
  h.Send(c, TokenRequest(4, Method::kRelease, token));  // Waits for the later one, to be safe.
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(c) == MsgIds{1, 2});
  h.Settle();
  CHECK(h.TakeIds(c) == MsgIds{3, 4});
}

TEST_CASE("a crash before the commit loses what nobody was told of") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Call(c, HelloRequest(1, "default", "a"));
  const uint64_t told = h.Take(c);
  h.Send(c, AcquireRequest(2, 1));
  h.Turn();
  REQUIRE(h.BeginCommit());
  h.Turn();
  CHECK(h.TakeIds(c).empty());
  h.Restart();
  const ConnectionId again = h.Connect();
  CHECK(h.Call(again, HelloRequest(1, "default", "a")).hello().resumed_tokens == 1);
  CHECK(h.Call(again, TokenRequest(2, Method::kRelease, told)).status() == TokenStatus::kReleaseOk);
}

TEST_CASE("a session's number may come again behind a kill only if it never held a token") {
  EngineHarness h;
  const auto hello = [&](std::string_view client_id) {
    return h.Call(h.Connect(), HelloRequest(1, "default", client_id)).hello().session;
  };
  const uint64_t empty = hello("a");
  h.Restart();
  CHECK(hello("b") == empty);
  const ConnectionId c = h.Connect();
  const uint64_t holds = h.Call(c, HelloRequest(1, "default", "c")).hello().session;
  h.Take(c);
  h.Restart();
  CHECK(h.core().books().next_fence() > holds + 1);
  CHECK(hello("d") > holds);
}

TEST_CASE("the first commit marks the clock of this boot although nothing else is to be written") {
  EngineHarness h({}, {});
  CHECK_FALSE(h.engine().idle());
  REQUIRE(h.BeginCommit());
  CHECK_FALSE(h.engine().idle());
  h.FinishCommit();
  CHECK(h.engine().idle());
  CHECK(h.store().rows(ledger::Family::kMeta).contains("clock"));
  CHECK(ReadLedger(&h.store()).seal->batch_number == 1);
  CHECK_FALSE(h.BeginCommit());
}

TEST_CASE("the clock is marked at most once a second, and only when something is written") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const auto clock = [&] { return h.store().rows(ledger::Family::kMeta).find("clock")->second; };
  const std::string first = clock();
  h.Sleep(999);
  h.Take(c);
  CHECK(clock() == first);
  h.Sleep(1);
  CHECK(clock() == first);
  h.Take(c);
  CHECK(clock() != first);
}

TEST_CASE("the engine is idle when nothing waits: no records, no commit, no unsent reply") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  CHECK(h.engine().idle());
  h.Send(c, PlainRequest(1, Method::kPing));
  CHECK_FALSE(h.engine().idle());  // A reply is not sent yet.
  h.Turn();
  CHECK(h.engine().idle());
  h.Send(c, AcquireRequest(2, 1));
  h.Turn();
  CHECK_FALSE(h.engine().idle());  // Records are open.
  REQUIRE(h.BeginCommit());
  CHECK_FALSE(h.engine().idle());  // A commit is in flight.
  h.FinishCommit();
  CHECK_FALSE(h.engine().idle());  // Its reply is not sent yet.
  h.Turn();
  CHECK(h.engine().idle());
}

TEST_CASE("the same calls give the same bytes on every connection") {
  std::string outputs[2];
  for (std::string& output : outputs) {
    EngineHarness h;
    const ConnectionId c = h.Connect("127.0.0.1:1");
    const ConnectionId d = h.Connect("127.0.0.1:2");
    h.Send(c, HelloRequest(1, "default", "a"));
    for (uint32_t i = 2; i < 200; ++i) {
      h.Send(i % 3 == 0 ? c : d, AcquireRequest(i, 1, i % 7));
      if (i % 5 == 0) h.Settle();
      h.Sleep(i % 11);
    }
    h.Settle();
    output = h.driver().socket(c).written + "|" + h.driver().socket(d).written;
  }
  CHECK(outputs[0].size() > 2000);
  CHECK((outputs[0] == outputs[1]));
}

TEST_CASE("an idle server marks the clock each minute, and one that ends marks it at the end") {
  EngineHarness h;
  h.Settle();
  const auto marked_ms = [&] { return ReadLedger(&h.store()).clock.value().ledger_ms; };
  const int64_t started_ms = marked_ms();
  CHECK(started_ms == h.now().ms);
  h.Pass(59'950);
  CHECK(marked_ms() == started_ms);
  h.Pass(50);
  CHECK(marked_ms() == h.now().ms);
  h.Pass(15'000);
  CHECK(marked_ms() == h.now().ms - 15'000);
  h.engine().BeginShutdown(h.now());
  CHECK_FALSE(h.engine().idle());
  h.Settle();
  CHECK(h.engine().idle());
  CHECK(marked_ms() == h.now().ms);
}

TEST_CASE("the last batch marks the clock, however short after the last mark and after others") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Take(c);
  h.Sleep(10);
  h.Send(c, AcquireRequest(1, 1));
  REQUIRE(h.BeginCommit());  // In flight while the server is told to end.
  h.Sleep(10);
  h.engine().BeginShutdown(h.now());
  h.FinishCommit();
  h.Settle();
  CHECK(h.engine().idle());
  CHECK(ReadLedger(&h.store()).clock.value().ledger_ms == h.now().ms);
}

}  // namespace
}  // namespace nowcalls::engine
