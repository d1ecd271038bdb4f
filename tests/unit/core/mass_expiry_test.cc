// The mass expiry guard in the core: who counts, among whom, within which window, and when.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

testing::RuleOptions MassRule(int64_t flow, int64_t client_offline_ms) {
  return {.flow = flow,
          .count = 10'000,
          .resource_timeout_ms = 100'000'000,
          .client_offline_ms = client_offline_ms};
}

// Sessions NAME0, NAME1, ... with a token each.
std::vector<SessionSlot> Crowd(CoreHarness* h, int size, const std::string& name = "c") {
  std::vector<SessionSlot> sessions;
  for (int i = 0; i < size; ++i) {
    sessions.push_back(h->Hello(name + std::to_string(i)));
    h->Take(sessions.back(), 1);
  }
  return sessions;
}

TEST_CASE("clients that hold nothing come and go without making a death a mass") {
  CoreHarness h;
  h.Rules({MassRule(1, 2000)});
  Crowd(&h, 5);
  const SessionSlot victim = h.Hello("victim");
  h.Take(victim, 1);
  h.Goodbye(victim);
  for (int i = 0; i < 12; ++i) h.Goodbye(h.Hello("idle"));
  for (int i = 0; i < 12; ++i) h.Goodbye(h.Hello("job" + std::to_string(i)));
  h.Pass(1999);
  CHECK(h.NowCalls(1) == 6);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 5);
  CHECK(h.core().mass_expiry().masses() == 0);
}

TEST_CASE("jobs that take a token, give it back and leave make no death a mass") {
  CoreHarness h;
  h.Rules({MassRule(1, 2000)});
  Crowd(&h, 2);
  const SessionSlot victim = h.Hello("victim");
  h.Take(victim, 1);
  h.Goodbye(victim);
  for (int i = 0; i < 30; ++i) {
    const SessionSlot job = h.Hello("job" + std::to_string(i));
    h.Release(job, h.Take(job, 1));
    h.Goodbye(job);
  }
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 2);
}

TEST_CASE("a client whose connection comes and goes counts once") {
  CoreHarness h;
  h.Rules({MassRule(1, 2000)});
  const auto crowd = Crowd(&h, 8);
  for (int i = 0; i < 20; ++i) {
    h.Goodbye(crowd[0]);
    h.Pass(50);
    REQUIRE(h.Hello("c0") == crowd[0]);
  }
  h.Goodbye(crowd[0]);
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 7);
}

TEST_CASE("a client whose tokens are taken back each time counts no more") {
  CoreHarness h;
  h.Rules({MassRule(1, 2000)});
  Crowd(&h, 3);
  for (int i = 0; i < 15; ++i) {
    const SessionSlot job = h.Hello("job");
    const TokenId token = h.Take(job, 1);
    h.Goodbye(job);
    h.Reclaim(token);
  }
  const SessionSlot victim = h.Hello("victim");
  h.Take(victim, 1);
  h.Goodbye(victim);
  h.Pass(2000);
  CHECK(h.NowCalls(1) == 3);
}

TEST_CASE("sessions without a client id make no mass and are none") {
  CoreHarness h;
  h.Rules({MassRule(1, 2000)});
  std::vector<SessionSlot> unnamed;
  for (int i = 0; i < 20; ++i) {
    unnamed.push_back(h.HelloUnnamed("@127.0.0.1:" + std::to_string(i + 1)));
    h.Take(unnamed.back(), 1);
  }
  const auto crowd = Crowd(&h, 10);
  for (const SessionSlot session : unnamed) h.Goodbye(session);
  SUBCASE("among clients that stay") {
    h.Goodbye(crowd[0]);
    h.Pass(2000);
    CHECK(h.NowCalls(1) == 9);
  }
  SUBCASE("among clients that are cut off too") {
    for (const SessionSlot session : crowd) h.Goodbye(session);
    h.Pass(2000);
    CHECK(h.NowCalls(1) == 10);
    CHECK(h.core().mass_expiry().sessions() == 10);
  }
}

TEST_CASE("a mass is a part of those that hold tokens, not of all that are connected") {
  CoreHarness h;
  h.Rules({MassRule(1, 2000)});
  for (int i = 0; i < 200; ++i) h.Hello("idle" + std::to_string(i));
  const auto crowd = Crowd(&h, 24);
  SUBCASE("half of them") {
    for (size_t i = 0; i < 12; ++i) h.Goodbye(crowd[i]);
    h.NoticesText();
    h.Pass(2000);
    CHECK(h.NowCalls(1) == 24);
    CHECK(h.NoticesText().find("12 of 24 sessions with tokens") != std::string::npos);
  }
  SUBCASE("less than half") {
    for (size_t i = 0; i < 11; ++i) h.Goodbye(crowd[i]);
    h.Pass(2000);
    CHECK(h.NowCalls(1) == 13);
  }
}

TEST_CASE("those that are back soon are part of the cut, and of those there were") {
  CoreHarness h;
  h.Rules({MassRule(1, 2000)});
  std::vector<TokenId> tokens;
  std::vector<SessionSlot> crowd;
  for (int i = 0; i < 20; ++i) {
    crowd.push_back(h.Hello("c" + std::to_string(i)));
    tokens.push_back(h.Take(crowd.back(), 1));
  }
  for (const SessionSlot session : crowd) h.Goodbye(session);
  h.Pass(500);
  for (size_t i = 0; i < 15; ++i) {
    REQUIRE(h.Hello("c" + std::to_string(i)) == crowd[i]);
    h.Release(crowd[i], tokens[i]);
  }
  h.NoticesText();
  h.Pass(1500);
  CHECK(h.NowCalls(1) == 5);
  CHECK(h.core().mass_expiry().sessions() == 5);
  CHECK(h.NoticesText().find("20 of 20 sessions with tokens") != std::string::npos);
}

TEST_CASE("clients of a patient rule are judged while the guard remembers their cut") {
  CoreHarness h;
  h.Rules({MassRule(1, 150'000), MassRule(2, 2000)});
  const auto crowd = Crowd(&h, 12);
  SUBCASE("that hold nothing else") {}
  SUBCASE("one of which holds a token of an impatient rule too") { h.Take(crowd[0], 2); }
  for (const SessionSlot session : crowd) h.Goodbye(session);
  for (int i = 1; i <= 8; ++i) {
    h.Pass(18'000);
    const SessionSlot late = h.Hello("late" + std::to_string(i));
    h.Take(late, 2);
    h.Goodbye(late);
  }
  CHECK(h.core().mass_expiry().sessions() == 12);
  h.Pass(600'000 - 8 * 18'000 + 149'999);
  CHECK(h.NowCalls(1) == 12);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("clients of a patient rule that go one by one are reclaimed on time") {
  CoreHarness h;
  h.Rules({MassRule(1, 150'000)});
  for (const SessionSlot session : Crowd(&h, 12)) {
    h.Goodbye(session);
    h.Pass(15'000);
  }
  h.Pass(150'000 - 15'000);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().mass_expiry().masses() == 0);
}

TEST_CASE("rules of others that are loaded while clients are online change nothing for the guard") {
  CoreHarness h;
  h.Rules({MassRule(1, 3000)});
  const auto crowd = Crowd(&h, 14);
  h.Rules({MassRule(99, 20)}, "other");
  for (const SessionSlot session : crowd) {
    h.Goodbye(session);
    h.Pass(150);
  }
  h.Pass(3000);
  CHECK(h.NowCalls(1) == 14);
  CHECK(h.core().mass_expiry().sessions() == 14);
}

TEST_CASE("a rule without tokens that is loaded has no absent client looked at") {
  CoreHarness h;
  h.Rules({MassRule(1, 3000), MassRule(2, 5000)});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Goodbye(a);
  const Instant due = h.now() + 3000;
  CHECK(h.core().NextDeadline() == due);
  h.Rules({MassRule(99, 20)}, "other");
  h.Rules({MassRule(1, 3000), MassRule(2, 20)});
  CHECK(h.core().NextDeadline() == due);
  h.Rules({MassRule(1, 1000), MassRule(2, 20)});
  CHECK(h.core().NextDeadline() == due + -2000);
}

TEST_CASE("a token is judged by the window of its own rule") {
  CoreHarness h;
  h.Rules({MassRule(1, 3000), MassRule(2, 20)});
  const auto crowd = Crowd(&h, 14);
  const SessionSlot first = crowd[0];
  SUBCASE("also when its client once held one of another rule") {
    h.Release(first, h.Take(first, 2));
  }
  SUBCASE("also when another token of its client is judged before") { h.Take(first, 2); }
  for (const SessionSlot session : crowd) {
    h.Goodbye(session);
    h.Pass(150);
  }
  h.Pass(3000);
  CHECK(h.NowCalls(1) == 14);
  CHECK(h.NowCalls(2) == 0);
  CHECK(h.core().mass_expiry().masses() == 1);
  CHECK(h.core().mass_expiry().sessions() == 14);
}

TEST_CASE("a loop that is late still judges each token by the window of its own rule") {
  CoreHarness h;
  h.Rules({MassRule(1, 3000), MassRule(2, 20)});
  std::vector<SessionSlot> crowd;
  for (int i = 0; i < 14; ++i) {
    crowd.push_back(h.Hello("c" + std::to_string(i)));
    h.Take(crowd.back(), 2);
    h.Take(crowd.back(), 1);
  }
  for (const SessionSlot session : crowd) {
    h.Goodbye(session);
    h.Sleep(150);
  }
  h.Sleep(3000);
  h.DoDue();
  CHECK(h.NowCalls(1) == 14);
  CHECK(h.NowCalls(2) == 0);
}

TEST_CASE("a loss that the guard has forgotten when it is judged is no mass") {
  CoreHarness h;
  h.Rules({MassRule(1, 600'000)});
  const auto crowd = Crowd(&h, 2);
  h.Goodbye(crowd[0]);
  h.Sleep(MassExpiryGuard::kRememberedMs + 1000);
  h.Goodbye(crowd[1]);
  h.DoDue();
  CHECK(h.core().mass_expiry().masses() == 0);
  CHECK(h.core().mass_expiry().sessions() == 0);
  CHECK(h.NoticesText().find("mass expiry guard") == std::string::npos);
}

TEST_CASE("masses that follow each other closely all count, and are told of once a second") {
  CoreHarness h;
  h.Rules({MassRule(1, 1)});
  const auto masses_told = [&h](int masses) {
    for (int i = 0; i < masses; ++i) {
      for (const SessionSlot session : Crowd(&h, 12, std::to_string(i) + "-")) h.Goodbye(session);
      h.Pass(100);
    }
    const std::string text = h.NoticesText();
    size_t told = 0;
    for (size_t at = 0; (at = text.find("mass expiry guard", at)) != std::string::npos; ++at) {
      ++told;
    }
    return told;
  };
  CHECK(masses_told(9) == 1);
  CHECK(h.core().mass_expiry().masses() == 9);
  CHECK(masses_told(11) == 1);
  CHECK(h.core().mass_expiry().masses() == 20);
}

}  // namespace
}  // namespace nowcalls::core
