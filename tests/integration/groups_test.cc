// acquire_all with the real server: clients that want several rules at once, beside others that
// want one, and a server that is killed.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "integration/calls.h"
#include "support/poll_until.h"
#include "support/sample.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kGroupFlows = 8;
constexpr int64_t kKeyedFlow = 9;
constexpr int kGroupClients = 50;
constexpr int64_t kGroupWaitMs = 120'000;

// Flows with a level of 1, 2 or 3.
int64_t LevelOf(int64_t flow) { return 1 + flow % 3; }

Json GroupRules() {
  const Json cluster = {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}};
  Json rules = Json::array();
  for (int64_t flow = 1; flow <= kGroupFlows; ++flow) {
    rules.push_back(RuleJson(flow, static_cast<double>(LevelOf(flow)), cluster));
  }
  Json keyed = RuleJson(kKeyedFlow, 1, cluster);
  keyed["paramIdx"] = 0;
  rules.push_back(keyed);
  return rules;
}

// What all clients hold, counted by those who hold it. They run on threads of their own, where
// nothing may be checked, so they only note.
struct Holdings {
  std::array<std::atomic<int64_t>, kGroupFlows + 1> held{};
  std::atomic<int> served = 0;
  std::atomic<int64_t> tokens = 0;
  std::mutex mutex;
  std::vector<std::string> wrong;  // Guarded by mutex, as is what follows.
  std::string address;
  std::set<uint64_t> ids;  // Of all tokens.

  void Note(std::string what) {
    const std::lock_guard lock(mutex);
    if (wrong.size() < 10) wrong.push_back(std::move(what));
  }
  std::string Address() {
    const std::lock_guard lock(mutex);
    return address;
  }
  void Check() {
    CHECK(wrong.empty());
    for (const std::string& text : wrong) MESSAGE(text);
  }
};

// Some flows, each once, and at times two values of the rule with a parameter.
Json AnyItems(Prng* prng) {
  std::set<int64_t> flows;
  for (uint64_t items = 1 + prng->Below(4); items > 0; --items) {
    flows.insert(prng->Between(1, kGroupFlows));
  }
  std::vector<int64_t> order(flows.begin(), flows.end());
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[prng->Below(i)]);
  Json items = Json::array();
  for (const int64_t flow : order) {
    const int64_t count = prng->Below(4) == 0 ? prng->Between(1, LevelOf(flow)) : 1;
    items.push_back({flow, count});
  }
  if (prng->Below(4) == 0) {
    for (const char* value : {"x", "y"}) items.push_back({kKeyedFlow, 1, value});
  }
  return items;
}

// False: the answer is not that of a whole group.
bool IsWhole(const Reply& reply, const Json& items) {
  return reply.ok() && reply.result.at(0) == kStatusOk &&
         reply.result.at(1).size() == items.size() && reply.result.at(2).is_null();
}

// Counts what is held in the middle of holding it.
void HoldAndRelease(RpcClient* client, const Json& items, const Json& tokens, Holdings* holdings) {
  uint64_t fence = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto flow = items[i].at(0).get<int64_t>();
    if (tokens[i].at(1).get<uint64_t>() <= fence) holdings->Note("fences out of order");
    fence = tokens[i].at(1).get<uint64_t>();
    if (flow == kKeyedFlow) continue;
    auto& held = holdings->held.at(static_cast<size_t>(flow));
    const int64_t now_held = held += items[i].at(1).get<int64_t>();
    if (now_held > LevelOf(flow)) holdings->Note("beyond the level of flow " + items[i].dump());
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const auto flow = items[i].at(0).get<int64_t>();
    if (flow != kKeyedFlow) {
      holdings->held.at(static_cast<size_t>(flow)) -= items[i].at(1).get<int64_t>();
    }
    const Reply end = client->Call("release", Json::array({tokens[i].at(0)}));
    if (!end.ok() || end.result.at(0) != kStatusReleaseOk) holdings->Note(end.ToString());
  }
  holdings->tokens += static_cast<int64_t>(items.size());
  ++holdings->served;
}

TEST_CASE("50 clients that want random sets of rules are all served, with all tokens or none") {
  const int rounds = Whole() ? 2'000 : 100;
  TestServer server(GroupRules());
  Holdings holdings;
  std::vector<std::thread> threads;
  threads.reserve(kGroupClients);
  const uint64_t seed = SampleSeed();
  for (int i = 0; i < kGroupClients; ++i) {
    threads.emplace_back([&server, &holdings, rounds, seed, i] {
      Prng prng(seed + static_cast<uint64_t>(i));
      RpcClient client = server.Connect("c" + std::to_string(i));
      for (int round = 0; round < rounds; ++round) {
        // Each tenth client wants one rule at a time.
        Json items = i % 10 == 0 ? Json::array({Json::array({prng.Between(1, kGroupFlows), 1})})
                                 : AnyItems(&prng);
        const Json options = {{"wait_ms", kGroupWaitMs}, {"prioritized", prng.Below(10) == 0}};
        Json tokens;
        if (i % 10 == 0) {
          const Reply grant = client.Call("acquire", {items[0].at(0), 1, options}, 5 * kPatienceMs);
          if (!grant.ok() || grant.result.at(0) != kStatusOk) {
            return holdings.Note(grant.ToString());
          }
          tokens = Json::array({Json::array({grant.result.at(1), grant.result.at(2)})});
        } else {
          const Reply grant = client.Call("acquire_all", {items, options}, 5 * kPatienceMs);
          if (!IsWhole(grant, items)) return holdings.Note(items.dump() + " " + grant.ToString());
          tokens = grant.result.at(1);
        }
        HoldAndRelease(&client, items, tokens, &holdings);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  holdings.Check();
  CHECK(holdings.served == kGroupClients * rounds);
  RpcClient client = server.Connect();
  const Json info = ResultOf(&client, "info");
  CHECK(info.at("totals").at("granted") == holdings.tokens.load());
  CHECK(info.at("counts").at("waiters") == 0);
  CHECK(info.at("counts").at("keys") == 0);
  CHECK(info.at("totals").at("queued") == info.at("totals").at("granted_from_queue"));
  for (int64_t flow = 1; flow <= kKeyedFlow; ++flow) CHECK(NowCalls(&client, flow) == 0);
}

// One group until its tokens are released, over as many connections as that takes.
class StubbornGroup {
 public:
  StubbornGroup(Holdings* holdings, int number)
      : holdings_(holdings),
        client_id_("c" + std::to_string(number)),
        prng_(SampleSeed() + static_cast<uint64_t>(number)) {}

  // False: given up.
  bool Serve(uint64_t request_id) {
    const Json items = AnyItems(&prng_);
    const Json options = {{"wait_ms", kGroupWaitMs}, {"request_id", request_id}};
    Json tokens;
    return PollUntil(10 * kPatienceMs, [&] {
      if (!Connected()) return false;
      const Reply grant = client_.Call("acquire_all", {items, options}, 5 * kPatienceMs);
      if (!grant.answered()) return Failed();
      if (!IsWhole(grant, items)) {
        holdings_->Note(items.dump() + " " + grant.ToString());
        return false;
      }
      // Asked again, it has the same tokens.
      if (!tokens.is_null()) CompareIds(tokens, grant.result.at(1));
      tokens = grant.result.at(1);
      const Reply end = client_.Call("cancel", {request_id});
      if (!end.answered()) return Failed();
      if (end.result != Json::array({kStatusReleaseOk})) holdings_->Note(end.ToString());
      const std::lock_guard lock(holdings_->mutex);
      for (const Json& token : tokens) holdings_->ids.insert(token.at(0).get<uint64_t>());
      holdings_->tokens += static_cast<int64_t>(tokens.size());
      ++holdings_->served;
      return true;
    });
  }

 private:
  // After an unanswered cancel all may be new. None, or all.
  void CompareIds(const Json& before, const Json& now) {
    size_t same = 0;
    for (size_t i = 0; i < before.size(); ++i) same += before[i].at(0) == now[i].at(0) ? 1 : 0;
    if (same != 0 && same != before.size()) holdings_->Note("a part of a group");
  }

  bool Connected() {
    if (client_.connected()) return true;
    client_ = RpcClient(holdings_->Address());
    if (!client_.connected()) return false;
    const Reply hello = client_.Call("hello", {1, "default", client_id_});
    if (!hello.ok()) client_.Close();
    return hello.ok();
  }
  bool Failed() {
    client_.Close();
    return false;
  }

  Holdings* const holdings_;
  const std::string client_id_;
  Prng prng_;
  RpcClient client_;
};

TEST_CASE("with kill -9 in between every group has all its tokens or none, and all end") {
  constexpr int kTurns = 20;
  TestServer server(GroupRules());
  Holdings holdings;
  holdings.address = server.address();
  std::vector<std::thread> threads;
  threads.reserve(kGroupClients);
  for (int i = 0; i < kGroupClients; ++i) {
    threads.emplace_back([&holdings, i] {
      StubbornGroup group(&holdings, i);
      for (uint64_t turn = 1; turn <= kTurns; ++turn) {
        if (!group.Serve(static_cast<uint64_t>(i) * 1000 + turn)) return holdings.Note("given up");
      }
    });
  }
  for (int kill = 1; kill <= 3; ++kill) {
    CHECK(PollUntil(10 * kPatienceMs,
                    [&] { return holdings.served >= kGroupClients * kTurns * kill / 5; }));
    server.server().Restart();
    const std::lock_guard lock(holdings.mutex);
    holdings.address = server.address();
  }
  for (std::thread& thread : threads) thread.join();
  holdings.Check();
  CHECK(holdings.served == kGroupClients * kTurns);
  CHECK(holdings.ids.size() == static_cast<size_t>(holdings.tokens));
  RpcClient client = server.Connect();
  for (int64_t flow = 1; flow <= kKeyedFlow; ++flow) CHECK(NowCalls(&client, flow) == 0);
}

TEST_CASE("a group names what refuses it, and the listing of waiters shows where it stands") {
  TestServer server(GroupRules());
  RpcClient a = server.Connect("a");
  RpcClient b = server.Connect("b");
  const Json both = Json::array({Json::array({3, 1}), Json::array({6, 1})});  // Levels of 1.
  const Grant held = Acquire(&a, 6);
  CHECK(ResultOf(&b, "acquire_all", Json::array({both})) ==
        Json::array({kStatusBlocked, Json::array(), "level", 6, 1, 1}));
  b.Send("acquire_all", {both, {{"wait_ms", kGroupWaitMs}, {"request_id", 7}}});
  REQUIRE(PollUntil(kPatienceMs, [&] { return ResultOf(&a, "waiters").at(0).size() == 1; }));
  const Json row = ResultOf(&a, "waiters").at(0).at(0);
  CHECK(row.at("flow_id") == 6);
  CHECK(row.at("count") == 1);
  CHECK(row.at("client_id") == "b");
  CHECK(Release(&a, held.token_id) == kStatusReleaseOk);
  const Reply granted = b.Receive();
  REQUIRE_MESSAGE(granted.ok(), granted.ToString());
  REQUIRE(granted.result.at(1).size() == 2);
  CHECK(granted.result.at(1).at(0).at(2) == 1'200'000);
  CHECK(ResultOf(&b, "cancel", {7}).at(0) == kStatusReleaseOk);
  CHECK(NowCalls(&b, 3) == 0);
  CHECK(Names(ErrorOf(&b, "acquire_all", Json::array({Json::array()})),
              "items must be 1..64, got 0"));
}

}  // namespace
}  // namespace nowcalls::testing
