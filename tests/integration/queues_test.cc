// Waiting for room with the real server: many clients, one rule, and a server that is killed.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "integration/calls.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int kClients = 200;
constexpr int kRounds = 50;
constexpr int64_t kLevel = 10;

Json Options(uint64_t wait_ms, bool prioritized = false, uint64_t request_id = 0) {
  Json options = {{"wait_ms", wait_ms}, {"prioritized", prioritized}};
  if (request_id > 0) options["request_id"] = request_id;
  return options;
}

Json LongRule(double level) {
  return RuleJson(1, level, {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}});
}

int64_t Waiters(RpcClient* client) {
  return ResultOf(client, "flow", {1}).at("waiters").get<int64_t>();
}

// What the clients of a crowd have seen together. They run on threads of their own, where nothing
// may be checked, so they only note.
struct Crowd {
  std::atomic<int64_t> held = 0;
  std::atomic<int64_t> most_held = 0;
  std::atomic<int> served = 0;
  std::mutex mutex;
  std::string address;  // Guarded by mutex, as is what follows.
  std::vector<std::string> wrong;
  std::map<uint64_t, std::set<uint64_t>> tokens_of;  // By request id.

  void Note(std::string what) {
    const std::lock_guard lock(mutex);
    if (wrong.size() < 10) wrong.push_back(std::move(what));
  }
  void Took() {
    const int64_t now_held = ++held;
    int64_t most = most_held;
    while (now_held > most && !most_held.compare_exchange_weak(most, now_held)) {
    }
  }
  std::string Address() {
    const std::lock_guard lock(mutex);
    return address;
  }
};

TEST_CASE("200 clients that wait for 10 calls are all served, and never more than 10 at a time") {
  TestServer server(LongRule(kLevel));
  Crowd crowd;
  std::vector<std::thread> threads;
  threads.reserve(kClients);
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&server, &crowd, i] {
      RpcClient client = server.Connect("c" + std::to_string(i));
      for (int round = 0; round < kRounds; ++round) {
        const Reply grant =
            client.Call("acquire", {1, 1, Options(120'000, i % 10 == 0)}, 5 * kPatienceMs);
        if (!grant.ok() || grant.result.at(0) != kStatusOk || grant.result.at(3) > kLevel) {
          return crowd.Note(grant.ToString());
        }
        crowd.Took();
        --crowd.held;
        const Reply end = client.Call("release", Json::array({grant.result.at(1)}));
        if (!end.ok() || end.result.at(0) != kStatusReleaseOk) return crowd.Note(end.ToString());
        ++crowd.served;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(crowd.wrong.empty());
  for (const std::string& wrong : crowd.wrong) MESSAGE(wrong);
  CHECK(crowd.served == kClients * kRounds);
  CHECK(crowd.most_held <= kLevel);
  RpcClient client = server.Connect();
  const Json flow = ResultOf(&client, "flow", {1});
  CHECK(flow.at("now_calls") == 0);
  CHECK(flow.at("waiters") == 0);
  CHECK(flow.at("counters").at("granted") == kClients * kRounds);
  CHECK(flow.at("counters").at("refused").empty());
  CHECK(flow.at("counters").at("queued") == flow.at("counters").at("granted_from_queue"));
  const Json totals = ResultOf(&client, "info").at("totals");
  CHECK(totals.at("granted") == kClients * kRounds);
  CHECK(totals.at("ended").at("released") == kClients * kRounds);
  CHECK(totals.at("queued") == flow.at("counters").at("queued"));
}

TEST_CASE("waiters are granted prioritized first, in the order in which they came") {
  TestServer server(LongRule(1));
  RpcClient holder = server.Connect("holder");
  Grant held = Acquire(&holder, 1);
  std::vector<RpcClient> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(server.Connect("c" + std::to_string(i)));
    clients.back().Send("acquire", {1, 1, Options(120'000, i % 3 == 2)});
    REQUIRE(PollUntil(kPatienceMs, [&] { return Waiters(&holder) == i + 1; }));
  }
  std::vector<int> expected;
  for (const bool prioritized : {true, false}) {
    for (int i = 0; i < 60; ++i) {
      if ((i % 3 == 2) == prioritized) expected.push_back(i);
    }
  }
  uint64_t fence = held.fence;
  CHECK(Release(&holder, held.token_id) == kStatusReleaseOk);
  for (const int next : expected) {
    CAPTURE(next);
    RpcClient& client = clients[static_cast<size_t>(next)];
    const Reply grant = client.Receive();
    REQUIRE_MESSAGE(grant.ok(), grant.ToString());
    REQUIRE(grant.result.at(0) == kStatusOk);
    CHECK(grant.result.at(2) > fence);
    fence = grant.result.at(2).get<uint64_t>();
    CHECK(Release(&client, grant.result.at(1).get<uint64_t>()) == kStatusReleaseOk);
  }
}

// One request until its token is released, over as many connections as that takes.
class StubbornClient {
 public:
  StubbornClient(Crowd* crowd, std::string client_id)
      : crowd_(crowd), client_id_(std::move(client_id)) {}

  // False: given up.
  bool Serve(uint64_t request_id) {
    uint64_t token = 0;
    bool granted = false;
    const bool served = PollUntil(10 * kPatienceMs, [&] {
      if (!Connected()) return false;
      if (!granted) {
        const Reply grant = client_.Call("acquire", {1, 1, Options(120'000, false, request_id)});
        if (!grant.ok() || grant.result.at(0) != kStatusOk) return Failed(grant);
        token = grant.result.at(1).get<uint64_t>();
        granted = true;
        if (grant.result.at(3) > kLevel) crowd_->Note(grant.ToString());
        const std::lock_guard lock(crowd_->mutex);
        crowd_->tokens_of[request_id].insert(token);
      }
      const Reply end = client_.Call("release", {token});
      return end.ok() || Failed(end);
    });
    return served;
  }

 private:
  bool Connected() {
    if (client_.connected()) return true;
    client_ = RpcClient(crowd_->Address());
    if (!client_.connected()) return false;
    const Reply hello = client_.Call("hello", {1, "default", client_id_});
    if (!hello.ok()) client_.Close();
    return hello.ok();
  }

  // What a killed server leaves unanswered is tried again; an answer that should not be is noted.
  bool Failed(const Reply& reply) {
    if (reply.answered()) crowd_->Note(reply.ToString());
    client_.Close();
    return false;
  }

  Crowd* const crowd_;
  const std::string client_id_;
  RpcClient client_;
};

TEST_CASE("with kill -9 and reconnects in between every request gets one token and all end") {
  constexpr int kStubborn = 50;
  constexpr int kTurns = 20;
  TestServer server(LongRule(kLevel));
  Crowd crowd;
  crowd.address = server.address();
  std::vector<std::thread> threads;
  threads.reserve(kStubborn);
  for (int i = 0; i < kStubborn; ++i) {
    threads.emplace_back([&crowd, i] {
      StubbornClient client(&crowd, "c" + std::to_string(i));
      for (uint64_t turn = 1; turn <= kTurns; ++turn) {
        if (!client.Serve(static_cast<uint64_t>(i) * 1000 + turn)) return crowd.Note("given up");
        ++crowd.served;
      }
    });
  }
  for (int kill = 1; kill <= 3; ++kill) {
    const int served_before = kStubborn * kTurns * kill / 5;
    CHECK(PollUntil(10 * kPatienceMs, [&] { return crowd.served >= served_before; }));
    server.server().Restart();
    const std::lock_guard lock(crowd.mutex);
    crowd.address = server.address();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(crowd.wrong.empty());
  for (const std::string& wrong : crowd.wrong) MESSAGE(wrong);
  CHECK(crowd.served == kStubborn * kTurns);
  CHECK(crowd.tokens_of.size() == kStubborn * kTurns);
  std::set<uint64_t> all;
  for (const auto& [request, tokens] : crowd.tokens_of) {
    CHECK(tokens.size() == 1);
    all.insert(tokens.begin(), tokens.end());
  }
  CHECK(all.size() == kStubborn * kTurns);
  RpcClient client = server.Connect();
  CHECK(NowCalls(&client, 1) == 0);  // No token that nobody heard of.
}

TEST_CASE("each refusal names its limit") {
  TestServer server(RuleJson(1, 3, {{"maxPerClient", 2}, {"resourceTimeout", 600'000}}),
                    {{"--tokens-max", "4", "--waiters-per-rule-max", "1"}, {}});
  RpcClient a = server.Connect("a");
  RpcClient b = server.Connect("b");
  const auto refusal = [](RpcClient* client, const Json& params) {
    return ResultOf(client, "acquire", params).at(6);
  };
  CHECK(Acquire(&a, 1, 2).status == kStatusOk);
  CHECK(refusal(&a, {1, 1}) == "client_cap");
  CHECK(refusal(&b, {1, 2}) == "level");
  CHECK(refusal(&b, {1, 2, Options(50)}) == "queue_timeout");
  b.Send("acquire", {1, 2, Options(60'000, false, 7)});
  REQUIRE(PollUntil(kPatienceMs, [&] { return Waiters(&a) == 1; }));
  RpcClient c = server.Connect("c");
  CHECK(refusal(&c, {1, 1}) == "waiters_ahead");
  CHECK(refusal(&c, {1, 1, Options(1000)}) == "queue_full");
  CHECK(ResultOf(&b, "cancel", {7}).at(0) == kStatusReleaseOk);
  CHECK(refusal(&b, {1, 2, Options(1000, false, 7)}) == "cancelled");
  CHECK(Acquire(&c, 1).status == kStatusOk);
  CHECK(ResultOf(&b, "acquire", {1, 1, Options(0, false, 8)}).at(6) == "level");
  LoadRules(&a, RuleJson(1, 30));
  CHECK(ResultOf(&b, "acquire", {1, 1, Options(0, false, 8)}).at(0) == kStatusOk);
  CHECK(ResultOf(&b, "acquire", {1, 2, Options(0, false, 8)}).at(6) == "request_id");
  CHECK(Acquire(&b, 1).status == kStatusOk);
  CHECK(refusal(&b, {1, 1}) == "token_limit");
}

TEST_CASE("who waits when the server is told to end hears NOT_AVAILABLE") {
  TestServer server(LongRule(1));
  RpcClient a = server.Connect("a");
  Acquire(&a, 1);
  RpcClient b = server.Connect("b");
  b.Send("acquire", {1, 1, Options(60'000)});
  REQUIRE(PollUntil(kPatienceMs, [&] { return Waiters(&a) == 1; }));
  CHECK(server.server().Terminate() == 0);
  const Reply reply = b.Receive();
  REQUIRE_MESSAGE(reply.ok(), reply.ToString());
  CHECK(reply.result.at(0) == 5);
}

TEST_CASE("100,000 live tokens in front of an expired one do not delay its reclaim") {
  TestServer server(Json::array({RuleJson(1, 200'000, {{"resourceTimeout", 60'000}}),
                                 RuleJson(2, 1, {{"resourceTimeout", 150}})}));
  RpcClient client = server.Connect("a");
  AcquireMany(&client, 1, 100'000);
  // The hold begins before the grant is on the disk, and answered.
  const auto before_ms = ResultOf(&client, "ping").at(0).get<int64_t>();
  const Grant short_lived = Acquire(&client, 2);
  CHECK(short_lived.hold_ms == 300);
  // A waiter is granted by the reclaim: hold, a span of the deadline count, one sweep interval.
  const Reply grant = client.Call("acquire", {2, 1, Options(60'000)});
  const auto after_ms = ResultOf(&client, "ping").at(0).get<int64_t>();
  REQUIRE_MESSAGE(grant.ok(), grant.ToString());
  CHECK(grant.result.at(0) == kStatusOk);
  CHECK(after_ms - before_ms >= 300);
  MESSAGE("reclaimed after " << after_ms - before_ms << " ms");
  CHECK(Release(&client, short_lived.token_id) == kStatusAlreadyRelease);
}

}  // namespace
}  // namespace nowcalls::testing
