// How far is looked ahead. That it helps a benchmark shows, not a test.
#include "engine/look_ahead.h"

#include <doctest/doctest.h>

#include <string>

#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::PlainRequest;
using testing::TokenRequest;
using wire::Method;

TEST_CASE("what is looked at are whole messages, so many and within so many bytes") {
  EngineHarness h;
  const core::FlowTable& flows = h.core().flows();
  const std::string acquire = AcquireRequest(1, 1);
  const std::string release = TokenRequest(2, Method::kRelease, 1);
  CHECK(LookAhead("", flows) == 0);
  CHECK(LookAhead(acquire.substr(0, acquire.size() - 1), flows) == 0);
  CHECK(LookAhead(acquire, flows) == acquire.size());
  CHECK(LookAhead(acquire + release + acquire.substr(0, 5), flows) ==
        acquire.size() + release.size());
  // Flows that do not exist, a message that does not, and bytes that begin none.
  CHECK(LookAhead(AcquireRequest(1, 2) + AcquireRequest(1, -1), flows) > 0);
  CHECK(LookAhead(acquire + "\x94\xc1", flows) == acquire.size());
  CHECK(LookAhead("GET / HTTP/1.1\r\n", flows) == 0);

  const std::string ping = PlainRequest(3, Method::kPing);
  std::string many;
  for (int i = 0; i < 100; ++i) many += ping;
  CHECK(LookAhead(many, flows) == 16 * ping.size());
  const std::string long_one = acquire.substr(0, 3) + "\xda\x07\xd0";
  CHECK(LookAhead(ping + long_one + std::string(10'000, 'x'), flows) == ping.size());
}

TEST_CASE("with many flows each request is answered as with few") {
  constexpr int64_t kFlows = core::kTableSizes.many_flows;
  std::vector<testing::RuleOptions> rules;
  for (int64_t flow = 1; flow <= kFlows; ++flow) rules.push_back({.flow = flow, .count = 1});
  EngineHarness h({}, rules);
  REQUIRE(h.core().flows().many());
  const ConnectionId c = h.Connect();
  std::string requests;
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 40; ++i) {
    ids.push_back(100 + i);
    requests += AcquireRequest(ids.back(), 1 + i * kFlows / 40);
  }
  h.Send(c, requests);
  h.Settle();
  CHECK(h.TakeIds(c) == ids);
  CHECK(h.core().tokens().size() == 40);
}

}  // namespace
}  // namespace nowcalls::engine
