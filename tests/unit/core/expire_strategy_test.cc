// Expire strategies and the mass expiry guard.
#include "nowcalls/expire_strategy.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/mass_expiry_guard.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

// Sessions c0, c1, ... with a token each.
std::vector<SessionSlot> Crowd(CoreHarness* h, int size) {
  std::vector<SessionSlot> sessions;
  for (int i = 0; i < size; ++i) {
    sessions.push_back(h->Hello("c" + std::to_string(i)));
    h->Take(sessions.back(), 1);
  }
  return sessions;
}

std::vector<testing::RuleOptions> SlowRule() {
  return {{.flow = 1, .count = 1000, .resource_timeout_ms = 100'000, .client_offline_ms = 2000}};
}

TEST_CASE("when half of 100 clients are cut off their tokens are kept five times as long") {
  CoreHarness h;
  h.Rules(SlowRule());
  const auto crowd = Crowd(&h, 100);
  h.core().TakeNotices();
  for (int i = 0; i < 50; ++i) h.Goodbye(crowd[static_cast<size_t>(i)]);
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 100);
  CHECK(h.NoticesText() ==
        "mass expiry guard: 50 of 100 sessions went offline within 2000 ms of each other, rather a "
        "network cut than a mass death; the expire strategy may keep their tokens longer\n");
  CHECK(h.core().mass_expiries() == 1);
  CHECK(h.core().mass_sessions() == 50);
  h.Pass(7999);
  CHECK(h.NowCalls(1) == 100);
  h.Hello("c7");
  h.Pass(1);
  CHECK(h.NowCalls(1) == 51);
  CHECK(h.Ended(1, EndReason::kClientOffline) == 49);
}

TEST_CASE("when 10 of 100 clients die their tokens are reclaimed on time") {
  CoreHarness h;
  h.Rules(SlowRule());
  const auto crowd = Crowd(&h, 100);
  for (int i = 0; i < 10; ++i) h.Goodbye(crowd[static_cast<size_t>(i)]);
  h.Pass(1999);
  CHECK(h.NowCalls(1) == 100);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 90);
  CHECK(h.core().mass_expiries() == 0);
}

TEST_CASE("a few clients are no mass even when they are all there are") {
  CoreHarness h;
  h.Rules(SlowRule());
  for (const SessionSlot session : Crowd(&h, 9)) h.Goodbye(session);
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("clients that leave one after the other are no mass") {
  CoreHarness h;
  h.Rules(SlowRule());
  for (const SessionSlot session : Crowd(&h, 40)) {
    h.Goodbye(session);
    h.Pass(500);
  }
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().mass_expiries() == 0);
}

TEST_CASE("who was cut off and came back is an ordinary client again") {
  CoreHarness h;
  h.Rules(SlowRule());
  const auto crowd = Crowd(&h, 20);
  for (const SessionSlot session : crowd) h.Goodbye(session);
  h.Pass(3000);
  CHECK(h.core().mass_expiries() == 1);
  std::vector<SessionSlot> back;
  for (int i = 0; i < 20; ++i) back.push_back(h.Hello("c" + std::to_string(i)));
  h.Pass(200'000 - 10'000);
  CHECK(h.NowCalls(1) == 20);
  h.Goodbye(back[0]);
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 19);
}

TEST_CASE("tokens of clients that were cut off do not time out before their grace is over") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1000, .resource_timeout_ms = 1000, .client_offline_ms = 2000}});
  for (const SessionSlot session : Crowd(&h, 20)) h.Goodbye(session);
  h.Pass(9500);  // Past the hold of 2 s; the grace is 10 s.
  CHECK(h.NowCalls(1) == 20);
  h.Pass(1000);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("the guard can be turned off, made sensitive, and made patient") {
  auto options = testing::HarnessOptions();
  SUBCASE("off") {
    options.mass_expiry.percent = 0;
    CoreHarness h(options);
    h.Rules(SlowRule());
    for (const SessionSlot session : Crowd(&h, 20)) h.Goodbye(session);
    h.Pass(2000);
    CHECK(h.NowCalls(1) == 0);
  }
  SUBCASE("sensitive and patient") {
    options.mass_expiry = {.sessions_min = 2, .percent = 10};
    options.mass_expiry_factor = 20;
    CoreHarness h(options);
    h.Rules(SlowRule());
    const auto crowd = Crowd(&h, 20);
    h.Goodbye(crowd[0]);
    h.Goodbye(crowd[1]);
    h.Pass(39'999);
    CHECK(h.NowCalls(1) == 20);
    h.Pass(1);
    CHECK(h.NowCalls(1) == 18);
  }
}

TEST_CASE("the strict strategy reclaims at once: after a cut, after a restart") {
  auto options = testing::HarnessOptions();
  options.expire_strategy = std::make_shared<StrictExpireStrategy>();
  CoreHarness h(options);
  h.Rules({{.flow = 1, .count = 1000, .resource_timeout_ms = 5000, .client_offline_ms = 2000},
           {.flow = 2, .count = 1000, .resource_timeout_ms = 500, .client_offline_ms = 60'000}});
  for (const SessionSlot session : Crowd(&h, 20)) h.Goodbye(session);
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 0);
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Take(a, 2);
  h.Restart(1500);
  h.Pass(200);
  CHECK(h.NowCalls(2) == 0);
  CHECK(h.NowCalls(1) == 1);
  h.Pass(1800);
  CHECK(h.NowCalls(1) == 0);
}

// The example of the header.
class PatientWithSeven : public ExpireStrategy {
 public:
  ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& holder,
                        int64_t now_ms) override {
    if (token.flow.value == 7 && holder.online) return ExpireDecision::ExtendUntil(now_ms + 60'000);
    return default_.Decide(token, holder, now_ms);
  }

 private:
  DefaultExpireStrategy default_;
};

TEST_CASE("a strategy of one's own decides, and what it extends is durable") {
  auto options = testing::HarnessOptions();
  options.expire_strategy = std::make_shared<PatientWithSeven>();
  CoreHarness h(options);
  h.Rules({{.flow = 7, .resource_timeout_ms = 500, .client_offline_ms = 600'000},
           {.flow = 8, .resource_timeout_ms = 500, .client_offline_ms = 600'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 7);
  h.Take(a, 8);
  h.Pass(1300);
  CHECK(h.NowCalls(7) == 1);
  CHECK(h.NowCalls(8) == 0);
  const auto tokens = testing::ReadLedger(&h.store()).tokens;
  REQUIRE(tokens.size() == 1);
  CHECK(tokens[0].key.deadline_ms > h.now().ms + 59'000);
  h.Pass(120'000);
  CHECK(h.NowCalls(7) == 1);
  h.Goodbye(a);
  h.Pass(62'000);
  CHECK(h.NowCalls(7) == 0);
}

class LeavesTwice : public ExpireStrategy {
 public:
  ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& /*holder*/,
                        int64_t /*now_ms*/) override {
    causes.push_back(token.cause);
    return causes.size() <= 2 ? ExpireDecision::Leave() : ExpireDecision::Reclaim();
  }
  std::vector<ExpireCause> causes;
};

TEST_CASE("a token that is left is asked about again at the next sweep") {
  auto strategy = std::make_shared<LeavesTwice>();
  auto options = testing::HarnessOptions();
  options.expire_strategy = strategy;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .resource_timeout_ms = 500, .client_offline_ms = 300}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  SUBCASE("after its hold") {
    h.Pass(1100);
    CHECK(h.NowCalls(1) == 1);
    h.Pass(200);
    CHECK(strategy->causes == std::vector(3, ExpireCause::kResourceTimeout));
  }
  SUBCASE("of an offline client") {
    h.Goodbye(a);
    h.Pass(499);
    CHECK(h.NowCalls(1) == 1);
    h.Pass(1);
    CHECK(strategy->causes == std::vector(3, ExpireCause::kClientOffline));
  }
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("the guard counts within a window and forgets what is long ago") {
  MassExpiryGuard guard({.sessions_min = 3, .percent = 50});
  guard.WentOffline(1000);
  guard.WentOffline(1000);
  CHECK_FALSE(guard.Judge(1000, 500, 0).mass);
  guard.WentOffline(1400);
  CHECK(guard.Judge(1000, 500, 3).mass);
  CHECK(guard.Judge(1400, 500, 3).mass);
  CHECK(guard.Judge(1000, 500, 3).lost == 3);
  CHECK(guard.Judge(1000, 500, 3).sessions == 6);
  CHECK_FALSE(guard.Judge(1000, 500, 4).mass);
  CHECK_FALSE(guard.Judge(1000, 300, 0).mass);
  guard.CameBack(1400);
  CHECK(guard.Judge(1000, 500, 3).lost == 3);
  CHECK(guard.Judge(1000, 500, 3).sessions == 5);
  guard.CameBack(77);  // Never lost: nothing happens.
  const int64_t later_ms = 1000 + 3 * MassExpiryGuard::kWindowMsMax;
  guard.WentOffline(later_ms);
  CHECK(guard.Judge(1000, 500, 0).lost == 0);
  CHECK(guard.Judge(later_ms, INT64_MAX / 4, 0).lost == 1);
}

}  // namespace
}  // namespace nowcalls::core
