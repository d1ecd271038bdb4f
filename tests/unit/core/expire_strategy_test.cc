// Expire strategies, and what they do for clients that were cut off together.
#include "nowcalls/expire_strategy.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/books.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

// Sessions c0, c1, ... with a token each.
std::vector<SessionSlot> AcquireAll(CoreHarness* h, int size) {
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
  const auto crowd = AcquireAll(&h, 100);
  h.core().TakeNotices();
  for (int i = 0; i < 50; ++i) h.Goodbye(crowd[static_cast<size_t>(i)]);
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 100);
  CHECK(h.NoticesText() ==
        "mass expiry guard: 50 of 100 sessions with tokens went offline within 2000 ms of each "
        "other, rather a network cut than a mass death; their tokens are kept for 5 times the "
        "clientOfflineTime of their rules\n");
  CHECK(h.core().mass_expiry().masses() == 1);
  CHECK(h.core().mass_expiry().sessions() == 50);
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
  const auto crowd = AcquireAll(&h, 100);
  for (int i = 0; i < 10; ++i) h.Goodbye(crowd[static_cast<size_t>(i)]);
  h.Pass(1999);
  CHECK(h.NowCalls(1) == 100);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 90);
  CHECK(h.core().mass_expiry().masses() == 0);
}

TEST_CASE("a few clients are no mass even when they are all there are") {
  CoreHarness h;
  h.Rules(SlowRule());
  for (const SessionSlot session : AcquireAll(&h, 9)) h.Goodbye(session);
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("clients that leave one after the other are no mass") {
  CoreHarness h;
  h.Rules(SlowRule());
  for (const SessionSlot session : AcquireAll(&h, 40)) {
    h.Goodbye(session);
    h.Pass(500);
  }
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().mass_expiry().masses() == 0);
}

TEST_CASE("who was cut off and came back is an ordinary client again") {
  CoreHarness h;
  h.Rules(SlowRule());
  const auto crowd = AcquireAll(&h, 20);
  for (const SessionSlot session : crowd) h.Goodbye(session);
  h.Pass(3000);
  CHECK(h.core().mass_expiry().masses() == 1);
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
  for (const SessionSlot session : AcquireAll(&h, 20)) h.Goodbye(session);
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
    for (const SessionSlot session : AcquireAll(&h, 20)) h.Goodbye(session);
    h.Pass(2000);
    CHECK(h.NowCalls(1) == 0);
  }
  SUBCASE("sensitive and patient") {
    options.mass_expiry = {.sessions_min = 2, .percent = 10};
    options.mass_expiry_factor = 20;
    CoreHarness h(options);
    h.Rules(SlowRule());
    const auto crowd = AcquireAll(&h, 20);
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
  for (const SessionSlot session : AcquireAll(&h, 20)) h.Goodbye(session);
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

TEST_CASE("no strategy holds a token beyond its rule's maxHoldMs") {
  auto options = testing::HarnessOptions();
  options.expire_strategy = std::make_shared<PatientWithSeven>();
  CoreHarness h(options);
  h.Rules(
      {{.flow = 7, .resource_timeout_ms = 500, .client_offline_ms = 600'000, .max_hold_ms = 5000}});
  h.Take(h.Hello("a"), 7);
  h.Pass(4999);
  CHECK(h.NowCalls(7) == 1);
  h.Pass(165);
  CHECK(h.NowCalls(7) == 0);
}

TEST_CASE("a network cut spares tokens until their maxHoldMs is over") {
  CoreHarness h(testing::HarnessOptions());
  h.Rules({{.flow = 1, .count = 1000, .resource_timeout_ms = 500, .client_offline_ms = 2000},
           {.flow = 2,
            .count = 1000,
            .resource_timeout_ms = 500,
            .client_offline_ms = 2000,
            .max_hold_ms = 3000}});
  const std::vector<SessionSlot> crowd = AcquireAll(&h, 20);
  for (const SessionSlot session : crowd) h.Take(session, 2);
  const int64_t spared = h.NowCalls(1);
  for (const SessionSlot session : crowd) h.Goodbye(session);
  h.Pass(2999);
  CHECK(h.NowCalls(1) == spared);
  CHECK(h.NowCalls(2) == 20);
  h.Pass(200);
  CHECK(h.NowCalls(1) == spared);
  CHECK(h.NowCalls(2) == 0);
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

// Extends as it is told for each flow, once, and then reclaims.
class ExtendsByFlow : public ExpireStrategy {
 public:
  ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& holder,
                        int64_t now_ms) override {
    asked.push_back(std::to_string(token.flow.value) + " after " +
                    std::to_string(now_ms - holder.offline_since_ms));
    const auto wait = wait_ms.extract(token.flow.value);
    if (wait.empty()) return ExpireDecision::Reclaim();
    return ExpireDecision::ExtendUntil(wait.mapped() == 0 ? 0 : now_ms + wait.mapped());
  }
  std::map<int64_t, int64_t> wait_ms;
  std::vector<std::string> asked;
};

std::vector<testing::RuleOptions> RulesWithOfflineTimes(const std::vector<int64_t>& times_ms) {
  std::vector<testing::RuleOptions> rules;
  for (const int64_t time_ms : times_ms) {
    rules.push_back({.flow = static_cast<int64_t>(rules.size()) + 1,
                     .count = 1e6,
                     .resource_timeout_ms = 100'000'000,
                     .client_offline_ms = time_ms});
  }
  return rules;
}

TEST_CASE("an extended token of an absent client is asked about at that moment and not before") {
  auto strategy = std::make_shared<ExtendsByFlow>();
  strategy->wait_ms = {{1, 4000}, {2, 500}};
  auto options = testing::HarnessOptions();
  options.expire_strategy = strategy;
  CoreHarness h(options);
  h.Rules(RulesWithOfflineTimes({1000, 2000, 3000}));
  const SessionSlot a = h.Hello("a");
  for (int64_t flow = 1; flow <= 3; ++flow) h.Take(a, flow);
  h.Goodbye(a);
  SUBCASE("while other tokens of it become due") {
    h.Pass(10'000);
    CHECK(strategy->asked == std::vector<std::string>{"1 after 1000", "2 after 2000",
                                                      "2 after 2500", "3 after 3000",
                                                      "1 after 5000"});
  }
  SUBCASE("while rules change") {
    h.Pass(1500);
    auto rules = RulesWithOfflineTimes({500, 1600, 3000});
    h.Rules(rules);
    h.Pass(400);
    CHECK(strategy->asked == std::vector<std::string>{"1 after 1000", "2 after 1600"});
    rules[0].client_offline_ms = 6000;
    h.Rules(rules);
    h.Pass(10'000);
    CHECK(strategy->asked == std::vector<std::string>{"1 after 1000", "2 after 1600",
                                                      "2 after 2100", "3 after 3000",
                                                      "1 after 6000"});
  }
  CHECK(h.core().books().tokens().size() == 0);
  CHECK(h.core().books().sessions().size() == 0);
}

TEST_CASE("what was extended for an absence does not count in the next one") {
  auto strategy = std::make_shared<ExtendsByFlow>();
  strategy->wait_ms = {{1, 60'000}};
  auto options = testing::HarnessOptions();
  options.expire_strategy = strategy;
  CoreHarness h(options);
  h.Rules(RulesWithOfflineTimes({1000}));
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Goodbye(a);
  h.Pass(5000);
  REQUIRE(h.NowCalls(1) == 1);
  h.Hello("a");
  h.Goodbye(a);
  h.Pass(999);
  CHECK(h.NowCalls(1) == 1);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("a token that ends while it is spared is not asked about again") {
  auto strategy = std::make_shared<ExtendsByFlow>();
  strategy->wait_ms = {{1, 1000}};
  auto options = testing::HarnessOptions();
  options.expire_strategy = strategy;
  CoreHarness h(options);
  h.Rules(RulesWithOfflineTimes({1000, 60'000}));
  const SessionSlot a = h.Hello("a");
  const TokenId spared = h.Take(a, 1);
  h.Take(a, 2);
  h.Goodbye(a);
  h.Pass(1500);
  h.Reclaim(spared);
  h.Pass(20'000);
  CHECK(strategy->asked == std::vector<std::string>{"1 after 1000"});
  CHECK(h.core().books().sessions().size() == 1);
}

// Leaves the oldest token each time and extends the others.
class LeavesTheOldest : public ExpireStrategy {
 public:
  ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& /*holder*/,
                        int64_t now_ms) override {
    ++asked;
    if (oldest.value == 0) oldest = token.id;
    if (token.id == oldest) return ExpireDecision::Leave();
    return ExpireDecision::ExtendUntil(now_ms + 10'000 + asked % 500);
  }
  TokenId oldest{0};
  int64_t asked = 0;
};

// Invariant 8.
TEST_CASE("asking again about one token of an absent client costs no look at its others") {
  constexpr int64_t kTokens = 5000;
  auto strategy = std::make_shared<LeavesTheOldest>();
  auto options = testing::HarnessOptions();
  options.expire_strategy = strategy;
  CoreHarness h(options);
  h.Rules(RulesWithOfflineTimes({1000}));
  const SessionSlot a = h.Hello("a");
  for (int64_t i = 0; i < kTokens; ++i) h.Take(a, 1);
  h.Goodbye(a);
  h.Pass(1000);
  CHECK(strategy->asked == kTokens);
  h.Sleep(100);
  h.core().OnTime(h.step());  // One step, which sees a thousand tokens at most.
  CHECK(strategy->asked == kTokens + 1);
  CHECK(h.core().NextDeadline() == h.now() + 100);
  h.Pass(8800);
  CHECK(strategy->asked == kTokens + 1 + 88);
  h.Pass(10'000);
  CHECK(strategy->asked > 2 * kTokens);
  CHECK(h.NowCalls(1) == kTokens);
}

class ExtendsForever : public ExpireStrategy {
 public:
  ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& /*holder*/,
                        int64_t /*now_ms*/) override {
    causes.push_back(token.cause);
    return ExpireDecision::ExtendUntil(INT64_MAX);
  }
  std::vector<ExpireCause> causes;
};

TEST_CASE("an extension lasts a year at most, whatever the strategy says") {
  auto strategy = std::make_shared<ExtendsForever>();
  auto options = testing::HarnessOptions();
  options.expire_strategy = strategy;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .resource_timeout_ms = 500, .client_offline_ms = 300}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  SUBCASE("of a token whose hold has passed") {
    h.Pass(1200);
    const int64_t deadline_ms = testing::ReadLedger(&h.store()).tokens.at(0).key.deadline_ms;
    CHECK(deadline_ms > h.now().ms + kExtendMsMax - 300);
    CHECK(deadline_ms <= h.now().ms + kExtendMsMax);
    h.Restart();
    CHECK(h.IsLive(token));
    CHECK(strategy->causes == std::vector(1, ExpireCause::kResourceTimeout));
  }
  SUBCASE("of a token of an absent client") {
    h.Goodbye(a);
    h.Pass(300);
    REQUIRE(strategy->causes == std::vector(1, ExpireCause::kClientOffline));
    h.Pass(1200);  // Its hold passes.
    CHECK(strategy->causes.size() == 2);
    CHECK(h.core().NextDeadline() == h.now() + (kExtendMsMax - 1200));
    h.Sleep(kExtendMsMax - 1200);
    h.core().OnTime(h.step());
    CHECK(strategy->causes.size() == 3);
    CHECK(h.IsLive(token));
  }
}

TEST_CASE("a grace that no clock reaches is an extension too") {
  DefaultExpireStrategy strategy({.restart_grace_ms = 0, .mass_factor = 1e300});
  ExpiredToken token;
  token.cause = ExpireCause::kClientOffline;
  token.client_offline_time_ms = 2000;
  TokenHolder holder;
  holder.offline_since_ms = 1000;
  holder.mass_offline = true;
  const ExpireDecision decision = strategy.Decide(token, holder, 5000);
  CHECK(decision.kind() == ExpireDecision::Kind::kExtend);
  CHECK(decision.until_ms() > 5000 + kExtendMsMax);
}

}  // namespace
}  // namespace nowcalls::core
