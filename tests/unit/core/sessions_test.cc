// Sessions: online, offline, back in time or not, and the walk over what the absent ones hold.
#include <doctest/doctest.h>

#include "core/books.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;
using testing::ReadLedger;

TEST_CASE("hello tells the session, who is online and what the client still holds") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const auto first = h.core().Hello(h.step(), {"app", "a", "@x"});
  REQUIRE(first.ok());
  CHECK(first->sessions_online == 1);
  CHECK(first->resumed_tokens == 0);
  h.Take(first->session, 1);
  h.Take(first->session, 1);
  h.Goodbye(first->session, UINT32_MAX, "@x");
  h.Hello("b");
  const auto again = h.core().Hello(h.step(), {"app", "a", "@y"});
  REQUIRE(again.ok());
  CHECK(again->session_id == first->session_id);
  CHECK(again->sessions_online == 2);
  CHECK(again->resumed_tokens == 2);
}

TEST_CASE("the core: the same client id in another namespace is another client") {
  CoreHarness h;
  const auto one = h.core().Hello(h.step(), {"one", "a", "@x"});
  const auto two = h.core().Hello(h.step(), {"two", "a", "@x"});
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  CHECK(one->session_id != two->session_id);
  CHECK(two->sessions_online == 1);
}

TEST_CASE("tokens of a client that stays away for clientOfflineTime are reclaimed, not before") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 3000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1, 2);
  h.Take(a, 1);
  h.Pass(500);
  h.Goodbye(a);
  h.NoticesText();
  h.Pass(2999);
  CHECK(h.NowCalls(1) == 3);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.Ended(1, EndReason::kClientOffline) == 2);
  CHECK(h.NoticesText() ==
        "client a of namespace app has been offline for 3000 ms: reclaimed 2 tokens\n");
  CHECK(h.core().books().sessions().size() == 0);
  const auto content = ReadLedger(&h.store());
  CHECK(content.tokens.empty());
  CHECK(content.sessions.empty());
}

TEST_CASE("a client that comes back in time keeps its tokens and can release them") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 3000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Goodbye(a);
  h.Pass(2999);
  CHECK(h.Hello("a") == a);
  h.Pass(100'000);
  CHECK(h.IsLive(token));
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
}

TEST_CASE("each absence counts anew") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 3000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  for (int i = 0; i < 5; ++i) {
    h.Goodbye(a);
    h.Pass(2000);
    REQUIRE(h.Hello("a") == a);
  }
  CHECK(h.NowCalls(1) == 1);
  h.Goodbye(a);
  h.Pass(3000);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("a session with two connections is online while either is open") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  REQUIRE(h.Hello("a") == a);
  h.Take(a, 1);
  CHECK(h.core().flows().name_space(h.core().books().sessions().at(a).name_space).sessions_online ==
        1);
  h.Goodbye(a);
  h.Pass(5000);
  CHECK(h.NowCalls(1) == 1);
  h.Goodbye(a);
  h.Pass(1000);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("a session counts its acquires that wait") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const TokenId token = h.Take(a, 1);
  for (uint32_t tag = 0; tag < 2; ++tag) {
    REQUIRE_FALSE(h.Ask(b, {.flow = FlowId{1}, .wait_ms = 1000}, tag).has_value());
  }
  CHECK(h.core().books().sessions().at(a).waiters == 0);
  CHECK(h.core().books().sessions().at(b).waiters == 2);
  REQUIRE(h.Release(a, token) == TokenStatus::kReleaseOk);
  CHECK(h.core().books().sessions().at(b).waiters == 1);
  h.Pass(1000);
  CHECK(h.core().books().sessions().at(b).waiters == 0);
}

TEST_CASE("a client id that comes online from a second host is told of once, not from the same") {
  CoreHarness h;
  const auto hello = [&h](std::string_view from) {
    const auto answer = h.core().Hello(h.step(), {"app", "worker", from});
    REQUIRE(answer.ok());
    return answer->session;
  };
  const SessionSlot worker = hello("@10.0.0.5:1");
  hello("@10.0.0.5:2");
  CHECK(h.core().TakeNotices().empty());
  hello("@10.0.0.6:1");
  const auto notices = h.core().TakeNotices();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].warning);
  CHECK(notices[0].topic == LogTopic::kPeer);
  CHECK(notices[0].text ==
        "client worker of namespace app: is online from 10.0.0.5 and now from 10.0.0.6 too; if "
        "these are two processes they share their tokens, so give each a client id of its own");
  hello("@10.0.0.7:1");
  CHECK(h.core().TakeNotices().empty());
  const uint32_t& hosts = h.core().books().sessions().at(worker).hosts;
  CHECK(hosts == 3);
  h.Goodbye(worker, UINT32_MAX, "@10.0.0.5:1");
  CHECK(hosts == 3);
  h.Goodbye(worker, UINT32_MAX, "@10.0.0.5:2");
  CHECK(hosts == 2);
  for (const char* const from : {"@10.0.0.6:1", "@10.0.0.7:1"}) {
    h.Goodbye(worker, UINT32_MAX, from);
  }
  // A client that moves is one process.
  hello("@10.0.0.8:1");
  CHECK(h.core().TakeNotices().empty());
  hello("@[::1]:1");
  CHECK(h.core().TakeNotices().size() == 1);
}

TEST_CASE("an exclusive hello is refused while the client id is online from another host") {
  CoreHarness h;
  const auto hello = [&h](std::string_view from, bool exclusive) {
    return h.core().Hello(h.step(), {"app", "worker", from, 0, exclusive}).status();
  };
  CHECK(hello("@10.0.0.5:1", true).ok());
  CHECK(hello("@10.0.0.5:2", true).ok());
  const Status refused = hello("@10.0.0.6:1", true);
  CHECK(refused.code() == StatusCode::kAlreadyExists);
  CHECK(refused.message() ==
        "hello: client_id worker is online from 10.0.0.5 already, and options.exclusive is set");
  CHECK(hello("@10.0.0.6:1", false).ok());
  const SessionSlot worker =
      h.core().books().sessions().FindNamed(h.core().flows().FindNamespace("app"), "worker", 0);
  CHECK(h.core().books().sessions().at(worker).connections == 3);
  // The first host has left, and the second is still there.
  h.Goodbye(worker, UINT32_MAX, "@10.0.0.5:1");
  h.Goodbye(worker, UINT32_MAX, "@10.0.0.5:2");
  CHECK(hello("@10.0.0.5:3", true).code() == StatusCode::kAlreadyExists);
  h.Goodbye(worker, UINT32_MAX, "@10.0.0.6:1");
  CHECK(hello("@10.0.0.5:3", true).ok());
}

TEST_CASE("in one session each token follows the clientOfflineTime of its own rule") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 1000},
           {.flow = 2, .resource_timeout_ms = 600'000, .client_offline_ms = 5000},
           {.flow = 3, .resource_timeout_ms = 600'000, .client_offline_ms = 3000}});
  const SessionSlot a = h.Hello("a");
  for (const int64_t flow : {2, 1, 3, 2}) h.Take(a, flow);
  h.Goodbye(a);
  h.Pass(999);
  CHECK(h.core().books().tokens().size() == 4);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().books().tokens().size() == 3);
  h.Pass(1999);
  CHECK(h.NowCalls(3) == 1);
  h.Pass(1);
  CHECK(h.NowCalls(3) == 0);
  CHECK(h.NowCalls(2) == 2);
  h.Pass(2000);
  CHECK(h.NowCalls(2) == 0);
  CHECK(h.core().books().sessions().size() == 0);
}

TEST_CASE("a session without tokens ends with its connection and was never in the ledger") {
  CoreHarness h;
  h.auto_commit = false;
  h.Goodbye(h.Hello("a"));
  CHECK(h.core().books().sessions().size() == 0);
  CHECK(h.core().flows().namespaces() == 0);
  CHECK(h.batch().empty());
}

TEST_CASE("a session whose last token ends while it is offline ends with it") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Goodbye(a);
  CHECK(h.Reclaim(token) == TokenStatus::kReleaseOk);
  CHECK(h.core().books().sessions().size() == 0);
  CHECK(ReadLedger(&h.store()).sessions.empty());
  h.Pass(200'000);  // Its timer is gone too.
}

TEST_CASE("a session that released everything stays while it is online") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  h.Release(a, h.Take(a, 1));
  CHECK(ReadLedger(&h.store()).sessions.size() == 1);
  h.Goodbye(a);
  CHECK(ReadLedger(&h.store()).sessions.empty());
}

TEST_CASE("the session of a connection without client id is never rejoined") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 1000}});
  const SessionSlot first = h.HelloUnnamed("@127.0.0.1:5");
  const SessionSlot second = h.HelloUnnamed("@127.0.0.1:5");
  CHECK(first != second);
  const TokenId token = h.Take(first, 1);
  h.Goodbye(first);
  const SessionSlot third = h.HelloUnnamed("@127.0.0.1:5");
  CHECK(third != first);
  CHECK(h.Release(third, token) == TokenStatus::kAlreadyRelease);
  h.Pass(1000);
  CHECK(h.NowCalls(1) == 0);
}

// Invariant 8: no step of the loop is unbounded.
TEST_CASE("5,000 tokens of one absent client are reclaimed in bounded steps that follow at once") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000, .client_offline_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 5000; ++i) h.Take(a, 1);
  h.Goodbye(a);
  h.NoticesText();
  h.Sleep(1000);
  int steps = 0;
  while (h.NowCalls(1) > 0) {
    REQUIRE(h.core().NextDeadline() <= h.now());
    const int64_t before = h.NowCalls(1);
    h.core().OnTime(h.step());
    h.Commit();
    CHECK(before - h.NowCalls(1) <= 1000);
    CHECK(before > h.NowCalls(1));
    CHECK(FindWrongBook(h.core()) == "");
    ++steps;
  }
  CHECK(steps >= 5);
  CHECK(steps <= 7);
  CHECK(h.core().books().sessions().size() == 0);
  CHECK(h.NoticesText() ==
        "client a of namespace app has been offline for 1000 ms: reclaimed 5000 tokens\n");
  CHECK(h.core().NextDeadline() == kNever);
}

TEST_CASE("a client that comes back in the middle of the walk keeps the rest") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000, .client_offline_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 3000; ++i) h.Take(a, 1);
  h.Goodbye(a);
  h.Sleep(1000);
  h.core().OnTime(h.step());
  h.Commit();
  const int64_t rest = h.NowCalls(1);
  CHECK(rest > 0);
  CHECK(rest < 3000);
  REQUIRE(h.Hello("a") == a);
  h.Pass(50'000);
  CHECK(h.NowCalls(1) == rest);
}

TEST_CASE("tokens that end elsewhere during a walk do not disturb it") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000, .client_offline_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  std::vector<TokenId> tokens;
  for (int i = 0; i < 2500; ++i) tokens.push_back(h.Take(a, 1));
  h.Goodbye(a);
  h.Sleep(1000);
  h.core().OnTime(h.step());
  h.Commit();
  for (const TokenId token : tokens) h.Reclaim(token);  // Also the one the walk stands at.
  CHECK(h.core().books().sessions().size() == 0);
  h.Pass(0);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().NextDeadline() == kNever);
}

TEST_CASE("many clients that leave at once are all looked at, a bounded number at a time") {
  auto options = testing::HarnessOptions();
  options.mass_expiry.percent = 0;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000, .client_offline_ms = 1000}});
  std::vector<SessionSlot> slots;
  for (int i = 0; i < 2000; ++i) {
    slots.push_back(h.Hello("c" + std::to_string(i)));
    h.Take(slots.back(), 1);
  }
  for (const SessionSlot slot : slots) h.Goodbye(slot);
  h.Sleep(1000);
  h.core().OnTime(h.step());
  h.Commit();
  CHECK(h.NowCalls(1) > 0);
  CHECK(h.NowCalls(1) < 2000);
  h.Pass(0);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().books().sessions().size() == 0);
}

}  // namespace
}  // namespace nowcalls::core
