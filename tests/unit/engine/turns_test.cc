// What one turn of the loop does is bounded, however much has arrived, and everybody has a turn.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/engine_harness.h"
#include "wire/admin_messages.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::AcquireRequests;
using testing::EngineHarness;
using testing::Ids;
using testing::PlainRequest;
using testing::RuleOptions;
using wire::Method;

// Grants of one turn: what has just been read and what waited have room for some 2,000 each.
constexpr uint32_t kGrantsMax = 4'200;
// What the driver reads at once.
constexpr size_t kReadBytes = 16 * 1024;

std::string Repeated(const std::string& message) {
  std::string bytes;
  while (bytes.size() + message.size() <= kReadBytes) bytes += message;
  return bytes;
}

std::vector<RuleOptions> WideRule() {
  return {{.flow = 1, .count = 1e9, .resource_timeout_ms = 600'000}};
}

// An empty set of rules: work for a whole turn.
std::string RulesLoad(uint32_t id) {
  wire::OutputBuffer out;
  wire::EncodeRulesLoadRequest(id, "other", "[]", &out);
  return std::string(out.view());
}

TEST_CASE("a flood of notifications on 100 connections leaves room for others in every turn") {
  EngineHarness h;
  const ConnectionId honest = h.Connect();
  const std::string unknown("\x93\x02\xa0\x90", 4);
  const std::string flood = Repeated(unknown);
  std::vector<ConnectionId> flooders;
  for (int i = 0; i < 100; ++i) {
    flooders.push_back(h.Connect("127.0.0.1:2"));
    h.Send(flooders.back(), flood);
    CHECK_FALSE(h.driver().socket(flooders.back()).reading);
  }
  h.engine().TurnEnd();
  uint32_t turns = 0;
  while (h.engine().input_waits()) {
    h.Send(honest, PlainRequest(++turns, Method::kPing));
    h.Turn();
    REQUIRE(h.TakeIds(honest) == Ids(turns, turns));
    REQUIRE(turns < 1'000);
  }
  CHECK(turns >= 100 * flood.size() / unknown.size() / 8'500);
  for (const ConnectionId id : flooders) CHECK(h.driver().socket(id).reading);
}

TEST_CASE("a turn grants so many acquires, over all connections, and leaves none unanswered") {
  EngineHarness h({}, WideRule());
  std::vector<ConnectionId> ids;
  for (int i = 0; i < 200; ++i) {
    ids.push_back(h.Connect("127.0.0.1:2"));
    h.Send(ids.back(), AcquireRequests(1, 60));
  }
  CHECK(h.core().books().tokens().size() <= kGrantsMax / 2);
  CHECK(h.core().books().tokens().size() >= kGrantsMax / 4);
  uint32_t before = 0;
  while (h.engine().input_waits()) {
    h.Turn();
    CHECK(h.core().books().tokens().size() - before <= kGrantsMax);
    before = h.core().books().tokens().size();
  }
  h.Settle();
  for (const ConnectionId id : ids) CHECK(h.TakeIds(id) == Ids(1, 60));
}

TEST_CASE("a pipeline of 64 requests on 50 connections is one turn and one batch") {
  EngineHarness h({}, WideRule());
  std::vector<ConnectionId> ids;
  for (int i = 0; i < 50; ++i) ids.push_back(h.Connect("127.0.0.1:2"));
  for (const ConnectionId id : ids) h.Send(id, AcquireRequests(1, 64));
  h.Turn();
  REQUIRE(h.BeginCommit());
  h.FinishCommit();
  h.Turn();
  for (const ConnectionId id : ids) {
    CHECK(h.TakeIds(id) == Ids(1, 64));
    CHECK(h.driver().socket(id).reading);
  }
}

TEST_CASE("who sent little before is not behind who sent much") {
  EngineHarness h({}, WideRule());
  std::vector<ConnectionId> greedy;
  for (int i = 0; i < 40; ++i) {
    greedy.push_back(h.Connect("127.0.0.1:2"));
    h.Send(greedy.back(), AcquireRequests(1, 500));
  }
  const ConnectionId modest = h.Connect("127.0.0.1:3");
  h.Send(modest, AcquireRequests(1, 20));  // The turn is full, so it waits behind them.
  CHECK_FALSE(h.driver().socket(modest).reading);
  h.Turn();
  h.Turn();
  CHECK(h.driver().socket(modest).reading);
  for (const ConnectionId id : greedy) CHECK_FALSE(h.driver().socket(id).reading);
  h.Settle();
  CHECK(h.TakeIds(modest) == Ids(1, 20));
  for (const ConnectionId id : greedy) CHECK(h.TakeIds(id) == Ids(1, 500));
}

TEST_CASE("newcomers that fill each turn do not starve those that wait") {
  EngineHarness h({}, WideRule());
  const ConnectionId waits = h.Connect();
  h.Send(waits, AcquireRequests(1, 500));
  std::vector<ConnectionId> newcomers;
  newcomers.reserve(400);
  for (int i = 0; i < 400; ++i) newcomers.push_back(h.Connect("127.0.0.1:2"));
  int turns = 0;
  while (!h.driver().socket(waits).reading) {
    REQUIRE(++turns < 40);
    for (const ConnectionId id : newcomers) h.Send(id, AcquireRequests(1, 10));
    h.Turn();
  }
  CHECK(turns > 1);
  h.Settle();
  CHECK(h.TakeIds(waits) == Ids(1, 500));
}

TEST_CASE("whatever may let a connection go on, each request is answered once and in order") {
  Limits limits;
  limits.requests_in_flight_max = 4;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  const ConnectionId d = h.Connect("127.0.0.1:2");
  h.driver().socket(c).stuck = true;
  h.Send(c, PlainRequest(1, Method::kPing) + AcquireRequests(2, 30));
  h.Send(d, AcquireRequests(1, 30));
  std::vector<uint32_t> ids;
  for (int i = 0; i < 40; ++i) {
    h.engine().OnSent(c, h.driver().socket(c).kept, h.now());
    if (i % 3 != 0) h.Turn();
    h.engine().OnSent(c, h.driver().socket(c).kept /= 2, h.now());
    if (h.BeginCommit()) {
      h.Send(c, "");
      h.engine().OnSent(c, h.driver().socket(c).kept, h.now());
      h.FinishCommit();
    }
    h.engine().OnSent(c, h.driver().socket(c).kept, h.now());
  }
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(1, 30));
  CHECK(h.TakeIds(d) == Ids(1, 30));
  CHECK(h.driver().socket(c).reading);
}

TEST_CASE("work is spread over turns and over those who ask for it") {
  EngineHarness h;
  std::vector<ConnectionId> ids;
  for (int i = 0; i < 12; ++i) ids.push_back(h.Connect("127.0.0.1:" + std::to_string(i)));
  for (const ConnectionId id : ids) h.Send(id, RulesLoad(1) + RulesLoad(2) + RulesLoad(3));
  const auto answered = [&] {
    std::vector<size_t> counts;
    for (const ConnectionId id : ids) counts.push_back(h.TakeIds(id).size());
    return counts;
  };
  h.engine().TurnEnd();
  std::vector<size_t> total = answered();
  CHECK(std::accumulate(total.begin(), total.end(), size_t{0}) == 1);
  for (int turn = 0; turn < 14; ++turn) {
    // One that comes later never overtakes those who wait.
    const ConnectionId late = ids.back();
    h.Send(late, AcquireRequest(9, 1));
    h.engine().ResumeInput(h.now());
    h.engine().TurnEnd();
    const std::vector<size_t> counts = answered();
    CHECK(std::accumulate(counts.begin(), counts.end() - 1, size_t{0}) <= 1);
    for (size_t i = 0; i < counts.size(); ++i) total[i] += counts[i];
  }
  for (size_t i = 0; i + 1 < total.size(); ++i) CHECK(total[i] >= 1);
  h.Settle();
  const std::vector<size_t> rest = answered();
  for (size_t i = 0; i + 1 < rest.size(); ++i) CHECK(total[i] + rest[i] == 3);
}

TEST_CASE("a listing is as much work as it shows") {
  EngineHarness h({}, WideRule());
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequests(1, 1000));
  h.Settle();
  const auto answered = [&](uint32_t rows) {
    std::vector<ConnectionId> ids;
    for (int i = 0; i < 100; ++i) ids.push_back(h.Connect("127.0.0.1:" + std::to_string(i)));
    wire::OutputBuffer out;
    wire::EncodePageRequest(1, Method::kFlows, {.limit = 100}, &out);
    wire::TokensParams params;
    params.page.limit = rows;
    wire::EncodeTokensRequest(2, params, &out);
    for (const ConnectionId id : ids) h.Send(id, out.view());
    h.engine().TurnEnd();
    size_t count = 0;
    for (const ConnectionId id : ids) count += h.TakeIds(id).size();
    h.Settle();
    for (const ConnectionId id : ids) h.Disconnect(id);
    return count;
  };
  const size_t small = answered(1);
  const size_t large = answered(1000);
  CHECK(small < 100);
  CHECK(large < 30);
  CHECK(large * 2 < small);
}

TEST_CASE("a connection that is gone while it waits for its turn is forgotten") {
  EngineHarness h;
  const std::string kinds[] = {RulesLoad(1) + RulesLoad(2), AcquireRequests(1, 900)};
  for (const std::string& bytes : kinds) {
    const ConnectionId a = h.Connect();
    h.Send(a, bytes);
    CHECK(h.engine().NextDeadline() <= h.now());
    h.Disconnect(a);
    CHECK_FALSE(h.engine().input_waits());
    const ConnectionId b = h.Connect();
    REQUIRE(a == b);
    h.Settle();
    CHECK(h.driver().socket(b).written.empty());
    h.Disconnect(b);
  }
}

// As much of a message as the bytes go; it would be 60,000 bytes long.
std::string PartOfMessage(uint8_t msgid, size_t bytes) {
  std::string part("\x94\x00\x01\xa4ping\x91\xda\xea\x60", 12);
  part[2] = static_cast<char>(msgid);
  part.resize(bytes, 'x');
  return part;
}

TEST_CASE("when all input together is too much, the connection that holds most is closed") {
  Limits limits;
  limits.input_total_bytes_max = 100'000;
  EngineHarness h(limits);
  const ConnectionId a = h.Connect("127.0.0.1:1");
  const ConnectionId b = h.Connect("127.0.0.1:2");
  const ConnectionId c = h.Connect("127.0.0.1:3");
  h.Send(a, PartOfMessage(7, 20'000));
  h.Send(b, PlainRequest(1, Method::kPing) + PartOfMessage(8, 50'000));
  h.Send(c, PartOfMessage(9, 30'000));
  h.Settle();
  CHECK_FALSE(h.driver().socket(b).closed);
  h.Send(c, "x");
  h.Settle();
  CHECK(h.driver().socket(b).flushed);
  CHECK_FALSE(h.driver().socket(a).closed);
  CHECK_FALSE(h.driver().socket(c).closed);
  const auto replies = h.TakeReplies(b);
  REQUIRE(replies.size() == 2);
  CHECK(replies[0].msgid == 1);
  CHECK(replies[1].msgid == 8);
  const std::string why =
      "has sent 50000 bytes that are not handled yet, the most of all connections, which together "
      "exceed 100000";
  CHECK(replies[1].ErrorText() == "MALFORMED: the connection " + why);
  CHECK(h.driver().TakeLog() == "warn: connection 127.0.0.1:2 " + why + "; closing it\n");
  h.Send(c, std::string(20'000, 'x'));
  h.Settle();
  CHECK_FALSE(h.driver().socket(c).closed);
}

TEST_CASE("input that has been handled does not count, nor that of connections that are gone") {
  Limits limits;
  limits.input_total_bytes_max = 70'000;
  EngineHarness h(limits);
  const ConnectionId a = h.Connect();
  for (int i = 0; i < 10; ++i) {
    h.Send(a, PartOfMessage(1, 30'000));
    h.Send(a, std::string(12 + 60'000 - 30'000, 'x'));
    h.Settle();
    h.Send(h.Connect("127.0.0.1:2"), PartOfMessage(1, 20'000));
    h.Disconnect(1);
    h.Send(h.Connect("127.0.0.1:2"), PartOfMessage(1, 20'000) + "\xc1");
    h.Disconnect(1);
  }
  CHECK(h.TakeIds(a).size() == 10);
  CHECK_FALSE(h.driver().socket(a).closed);
}

TEST_CASE("ends that displace longer entries of the history cost their turn like any others") {
  constexpr uint32_t kTokens = 300;
  Limits limits;
  limits.history_max = kTokens;
  EngineHarness h(limits, {{.flow = 1, .count = 1000, .resource_timeout_ms = 10'000},
                           {.flow = 2, .count = 1000, .resource_timeout_ms = 600'000}});
  const ConnectionId client = h.Connect();
  std::string releases;
  for (uint32_t id = 1; id <= kTokens; ++id) {
    releases += testing::TokenRequest(id, Method::kRelease, h.Take(client, 1));
    h.Take(client, 2);
  }
  h.Sleep(15'000);  // Late, but not expired.
  wire::OutputBuffer reclaim;
  wire::EncodeReclaimFlowRequest(1, {2, std::string(kReasonBytesMax, 'r'), kTokens}, &reclaim);
  h.Send(h.Connect("10.0.0.1:5"), reclaim.view());
  REQUIRE(h.core().books().tokens().size() == kTokens);
  h.Send(client, releases);
  CHECK_FALSE(h.driver().socket(client).reading);
  CHECK(h.core().books().tokens().size() < kTokens);
  CHECK(h.core().books().tokens().size() >= kTokens / 2);
  h.Settle();
  CHECK(h.TakeIds(client) == Ids(1, kTokens));
  CHECK(h.core().books().tokens().size() == 0);
}

}  // namespace
}  // namespace nowcalls::engine
