// How far is looked ahead. That it helps a benchmark shows, not a test.
#include "engine/look_ahead.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::PlainRequest;
using testing::TokenRequest;
using wire::Method;

struct ManyFlows {
  static constexpr int64_t kFlows = core::kTableSizes.many_flows;

  ManyFlows() : h({}, Rules()) { REQUIRE(h.core().flows().many()); }
  static std::vector<testing::RuleOptions> Rules() {
    std::vector<testing::RuleOptions> rules;
    for (int64_t flow = 1; flow <= kFlows; ++flow) rules.push_back({.flow = flow, .count = 1});
    return rules;
  }
  // What Next says to each of the messages that `input` begins with, until it says nothing.
  std::vector<size_t> Sizes(std::string_view input) {
    LookAhead ahead(h.core());
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
  LookAhead ahead(h.core());
  CHECK(ahead.Next(AcquireRequest(1, 1)) == 0);
}

TEST_CASE("tokens that are released are seen ahead, those that are not there too") {
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
  REQUIRE(many.h.core().tokens().size() == 40);
  std::string releases;
  const core::TokenTable& tokens = many.h.core().tokens();
  std::vector<uint64_t> wanted;
  for (core::TokenSlot slot = tokens.all().head; slot != core::kNoToken;
       slot = tokens.at(slot).next(core::TokenOrder::kAll)) {
    wanted.push_back(many.h.core().IdOf(tokens.at(slot)).value);
    CHECK(many.h.core().GuessRecent(TokenId{wanted.back()}) == slot);
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
  CHECK(many.h.core().tokens().size() == 0);
}

TEST_CASE("with many flows each request is answered as with few") {
  ManyFlows many;
  EngineHarness& h = many.h;
  const ConnectionId c = h.Connect();
  std::string requests;
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 40; ++i) {
    ids.push_back(100 + i);
    requests += AcquireRequest(ids.back(), 1 + i * ManyFlows::kFlows / 40);
  }
  h.Send(c, requests);
  h.Settle();
  CHECK(h.TakeIds(c) == ids);
  CHECK(h.core().tokens().size() == 40);
}

}  // namespace
}  // namespace nowcalls::engine
