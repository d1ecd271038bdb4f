// The core against a model of absences: who is judged to have been cut off together, when, and what
// becomes of the tokens. The model counts everything anew each time and shares no code with the
// core. Rules change while clients are away. Times are multiples of 50 ms, the guard's resolution,
// and tokens never time out by themselves, so that everything is exact.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "core/books.h"
#include "support/core_harness.h"
#include "support/sample.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

constexpr int64_t kWindowMsMax = 60'000;
constexpr int64_t kRememberedMs = 3 * kWindowMsMax;
constexpr int64_t kNeverMs = INT64_MAX;
constexpr uint64_t kSessionsMin = 3;
constexpr int64_t kFactor = 3;
constexpr int64_t kMassFlows = 4;
constexpr int kClients = 9;

struct MassToken {
  TokenId id;
  int64_t flow = 0;
  int64_t ask_ms = kNeverMs;  // While its client is away.
  bool asked = false;
  bool for_strategy = false;  // Spared until `ask_ms`, whatever its rule says meanwhile.
};

struct MassClient {
  bool exists = false;
  bool online = false;
  bool named = true;
  bool lost = false;  // At since_ms, the last time that it went offline with tokens.
  int64_t since_ms = 0;
  bool mass = false;
  std::vector<MassToken> tokens;
};

class Absences {
 public:
  explicit Absences(uint64_t seed) : prng_(seed), h_(Options()) { ReplaceRules(); }

  void Step() {
    const uint64_t what = prng_.Below(24);
    const auto any = static_cast<uint32_t>(prng_.Below(kClients));
    if (what < 6) {
      Take(any);
    } else if (what < 8) {
      Release(any);
    } else if (what < 13) {
      Hello(any);
    } else if (what < 16) {
      Goodbye(any);
    } else if (what == 16) {
      for (uint32_t number = 0; number < kClients; ++number) Hello(number);
    } else if (what == 17) {
      for (uint32_t number = 0; number < kClients; ++number) {
        if (prng_.Below(4) > 0) Goodbye(number);
        if (prng_.Below(4) == 0) Pass(50 * prng_.Between(0, 40));
      }
    } else if (what < 20) {
      ReplaceRules();
      while (prng_.Below(4) > 0) {
        Pass(50 * prng_.Between(0, 150));
        ReplaceRules();
      }
    } else {
      constexpr int64_t kSteps[] = {1, 5, 40, 400, 1500, 4000};
      Pass(50 * prng_.Between(0, kSteps[prng_.Below(6)]));
    }
    Compare();
  }

  void Drain() {
    Pass(2 * kFactor * 100'000);
    for (uint32_t number = 0; number < kClients; ++number) Goodbye(number);
    Pass(2 * kFactor * 100'000);
    Compare();
    REQUIRE(h_.core().books().tokens().size() == 0);
    REQUIRE(h_.core().books().sessions().size() == 0);
  }

  uint64_t masses() const { return masses_; }
  uint64_t reclaimed() const { return reclaimed_; }
  // How often a token was spared, and not due by its rule when that was over.
  uint64_t waiting_for_rules() const { return waiting_for_rules_; }

 private:
  static CoreOptions Options() {
    CoreOptions options = testing::HarnessOptions();
    options.mass_expiry = {.sessions_min = kSessionsMin, .percent = 50};
    options.mass_expiry_factor = kFactor;
    return options;
  }

  // While somebody is away only one rule changes, so that it is plain who is due by it.
  void ReplaceRules() {
    const auto is_away = [](const MassClient& client) { return client.exists && !client.online; };
    const bool one = std::any_of(std::begin(clients_), std::end(clients_), is_away);
    const int64_t changed = one ? prng_.Between(1, kMassFlows) : 0;
    // Tokens of one client are never due together, so that the order within one does not matter.
    constexpr int64_t kTimesMs[kMassFlows][2] = {
        {500, 1800}, {2000, 6500}, {7000, 59'000}, {70'000, 100'000}};
    if (one) Pass(50);  // Nothing else is due, and who holds tokens is counted anew.
    std::vector<testing::RuleOptions> rules;
    for (int64_t flow = 1; flow <= kMassFlows; ++flow) {
      if (!one || flow == changed) wait_ms_[flow] = kTimesMs[flow - 1][prng_.Below(2)];
      rules.push_back({.flow = flow,
                       .count = 1e6,
                       .resource_timeout_ms = 1'000'000'000,
                       .client_offline_ms = wait_ms_[flow]});
    }
    h_.Rules(rules);
    h_.Rules({{.flow = 99, .client_offline_ms = prng_.Between(1, 1000)}}, "other");
    for (MassClient& client : clients_) {
      if (!client.exists || client.online) continue;
      for (MassToken& token : client.tokens) {
        if (!token.for_strategy) token.ask_ms = client.since_ms + wait_ms_[token.flow];
      }
    }
    Pass(0);
  }

  static std::string NameOf(uint32_t client) { return "c" + std::to_string(client); }

  void Hello(uint32_t number) {
    MassClient& client = clients_[number];
    if (client.online) return;
    if (!client.exists) {
      client = MassClient{};
      client.named = prng_.Below(8) > 0;
    } else if (!client.named) {
      return;
    }
    sessions_[number] =
        client.named ? h_.Hello(NameOf(number)) : h_.HelloUnnamed("@" + NameOf(number));
    client.exists = client.online = true;
    client.mass = false;
    for (MassToken& token : client.tokens) {
      token.ask_ms = kNeverMs;
      token.asked = token.for_strategy = false;
    }
  }

  void Goodbye(uint32_t number) {
    MassClient& client = clients_[number];
    if (!client.online) return;
    h_.Goodbye(sessions_[number]);
    client.online = false;
    client.since_ms = h_.now().ms;
    client.lost = client.named;
    for (MassToken& token : client.tokens) token.ask_ms = client.since_ms + wait_ms_[token.flow];
    if (client.tokens.empty()) client = MassClient{};
  }

  void Take(uint32_t number) {
    MassClient& client = clients_[number];
    if (!client.online) return;
    MassToken token;
    token.flow = prng_.Between(1, kMassFlows);
    token.id = h_.Take(sessions_[number], token.flow);
    client.tokens.push_back(token);
  }

  void Release(uint32_t number) {
    MassClient& client = clients_[number];
    if (!client.online || client.tokens.empty()) return;
    REQUIRE(h_.Release(sessions_[number], client.tokens.back().id) == TokenStatus::kReleaseOk);
    client.tokens.pop_back();
  }

  // When the client is looked at next: for a token, or to be judged before that.
  int64_t LookMs(const MassClient& client) const {
    if (!client.exists || client.online) return kNeverMs;
    int64_t fresh_ms = kNeverMs;
    int64_t next_ms = kNeverMs;
    for (const MassToken& token : client.tokens) {
      next_ms = std::min(next_ms, token.ask_ms);
      if (!token.asked) fresh_ms = std::min(fresh_ms, token.ask_ms);
    }
    const int64_t judge_ms = client.since_ms + kWindowMsMax;
    const bool judge = fresh_ms != kNeverMs && fresh_ms > judge_ms && judge_ms > h_.now().ms;
    return judge ? std::min(next_ms, judge_ms) : next_ms;
  }

  void Pass(int64_t duration_ms) {
    const Instant end = h_.now() + duration_ms;
    while (true) {
      int64_t next_ms = kNeverMs;
      for (const MassClient& client : clients_) next_ms = std::min(next_ms, LookMs(client));
      if (next_ms > end.ms) break;
      next_ms = std::max(next_ms, h_.now().ms);  // A rule may say that it was due before.
      // The core looks at those that are due at one moment by when they were, then by their session
      // slots.
      std::map<std::pair<int64_t, SessionSlot>, uint32_t> due;
      for (uint32_t number = 0; number < kClients; ++number) {
        const int64_t look_ms = LookMs(clients_[number]);
        if (look_ms <= next_ms) due[{look_ms, sessions_[number]}] = number;
      }
      h_.Pass(next_ms - h_.now().ms);
      for (const auto& [session, number] : due) Look(&clients_[number]);
    }
    h_.Pass(end.ms - h_.now().ms);
  }

  void Look(MassClient* client) {
    const int64_t now_ms = h_.now().ms;
    if (now_ms == client->since_ms + kWindowMsMax) {
      const bool later = std::any_of(client->tokens.begin(), client->tokens.end(),
                                     [&](const MassToken& t) { return !t.asked; });
      if (later) Judge(client, kWindowMsMax);
    }
    std::vector<MassToken> left;
    for (MassToken token : client->tokens) {
      if (token.ask_ms > now_ms || IsKept(client, &token)) {
        left.push_back(token);
      } else {
        ++reclaimed_;
      }
    }
    client->tokens = left;
    if (left.empty()) *client = MassClient{};
  }

  bool IsKept(MassClient* client, MassToken* token) {
    const int64_t now_ms = h_.now().ms;
    const int64_t wait_ms = wait_ms_[token->flow];
    token->for_strategy = client->since_ms + wait_ms <= now_ms;
    if (!token->for_strategy) {
      token->ask_ms = client->since_ms + wait_ms;
      ++waiting_for_rules_;
      return true;
    }
    if (!token->asked) Judge(client, std::min(wait_ms, kWindowMsMax));
    token->asked = true;
    token->ask_ms = client->since_ms + (client->mass ? kFactor : 1) * wait_ms;
    return token->ask_ms > now_ms;
  }

  void Judge(MassClient* client, int64_t window_ms) {
    if (client->mass || !client->named) return;
    if (h_.now().ms > client->since_ms + kWindowMsMax) return;  // Judged already.
    uint64_t lost = 0;
    uint64_t sessions = 0;
    for (const MassClient& other : clients_) {
      if (!other.exists || !other.named) continue;
      const bool in_window = other.lost && other.since_ms >= client->since_ms - window_ms &&
                             other.since_ms <= client->since_ms + window_ms;
      lost += in_window ? 1 : 0;
      const bool remembered = other.lost && other.since_ms + kRememberedMs >= h_.now().ms;
      if (other.online ? remembered || !other.tokens.empty() : in_window) ++sessions;
    }
    if (lost < kSessionsMin || lost * 2 < sessions) return;
    client->mass = true;
    ++masses_;
  }

  void Compare() {
    REQUIRE(testing::FindWrongBook(h_.core()) == "");
    REQUIRE(h_.core().mass_expiry().sessions() == masses_);
    size_t tokens = 0;
    for (const MassClient& client : clients_) {
      for (const MassToken& token : client.tokens) REQUIRE(h_.IsLive(token.id));
      tokens += client.tokens.size();
    }
    REQUIRE(h_.core().books().tokens().size() == tokens);
  }

  Prng prng_;
  CoreHarness h_;
  std::map<int64_t, int64_t> wait_ms_;
  MassClient clients_[kClients];
  SessionSlot sessions_[kClients];
  uint64_t masses_ = 0;
  uint64_t reclaimed_ = 0;
  uint64_t waiting_for_rules_ = 0;
};

TEST_CASE("random lives with cuts and deaths agree with the model of absences") {
  uint64_t masses = 0;
  uint64_t reclaimed = 0;
  uint64_t waiting_for_rules = 0;
  const std::vector<uint64_t> seeds = testing::SampleOf(200, 25);
  for (const uint64_t seed : seeds) {
    CAPTURE(seed);
    Absences life(seed);
    for (int step = 0; step < 300; ++step) {
      CAPTURE(step);
      life.Step();
    }
    life.Drain();
    masses += life.masses();
    reclaimed += life.reclaimed();
    waiting_for_rules += life.waiting_for_rules();
  }
  // All happen often enough to be compared.
  CHECK(masses > 5 * seeds.size());
  CHECK(reclaimed > 5 * seeds.size());
  CHECK(waiting_for_rules > 0);
}

}  // namespace
}  // namespace nowcalls::core
