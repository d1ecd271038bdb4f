// How far is looked ahead. That it helps a benchmark shows, not a test.
#include "engine/rpc/look_ahead.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/engine_harness.h"

namespace nowcalls::engine::rpc {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::TokenRequest;
using wire::Method;

struct ManyFlows {
  static constexpr int64_t kFlows = core::kTableSizes.many_flows;
  static constexpr double kLevel = 10'000;

  explicit ManyFlows(const Limits& limits = Limits()) : h(limits, Rules()) {
    REQUIRE(AreMany(h.core().flows()));
  }
  static std::vector<testing::RuleOptions> Rules() {
    std::vector<testing::RuleOptions> rules;
    for (int64_t flow = 1; flow <= kFlows; ++flow) rules.push_back({.flow = flow, .count = kLevel});
    return rules;
  }
  // What Next says to each of the messages that `input` begins with, until it says nothing.
  std::vector<size_t> Sizes(std::string_view input) {
    LookAhead ahead(h.core().books());
    std::vector<size_t> sizes;
    for (;;) {
      const size_t size = ahead.Next(input);
      if (size == 0) return sizes;
      sizes.push_back(size);
      input.remove_prefix(size);
    }
  }

  EngineHarness h;
};

using Sizes = std::vector<size_t>;

TEST_CASE("the sizes of whole messages are found ahead, however many there are") {
  ManyFlows many;
  const std::string acquire = AcquireRequest(1, 1);
  const std::string release = TokenRequest(2, Method::kRelease, 1);
  CHECK(many.Sizes("") == Sizes{});
  CHECK(many.Sizes(acquire.substr(0, acquire.size() - 1)) == Sizes{});
  CHECK(many.Sizes(acquire) == Sizes{acquire.size()});
  CHECK(many.Sizes(acquire + release + acquire.substr(0, 5)) ==
        Sizes{acquire.size(), release.size()});
  // Flows that do not exist, a message that does not, and bytes that begin none.
  CHECK(many.Sizes(AcquireRequest(1, INT64_MAX) + AcquireRequest(1, -1)).size() == 2);
  CHECK(many.Sizes(acquire + "\x94\xc1") == Sizes{acquire.size()});
  CHECK(many.Sizes("GET / HTTP/1.1\r\n") == Sizes{});

  const std::string ping = PlainRequest(3, Method::kPing);
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += ping;
  CHECK(many.Sizes(pings) == Sizes(1000, ping.size()));
  const std::string long_one = acquire.substr(0, 3) + "\xda\x07\xd0";
  CHECK(many.Sizes(ping + long_one + std::string(10'000, 'x')) == Sizes{ping.size()});
}

TEST_CASE("with few flows nobody looks ahead") {
  EngineHarness h;
  LookAhead ahead(h.core().books());
  CHECK(ahead.Next(AcquireRequest(1, 1)) == 0);
}

TEST_CASE("releases are answered alike, also of tokens that end after they were looked at") {
  ManyFlows many;
  const ConnectionId c = many.h.Connect();
  std::string requests;
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 40; ++i) {
    ids.push_back(100 + i);
    requests += AcquireRequest(ids.back(), 1 + i);
  }
  many.h.Send(c, requests);
  many.h.Settle();
  many.h.TakeIds(c);
  REQUIRE(many.h.core().books().tokens().size() == 40);
  std::string releases;
  const core::TokenTable& tokens = many.h.core().books().tokens();
  std::vector<uint64_t> wanted;
  for (core::TokenSlot slot = tokens.all().head; slot != core::kNoToken;
       slot = tokens.at(slot).next(core::TokenOrder::kAll)) {
    wanted.push_back(many.h.core().books().IdOf(tokens.at(slot)).value);
    CHECK(tokens.GuessRecent(tokens.at(slot).fence) == slot);
  }
  // Those of the second time have ended since they were looked at: a look sees 32 messages, and
  // loads three ahead.
  for (size_t begin = 0; begin < wanted.size(); begin += 8) {
    for (size_t i = 0; i < 16; ++i) {
      releases += TokenRequest(7, Method::kRelease, wanted[begin + i % 8]);
    }
  }
  for (const uint64_t other : {wanted[0] + 1, uint64_t{0}, UINT64_MAX}) {
    releases += TokenRequest(7, Method::kRelease, other);
  }
  many.h.Send(c, releases);
  many.h.Settle();
  CHECK(many.h.TakeIds(c) == std::vector<uint32_t>(83, 7));
  CHECK(many.h.core().books().tokens().size() == 0);
}

// What a look sees, and more, with messages that it does not.
struct Requests {
  Requests() {
    for (uint32_t i = 0; i < 20; ++i) Add(AcquireRequest(100 + i, 1 + i * 7), 100 + i);
    for (uint32_t i = 0; i < 20; ++i) Add(PlainRequest(200 + i, Method::kPing), 200 + i);
    // Refused, and too long to be looked at.
    Add(HelloRequest(300, "default", std::string(1200, 'x')), 300);
    for (uint32_t i = 0; i < 20; ++i) Add(AcquireRequest(400 + i, 1 + i * 11), 400 + i);
  }
  void Add(const std::string& request, uint32_t id) {
    bytes += request;
    ids.insert(id);
  }

  std::string bytes;
  std::set<uint32_t> ids;
};

// Answers that wait for no commit come before others.
std::set<uint32_t> TakeIdSet(EngineHarness* h, ConnectionId c) {
  const std::vector<uint32_t> ids = h->TakeIds(c);
  std::set<uint32_t> set(ids.begin(), ids.end());
  CHECK(set.size() == ids.size());
  return set;
}

TEST_CASE("with many flows requests are answered as with few, byte by byte, too") {
  const Requests requests;
  std::string expected;
  {
    std::vector<testing::RuleOptions> rules = ManyFlows::Rules();
    rules.resize(static_cast<size_t>(ManyFlows::kFlows) / 2);
    EngineHarness few({}, rules);
    REQUIRE_FALSE(AreMany(few.core().flows()));
    const ConnectionId c = few.Connect();
    few.Send(c, requests.bytes);
    few.Settle();
    expected = few.driver().socket(c).written;
    CHECK(TakeIdSet(&few, c) == requests.ids);
  }
  ManyFlows whole;
  const ConnectionId c = whole.h.Connect();
  whole.h.Send(c, requests.bytes);
  whole.h.Settle();
  CHECK((whole.h.driver().socket(c).written == expected));
  ManyFlows bytes;
  const ConnectionId d = bytes.h.Connect();
  for (const char& byte : requests.bytes) bytes.h.Send(d, {&byte, 1});
  bytes.h.Settle();
  CHECK((bytes.h.driver().socket(d).written == expected));
}

TEST_CASE("with many flows requests that are cut anywhere are answered") {
  const Requests requests;
  ManyFlows many;
  const ConnectionId c = many.h.Connect();
  for (size_t cut = 1; cut < requests.bytes.size(); ++cut) {
    CAPTURE(cut);
    many.h.Send(c, requests.bytes.substr(0, cut));
    many.h.Send(c, requests.bytes.substr(cut));
    many.h.Settle();
    if (TakeIdSet(&many.h, c) != requests.ids) FAIL("answers are missing");
  }
  CHECK(many.h.core().books().tokens().size() == 40 * (requests.bytes.size() - 1));
}

TEST_CASE("with many flows a connection that has to wait goes on where it was") {
  Limits limits;
  limits.requests_in_flight_max = 8;
  ManyFlows many(limits);
  const ConnectionId c = many.h.Connect();
  std::string requests;
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 100; ++i) {
    ids.push_back(100 + i);
    requests += AcquireRequest(ids.back(), 1 + i);
  }
  many.h.Send(c, requests);
  CHECK(many.h.core().books().tokens().size() == 8);
  many.h.Settle();
  CHECK(many.h.TakeIds(c) == ids);
  CHECK(many.h.core().books().tokens().size() == 100);
}

TEST_CASE("with many flows what is no request is refused, and all before it answered") {
  for (const std::string& wrong : {std::string("GET / HTTP/1.1\r\n"), std::string("\x94\xc1"),
                                   std::string("\xdc\x00\x04", 3)}) {
    CAPTURE(wrong);
    ManyFlows many;
    const ConnectionId c = many.h.Connect();
    std::string bytes;
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < 40; ++i) {
      ids.push_back(100 + i);
      bytes += AcquireRequest(ids.back(), 1 + i);
    }
    many.h.Send(c, bytes + wrong + PlainRequest(1, Method::kPing));
    many.h.Settle();
    CHECK(many.h.TakeIds(c) == ids);
    CHECK(many.h.driver().socket(c).closed);
    CHECK(many.h.core().books().tokens().size() == 40);
  }
}

}  // namespace
}  // namespace nowcalls::engine::rpc
