// The same calls give the same batches, byte for byte.
#include <doctest/doctest.h>

#include "base/prng.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

// The bytes of all batches of a random life, and the answers' ids.
std::string Record(uint64_t seed) {
  CoreHarness h;
  h.auto_commit = false;
  Prng prng(seed);
  std::vector<testing::RuleOptions> rules;
  for (int64_t flow = 1; flow <= 30; ++flow) {
    rules.push_back({.flow = flow * 7919, .resource_timeout_ms = prng.Between(100, 400'000)});
  }
  h.Rules(rules);
  std::vector<SessionSlot> sessions;
  for (int i = 0; i < 30; ++i) sessions.push_back(h.Hello("client-" + std::to_string(i * 31)));
  std::vector<TokenId> tokens;
  std::string bytes;
  for (int step = 0; step < 2000; ++step) {
    const SessionSlot session = sessions[prng.Below(sessions.size())];
    const auto answer = h.Acquire(session, prng.Between(1, 30) * 7919, prng.Between(1, 4));
    if (answer.status == TokenStatus::kOk) tokens.push_back(answer.token_id);
    bytes += std::to_string(answer.token_id.value) + " ";
    if (!tokens.empty()) {
      const TokenId token = tokens[prng.Below(tokens.size())];
      prng.Below(2) == 0 ? static_cast<void>(h.Release(session, token))
                         : static_cast<void>(h.Keep(session, token));
    }
    h.Sleep(prng.Between(0, 30));
    if (step == 1000) {
      for (size_t i = 0; i < 15; ++i) h.Goodbye(sessions[i]);
      sessions.erase(sessions.begin(), sessions.begin() + 15);
    }
    if (step == 1500) h.Rules({rules.begin() + 10, rules.end()});
    if (step % 10 != 0 || h.batch().empty()) continue;
    h.core().OnTime(h.step());
    h.ScanStep();
    h.core().Seal(h.step(), ClockSample{.boottime_ms = h.now().ms, .wall_ms = 0, .boot_id = {}});
    bytes += h.batch().bytes();
    REQUIRE(h.store().Commit(h.batch()).ok());
    h.batch().Clear();
  }
  return bytes;
}

TEST_CASE("the same calls give the same batches and answers, byte for byte") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::string first = Record(seed);
    const std::string second = Record(seed);
    CHECK(first.size() > 40'000);
    CHECK((first == second));
  }
  CHECK((Record(1) != Record(2)));
}

TEST_CASE("two cores loaded from one ledger go on with the same bytes") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1000}, {.flow = 2, .count = 1000}});
  for (int i = 0; i < 40; ++i) h.Take(h.Hello("c" + std::to_string(i % 13)), 1 + i % 2);
  h.auto_commit = false;
  std::string batches[2];
  for (std::string& batch : batches) {
    h.Restart();
    h.core().OnTime({h.now() + 60'000, &h.batch()});
    h.core().Seal({h.now() + 60'000, &h.batch()}, ClockSample{});
    batch = h.batch().bytes();
  }
  CHECK(batches[0].size() > 40 * 10);
  CHECK((batches[0] == batches[1]));
}

}  // namespace
}  // namespace nowcalls::core
