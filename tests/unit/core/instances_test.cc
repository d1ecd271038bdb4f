// Processes of one client id, which name themselves by instances: each is a session of its own.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "core/books.h"
#include "core/grants/waiter_list.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;
using testing::ReadLedger;

Result<HelloAnswer> HelloOf(CoreHarness* h, uint64_t instance,
                            std::string_view from = "@10.0.0.5:1", bool exclusive = false) {
  return h->core().Hello(h->step(), {"app", "worker", from, instance, exclusive});
}

SessionSlot SlotOf(CoreHarness* h, uint64_t instance, std::string_view from = "@10.0.0.5:1") {
  const auto hello = HelloOf(h, instance, from);
  REQUIRE(hello.ok());
  return hello->session;
}

// All connections of the instance.
void Leave(CoreHarness* h, uint64_t instance) {
  const SessionTable& sessions = h->core().books().sessions();
  const NamespaceSlot space = h->core().flows().FindNamespace("app");
  for (SessionSlot slot; (slot = sessions.FindNamed(space, "worker", instance)) != kNoSession &&
                         sessions.at(slot).online();) {
    h->Goodbye(slot, UINT32_MAX, "@10.0.0.5:1");
  }
}

std::string ReclaimedOf(CoreHarness* h, std::optional<uint64_t> instance) {
  const ReclaimAnswer answer =
      h->core().ReclaimClient(h->step(), {"app", "worker", instance}, 100, {"admin", "hung"});
  return std::to_string(answer.reclaimed) + (answer.more ? " more" : "");
}

TEST_CASE("two instances of a client id share no token and no request id") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot one = SlotOf(&h, 1);
  const SessionSlot two = SlotOf(&h, 2);
  REQUIRE(one != two);
  const auto first = h.Ask(one, {.flow = FlowId{1}, .request_id = 7}, 1);
  const auto second = h.Ask(two, {.flow = FlowId{1}, .request_id = 7}, 2);
  CHECK(first->token_id != second->token_id);
  CHECK(h.NowCalls(1) == 2);
  CHECK(h.Release(two, first->token_id) == TokenStatus::kAlreadyRelease);
  CHECK(h.Keep(two, first->token_id).status == TokenStatus::kAlreadyRelease);
  CHECK(h.Cancel(two, 7) == TokenStatus::kReleaseOk);
  CHECK(h.IsLive(first->token_id));
  CHECK(FindWrongBook(h.core()) == "");
}

TEST_CASE("tokens of a process that died end after clientOfflineTime though another came in") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 2000}});
  const SessionSlot dead = SlotOf(&h, 1);
  const TokenId token = h.Take(dead, 1);
  h.Goodbye(dead, UINT32_MAX, "@10.0.0.5:1");
  h.Pass(1);
  const auto next = HelloOf(&h, 2);
  CHECK(next->resumed_tokens == 0);
  h.Pass(1998);
  CHECK(h.IsLive(token));
  h.Pass(1);
  CHECK_FALSE(h.IsLive(token));
  CHECK(h.Ended(1, EndReason::kClientOffline) == 1);
  CHECK(h.core().books().sessions().size() == 1);
}

TEST_CASE("who takes back from a client id pays for each of its instances that is looked at") {
  constexpr uint64_t kInstances = 100;
  CoreHarness h;
  h.Rules({{.flow = 1}});
  for (uint64_t instance = 1; instance <= kInstances; ++instance) SlotOf(&h, instance);
  const uint64_t before = h.core().books().looks();
  CHECK(ReclaimedOf(&h, std::nullopt) == "0");
  CHECK(h.core().books().looks() - before >= kInstances);
}

TEST_CASE("an instance that reconnects has its tokens again, also after a restart") {
  CoreHarness h;
  h.Rules({{.flow = 1, .client_offline_ms = 5000}});
  const SessionSlot one = SlotOf(&h, 1);
  const TokenId token = h.Take(one, 1);
  h.Take(SlotOf(&h, 0), 1, 2);
  h.Goodbye(one, UINT32_MAX, "@10.0.0.5:1");
  CHECK(HelloOf(&h, 1, "@10.0.0.6:1")->resumed_tokens == 1);
  h.Commit();
  h.Restart();
  CHECK(HelloOf(&h, 2)->resumed_tokens == 0);
  const auto back = HelloOf(&h, 1);
  CHECK(back->resumed_tokens == 1);
  CHECK(h.Release(back->session, token) == TokenStatus::kReleaseOk);
  const auto without = HelloOf(&h, 0);
  CHECK(without->resumed_tokens == 1);
  CHECK(h.NowCalls(1) == 2);
}

TEST_CASE("each instance online counts for the level of AVG_LOCAL") {
  CoreHarness h;
  const SessionSlot one = SlotOf(&h, 1);
  CHECK(HelloOf(&h, 1)->sessions_online == 1);
  CHECK(HelloOf(&h, 2)->sessions_online == 2);
  h.Goodbye(one, UINT32_MAX, "@10.0.0.5:1");
  CHECK(HelloOf(&h, 2)->sessions_online == 2);
  h.Goodbye(one, UINT32_MAX, "@10.0.0.5:1");
  CHECK(HelloOf(&h, 2)->sessions_online == 1);
}

TEST_CASE("an exclusive hello is refused while another instance is online, from wherever") {
  CoreHarness h;
  const SessionSlot one = SlotOf(&h, 1);
  const Status refused = HelloOf(&h, 2, "@10.0.0.5:9", true).status();
  CHECK(refused.code() == StatusCode::kAlreadyExists);
  CHECK(refused.message() ==
        "hello: client_id worker is online as another instance, and options.exclusive is set");
  CHECK(HelloOf(&h, 0, "@10.0.0.5:9", true).status().code() == StatusCode::kAlreadyExists);
  CHECK(h.core().books().sessions().size() == 1);
  SUBCASE("a reconnect of the instance is not, though its old connection is open") {
    CHECK(HelloOf(&h, 1, "@10.0.0.6:1", true).ok());
  }
  SUBCASE("the next one may come when the first is gone") {
    h.Goodbye(one, UINT32_MAX, "@10.0.0.5:1");
    CHECK(HelloOf(&h, 2, "@10.0.0.5:9", true).ok());
  }
  SUBCASE("neither may come back while both are online") {
    CHECK(HelloOf(&h, 2, "@10.0.0.5:9").ok());
    CHECK(HelloOf(&h, 1, "@10.0.0.5:10", true).status().code() == StatusCode::kAlreadyExists);
  }
}

TEST_CASE("a second instance online is told once, a reconnect of one is not") {
  CoreHarness h;
  const auto told = [&h] { return !h.NoticesText().empty(); };
  SlotOf(&h, 1);
  SlotOf(&h, 1);
  CHECK_FALSE(told());
  const SessionSlot two = SlotOf(&h, 2);
  CHECK(h.NoticesText() ==
        "client worker of namespace app: another instance of it is online, and now "
        "instance 2 from 10.0.0.5 too; these are processes with one client id, and each has tokens "
        "of its own\n");
  h.Goodbye(two, UINT32_MAX, "@10.0.0.5:1");
  SlotOf(&h, 2);
  SlotOf(&h, 3);
  CHECK_FALSE(told());
  SUBCASE("and again when the client was offline in between") {
    for (const uint64_t instance : {1, 2, 3}) Leave(&h, instance);
    SlotOf(&h, 1);
    CHECK_FALSE(told());
    SlotOf(&h, 2);
    CHECK(told());
  }
}

TEST_CASE("a process that names an instance is not told by its hosts") {
  CoreHarness h;
  SlotOf(&h, 1, "@10.0.0.5:1");
  SlotOf(&h, 1, "@10.0.0.6:1");
  CHECK(h.NoticesText().empty());
  SlotOf(&h, 0, "@10.0.0.5:1");
  h.NoticesText();
  SlotOf(&h, 0, "@10.0.0.6:1");
  CHECK(h.NoticesText().find("is online from 10.0.0.5 and now from 10.0.0.6") != std::string::npos);
}

TEST_CASE("an administrator takes back the tokens of all instances, or of the one that is named") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  for (const uint64_t instance : {0, 1, 2}) {
    h.Take(SlotOf(&h, instance), 1);
    h.Take(SlotOf(&h, instance), 1);
  }
  CHECK(ReclaimedOf(&h, 1) == "2");
  CHECK(ReclaimedOf(&h, 1) == "0");
  CHECK(ReclaimedOf(&h, 0) == "2");
  h.Take(SlotOf(&h, 1), 1);
  CHECK(ReclaimedOf(&h, std::nullopt) == "3");
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("listings by client id show all instances, or the one that is named") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 3}});
  for (const uint64_t instance : {0, 1, 2}) h.Take(SlotOf(&h, instance), 1);
  const auto listed = [&h](std::optional<uint64_t> instance) {
    TokenFilter filter;
    filter.client_id = "worker";
    filter.instance = instance;
    return h.core().ListTokens(h.now(), 1, filter, 100, 0)->tokens.size();
  };
  CHECK(listed(std::nullopt) == 3);
  CHECK(listed(2) == 1);
  CHECK(listed(9) == 0);
  for (const uint64_t instance : {0, 1}) {
    const auto waits = h.Ask(SlotOf(&h, instance), {.flow = FlowId{1}, .wait_ms = 1000}, 5);
    CHECK_FALSE(waits.has_value());
  }
  const auto waiting = [&h](std::optional<uint64_t> instance) {
    return ListWaiters(h.core().books(), h.core().wait_queues(),
                       {.client_id = "worker", .instance = instance}, 100)
        .size();
  };
  CHECK(waiting(std::nullopt) == 2);
  CHECK(waiting(1) == 1);
  CHECK(waiting(2) == 0);
}

TEST_CASE("the history has the instance of an end where the client id has several") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  h.Reclaim(h.Take(SlotOf(&h, 5), 1));
  h.Take(SlotOf(&h, 6), 1);
  h.Reclaim(h.Take(SlotOf(&h, 5), 1));
  h.Commit();
  const auto content = ReadLedger(&h.store());
  REQUIRE(content.history.size() == 2);
  CHECK(content.history[0].instance == 0);
  CHECK(content.history[1].instance == 5);
  h.Restart();
  CHECK(h.core().books().history().size() == 2);
}

TEST_CASE("the ledger has an instance in one session only") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  h.Take(SlotOf(&h, 5), 1);
  h.Take(SlotOf(&h, 0), 1);
  h.Commit();
  auto sessions = ReadLedger(&h.store()).sessions;
  REQUIRE(sessions.size() == 2);
  CHECK(sessions[0].instance == 5);
  CHECK(sessions[1].instance == 0);
}

}  // namespace
}  // namespace nowcalls::core
