// Restarts: what a core loads is what the one before had made durable.
#include <doctest/doctest.h>

#include <set>

#include "base/prng.h"
#include "core/books.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;
using testing::LoadCore;
using testing::NowCallsText;
using testing::ReadLedger;
using testing::TokensText;

TEST_CASE("a new ledger loads as an empty core") {
  CoreHarness h;
  h.Restart();
  CHECK(h.core().books().tokens().size() == 0);
  CHECK(h.core().books().next_fence() == 1);
  CHECK(h.core().books().batch_number() == 0);
}

TEST_CASE("tokens, nowCalls, fences, sessions and rules are the same after a restart") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 100}, {.flow = 2, .count = 0.5, .avg_local = true}});
  h.Rules({{.flow = 3, .count = 100, .resource_timeout_ms = 100'000}}, "other");
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b", "other");
  const SessionSlot unnamed = h.HelloUnnamed("@127.0.0.1:9");
  h.Hello("holds nothing");
  for (int i = 1; i <= 5; ++i) {
    h.Take(a, 1, i);
    h.Take(b, 3, i);
    h.Release(a, h.Take(a, 1));
    h.Take(unnamed, 3);
    h.Sleep(10);
  }
  const std::string tokens = TokensText(h.core());
  const std::string now_calls = NowCallsText(h.core());
  const uint64_t next_fence = h.core().books().next_fence();
  const uint64_t batch = h.core().books().batch_number();
  h.Restart();
  CHECK(TokensText(h.core()) == tokens);
  CHECK(NowCallsText(h.core()) == now_calls);
  CHECK(h.core().books().next_fence() == next_fence);
  CHECK(h.core().books().batch_number() == batch);
  CHECK(h.core().flows().rules() == 3);
  CHECK(h.core().books().sessions().size() == 3);
  CHECK(FindWrongBook(h.core()) == "");
  REQUIRE(h.core().Hello(h.step(), {"app", "a", "@x"}).ok());
  CHECK(h.Acquire(h.Hello("a"), 2).level == 0);  // 0.5 x 1 session online.
}

TEST_CASE("a Sentinel connection reaches the tokens of connections in a ledger of format 3") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const TokenId left = h.Take(h.HelloUnnamed("@10.0.0.1:1"), 1);
  const TokenId named = h.Take(h.Hello("a"), 1);
  h.Restart(0, 3);
  const SessionSlot fellow =
      h.core()
          .Hello(h.step(), {.name_space = "app", .display_id = "@10.0.0.1:2", .of_sentinel = true})
          ->session;
  const auto release = [&](TokenId token) {
    return h.core().Release(h.step(), fellow, token, TokenScope::kSentinel);
  };
  CHECK(release(named) == TokenStatus::kAlreadyRelease);
  CHECK(release(left) == TokenStatus::kReleaseOk);
}

TEST_CASE("what was not committed never was") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  const TokenId committed = h.Take(a, 1);
  const TokenId stays = h.Take(a, 1);
  h.auto_commit = false;
  const TokenId lost = h.Take(a, 1);
  h.Release(a, stays);
  h.Restart();
  CHECK(h.IsLive(committed));
  CHECK(h.IsLive(stays));
  CHECK_FALSE(h.IsLive(lost));
  CHECK(h.NowCalls(1) == 2);
}

// Invariant 6 and the reload of everything, at random points of a random life.
TEST_CASE("over 50 restarts at random points nothing changes and no fence or id repeats") {
  CoreHarness h;
  Prng prng(11);
  h.Rules({{.flow = 1, .count = 60}, {.flow = 2, .count = 60, .resource_timeout_ms = 8000}});
  std::set<uint64_t> fences;
  std::set<uint64_t> ids;
  uint64_t newest = 0;
  for (int restart = 0; restart < 50; ++restart) {
    CAPTURE(restart);
    const SessionSlot sessions[] = {h.Hello("a"), h.Hello("b"), h.HelloUnnamed("@c")};
    std::vector<std::pair<SessionSlot, TokenId>> held;
    for (uint64_t step = prng.Below(60); step > 0; --step) {
      const SessionSlot session = sessions[prng.Below(3)];
      const AcquireAnswer answer = h.Acquire(session, prng.Between(1, 2), prng.Between(1, 3));
      if (answer.status == TokenStatus::kOk) {
        REQUIRE(answer.fence.value > newest);
        newest = answer.fence.value;
        REQUIRE(fences.insert(answer.fence.value).second);
        REQUIRE(ids.insert(answer.token_id.value).second);
        held.emplace_back(session, answer.token_id);
      }
      if (!held.empty() && prng.Below(2) == 0) {
        const auto& [holder, token] = held[prng.Below(held.size())];
        prng.Below(2) == 0 ? static_cast<void>(h.Release(holder, token))
                           : static_cast<void>(h.Keep(holder, token));
      }
      h.Pass(prng.Between(0, 300));
    }
    const std::string tokens = TokensText(h.core());
    const std::string now_calls = NowCallsText(h.core());
    REQUIRE(TokensText(ReadLedger(&h.store())) == tokens);
    h.Restart(prng.Between(0, 5000));
    REQUIRE(TokensText(h.core()) == tokens);
    REQUIRE(NowCallsText(h.core()) == now_calls);
    REQUIRE(FindWrongBook(h.core()) == "");
  }
  CHECK(fences.size() > 300);
}

TEST_CASE("the fence of a grant that was lost with its batch may be used again, its token not") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  h.auto_commit = false;
  const AcquireAnswer lost = h.Acquire(a, 1);
  h.Restart();
  const AcquireAnswer next = h.Acquire(h.Hello("a"), 1);
  // Nobody was told of the lost one (invariant 1), so the order that holders see still grows.
  CHECK(next.fence <= lost.fence);
  h.Commit();
  const uint64_t bound = ReadLedger(&h.store()).seal->next_fence;
  CHECK(bound > next.fence.value);
}

// Copies all rows of `from` but the token rows that `drop` names.
class DamagedStore : public store::LedgerSource {
 public:
  explicit DamagedStore(store::LedgerSource* from) : from_(from) {}
  Status Load(ledger::EntityVisitor* visitor) override {
    Filter filter(this, visitor);
    return from_->Load(&filter);
  }

  size_t drop_token = SIZE_MAX;
  size_t drop_session = SIZE_MAX;
  size_t repeat_token = SIZE_MAX;
  size_t repeat_session = SIZE_MAX;
  size_t change_token = 0;  // Which of them the next two are of.
  uint32_t add_count = 0;
  uint64_t add_fence = 0;
  uint64_t lower_next_fence = 0;
  bool drop_seal = false;
  bool bad_rule = false;

 private:
  class Filter : public ledger::EntityVisitor {
   public:
    Filter(DamagedStore* damage, ledger::EntityVisitor* to) : damage_(damage), to_(to) {}
    Status OnEntity(const ledger::Entity& entity) override {
      return std::visit([this](const auto* found) { return On(*found); }, entity);
    }

   private:
    Status On(const ledger::Seal& seal) {
      ledger::Seal changed = seal;
      changed.next_fence -= damage_->lower_next_fence;
      return damage_->drop_seal ? Status() : to_->OnEntity(&changed);
    }
    Status On(const ledger::RuleEntry& rule) {
      ledger::RuleEntry changed = rule;
      if (damage_->bad_rule) changed.json = "{}";
      return to_->OnEntity(&changed);
    }
    Status On(const ledger::Session& session) {
      const size_t n = sessions_++;
      if (n == damage_->drop_session) return {};
      NOWCALLS_RETURN_IF_ERROR(to_->OnEntity(&session));
      return n == damage_->repeat_session ? to_->OnEntity(&session) : Status();
    }
    Status On(const ledger::Token& token) {
      const size_t n = tokens_++;
      if (n == damage_->drop_token) return {};
      ledger::Token changed = token;
      if (n == damage_->change_token) {
        changed.count += damage_->add_count;
        changed.fence.value += damage_->add_fence;
      }
      NOWCALLS_RETURN_IF_ERROR(to_->OnEntity(&changed));
      return n == damage_->repeat_token ? to_->OnEntity(&changed) : Status();
    }
    Status On(const auto& other) { return to_->OnEntity(&other); }

    DamagedStore* damage_;
    ledger::EntityVisitor* to_;
    size_t tokens_ = 0;
    size_t sessions_ = 0;
  };

  store::LedgerSource* from_;
};

// A ledger with two sessions, three tokens and one rule.
struct Damage {
  Damage() : store(&h.store()) {
    h.Rules({{.flow = 1}});
    const SessionSlot a = h.Hello("a");
    h.Take(a, 1);
    h.Take(a, 1, 2);
    h.Take(h.Hello("b"), 1);
  }
  std::string Load() {
    Core core(testing::HarnessOptions());
    const Status status = LoadCore(&store, h.now(), &core);
    CHECK((status.ok() || status.code() == StatusCode::kCorruption));
    return status.message();
  }

  CoreHarness h;
  DamagedStore store;
};

// Invariant 4: the ledger that is loaded is that of a whole batch, or none.
TEST_CASE("a ledger that lost a token is corrupt") {
  Damage damage;
  CHECK(damage.Load() == "");
  for (size_t token = 0; token < 3; ++token) {
    damage.store.drop_token = token;
    CHECK(damage.Load().find("records were lost or changed") != std::string::npos);
  }
}

TEST_CASE("an id of another fence is found wherever it is among many") {
  Damage damage;
  damage.h.Rules({{.flow = 1, .count = 1000}});
  const SessionSlot c = damage.h.Hello("c");
  for (int i = 3; i < 150; ++i) damage.h.Take(c, 1);
  CHECK(damage.Load() == "");
  damage.store.add_fence = 1;
  for (const size_t token : {0, 1, 62, 63, 64, 65, 127, 128, 149}) {
    CAPTURE(token);
    damage.store.change_token = token;
    CHECK(damage.Load().find("its id does not belong to fence") != std::string::npos);
  }
}

TEST_CASE("a ledger whose tokens are not those that were sealed is corrupt") {
  Damage damage;
  SUBCASE("a count changed") {
    damage.store.add_count = 1;
    CHECK(damage.Load().find("holds 3 tokens with a count of 5, but batch ") != std::string::npos);
  }
  SUBCASE("a fence changed") {
    damage.store.add_fence = 1;
    CHECK(damage.Load().find("its id does not belong to fence") != std::string::npos);
  }
  SUBCASE("a token twice") {
    damage.store.repeat_token = 1;
    CHECK(damage.Load().find("is in the ledger twice") != std::string::npos);
  }
  SUBCASE("a session twice") {
    damage.store.repeat_session = 0;
    CHECK(damage.Load().find("(client a) is in the ledger twice") != std::string::npos);
  }
  SUBCASE("a session is missing") {
    damage.store.drop_session = 1;
    CHECK(damage.Load().find("is missing") != std::string::npos);
  }
  SUBCASE("no seal") {
    damage.store.drop_seal = true;
    CHECK(damage.Load().find("records were lost or changed") != std::string::npos);
  }
  SUBCASE("a fence beyond the seal's bound") {
    damage.store.lower_next_fence = 2;
    CHECK(damage.Load().find("is not below the sealed bound") != std::string::npos);
  }
  SUBCASE("a rule that is none") {
    damage.store.bad_rule = true;
    CHECK(damage.Load() == "rule of flow 1 in namespace app: resource is missing");
  }
}

TEST_CASE("the watermark, once written, hides no live token from a load") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 100}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 20; ++i) {
    h.Take(a, 1);
    h.Pass(1500);
    const std::string tokens = TokensText(h.core());
    REQUIRE(ReadLedger(&h.store()).watermark_ms > 0);
    REQUIRE(TokensText(ReadLedger(&h.store())) == tokens);
  }
}

}  // namespace
}  // namespace nowcalls::core
