// The sweep: finds what expired, all of it, without being asked when nothing can have.
#include <doctest/doctest.h>

#include "base/prng.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;
using testing::HarnessOptions;
using testing::ReadLedger;
using testing::TokensText;

TEST_CASE("nothing is scanned while nothing can be due") {
  CoreHarness h;
  CHECK_FALSE(h.core().BeginScan(h.now()).has_value());
  CHECK(h.core().NextDeadline() == kNever);
  h.Rules({{.flow = 1, .resource_timeout_ms = 5000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  const Instant due = h.core().NextDeadline();
  CHECK(due.ms > h.now().ms + 10'000);
  CHECK(due.ms <= h.now().ms + 10'000 + DeadlineCounter::kSpanMs);
  CHECK_FALSE(h.core().BeginScan(Instant{due.ms - 1}).has_value());
  CHECK(h.core().BeginScan(due).has_value());
  CHECK_FALSE(h.core().BeginScan(due).has_value());  // One at a time.
  REQUIRE(h.core().OnScanDone(h.step(), {}).ok());
  h.Release(a, token);
  CHECK(h.core().NextDeadline() == kNever);
  CHECK_FALSE(h.core().BeginScan(Instant{due.ms + 1'000'000}).has_value());
}

TEST_CASE("a token not kept is reclaimed at twice its resourceTimeout, at most one span later") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Pass(2000);
  CHECK(h.IsLive(token));
  h.Pass(DeadlineCounter::kSpanMs);
  CHECK_FALSE(h.IsLive(token));
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 1);
  CHECK(h.NoticesText().find("sweep: reclaimed 1 expired token\n") != std::string::npos);
  CHECK(h.Release(a, token) == TokenStatus::kAlreadyRelease);
}

TEST_CASE("the request names the expired range and the limits of a step") {
  CoreOptions options = HarnessOptions();
  options.sweep_keys_max = 17;
  options.sweep_budget_us = 5;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  h.Take(h.Hello("a"), 1);
  h.Sleep(5000);
  const auto request = h.core().BeginScan(h.now());
  REQUIRE(request.has_value());
  CHECK(request->lower_ms <= CoreHarness::kStartMs + 2000);
  CHECK(request->lower_ms > CoreHarness::kStartMs + 1900);
  CHECK(request->upper_ms == h.now().ms);
  CHECK_FALSE(request->resume);
  CHECK(request->keys_max == 17);
  CHECK(request->budget_us == 5);
}

TEST_CASE("a full step is followed by the next at once, behind its last key") {
  CoreOptions options = HarnessOptions();
  options.sweep_keys_max = 10;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .count = 100, .resource_timeout_ms = 1000},
           {.flow = 2, .count = 100, .resource_timeout_ms = 6000}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 25; ++i) {
    h.Take(a, 1);
    h.Take(a, 2);
  }
  h.Sleep(20'000);
  int64_t before = 50;
  for (int step = 0; step < 5; ++step) {
    CHECK(h.core().NextDeadline() <= h.now());
    CHECK(h.ScanStep().value_or(99) == 10);
    CHECK(h.core().books().tokens().size() == before - 10);
    before -= 10;
  }
  CHECK(h.core().books().tokens().size() == 0);
}

// Of two tokens that end 70 ms apart.
void SweepFirstOfTwo(CoreHarness* h) {
  h->Rules({{.flow = 1, .count = 100, .resource_timeout_ms = 1000}});
  const SessionSlot a = h->Hello("a");
  h->Take(a, 1);
  h->Sleep(70);
  h->Take(a, 1);
  h->Sleep(1990);
  CHECK(h->ScanStep().value_or(99) == 1);
}

TEST_CASE("between two sweeps lies the interval") {
  CoreHarness h;
  SweepFirstOfTwo(&h);
  h.Sleep(99);
  CHECK_FALSE(h.ScanStep().has_value());
  CHECK(h.core().NextDeadline().ms == h.now().ms + 1);
  h.Sleep(1);
  CHECK(h.ScanStep().value_or(99) == 1);
}

TEST_CASE("a shorter interval between sweeps holds from the last one on") {
  CoreOptions options = HarnessOptions();
  options.sweep_interval_ms = 60'000;
  CoreHarness h(options);
  SweepFirstOfTwo(&h);
  h.Sleep(100);
  CHECK_FALSE(h.ScanStep().has_value());
  options.sweep_interval_ms = 100;
  h.core().SetOptions(options);
  CHECK(h.core().NextDeadline() <= h.now());
  CHECK(h.ScanStep().value_or(99) == 1);
}

// The real case of Sentinel's issue: its executor looked at the first N tokens only.
TEST_CASE("100,000 live tokens in front do not hide an expired one for longer than one sweep") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 3'000'000},
           {.flow = 2, .resource_timeout_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  h.auto_commit = false;
  for (int i = 0; i < 100'000; ++i) h.Take(a, 1);
  const TokenId expired = h.Take(a, 2);
  h.Commit();
  h.auto_commit = true;
  h.Sleep(2100);
  CHECK(h.ScanStep().value_or(99) == 1);
  CHECK_FALSE(h.IsLive(expired));
  CHECK(h.NowCalls(1) == 100'000);
}

TEST_CASE("100,000 tokens kept alive do not hide an expired one issued after them") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 2000}});
  const SessionSlot a = h.Hello("a");
  h.auto_commit = false;
  std::vector<TokenId> kept;
  for (int i = 0; i < 100'000; ++i) kept.push_back(h.Take(a, 1));
  const TokenId expired = h.Take(a, 1);
  h.Commit();
  h.Sleep(3000);
  for (const TokenId token : kept) h.Keep(a, token);
  h.Commit();
  h.auto_commit = true;
  h.Sleep(1100);
  CHECK(h.ScanStep().value_or(99) == 1);
  CHECK_FALSE(h.IsLive(expired));
  CHECK(h.NowCalls(1) == 100'000);
}

TEST_CASE("a kept token that a scan finds under its old key is left alone") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const TokenId kept = h.Take(a, 1);
  const TokenId released = h.Take(a, 1);
  h.Sleep(2100);
  const auto request = h.core().BeginScan(h.now());
  REQUIRE(request.has_value());
  ledger::ScanResult result;
  h.store().Scan(*request, &result);
  REQUIRE(result.expired.size() == 2);
  h.Keep(a, kept);
  h.Release(a, released);
  const std::string tokens = TokensText(h.core());
  h.auto_commit = false;
  REQUIRE(h.core().OnScanDone(h.step(), result).ok());
  CHECK(h.batch().empty());
  CHECK(TokensText(h.core()) == tokens);
  h.Commit();
  h.auto_commit = true;
  h.Pass(2200);
  CHECK_FALSE(h.IsLive(kept));
}

TEST_CASE("a key that no token ever had is left alone") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  h.Take(h.Hello("a"), 1);
  h.Sleep(2100);
  REQUIRE(h.core().BeginScan(h.now()).has_value());
  ledger::ScanResult result;
  for (const uint64_t id : {uint64_t{0}, uint64_t{5}, UINT64_MAX}) {
    result.expired.push_back({ledger::Family::kTokensShort, 7, TokenId{id}});
  }
  CHECK(h.core().OnScanDone(h.step(), result).ok());
  CHECK(h.NowCalls(1) == 1);
}

// Invariant 7: nothing is left behind.
TEST_CASE("a token whose batch is not yet applied is found by a later scan") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 100}});
  const SessionSlot a = h.Hello("a");
  h.auto_commit = false;
  h.Take(a, 1);
  h.Sleep(300);  // A disk that stalls.
  CHECK(h.ScanStep().value_or(99) == 0);
  CHECK(h.NowCalls(1) == 1);
  CHECK(h.core().NextDeadline() > h.now());
  h.Commit();
  h.auto_commit = true;
  h.Pass(100);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("a scan that failed is reported") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 100}});
  h.Take(h.Hello("a"), 1);
  h.Sleep(300);
  REQUIRE(h.core().BeginScan(h.now()).has_value());
  ledger::ScanResult failed;
  failed.status = Status::IoError("no such disk");
  CHECK(h.core().OnScanDone(h.step(), failed).ToString() == "io_error: no such disk");
}

int64_t LeastDeadline(store::LedgerSource* store) {
  int64_t least = INT64_MAX;
  for (const auto& token : ReadLedger(store).tokens) least = std::min(least, token.key.deadline_ms);
  return least;
}

TEST_CASE("the watermark rises, at most to now, and is written once a second") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const int64_t first = ReadLedger(&h.store()).watermark_ms;
  CHECK(first == h.now().ms);
  const SessionSlot a = h.Hello("a");
  h.Sleep(999);
  h.Release(a, h.Take(a, 1));
  CHECK(ReadLedger(&h.store()).watermark_ms == first);
  h.Sleep(1);
  h.Release(a, h.Take(a, 1));
  CHECK(ReadLedger(&h.store()).watermark_ms == first + 1000);
}

TEST_CASE("a new token that expires before an old one lies above the watermark") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 3'000'000}, {.flow = 2, .resource_timeout_ms = 1}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Sleep(50'000);
  h.Keep(a, h.Take(a, 1));  // The only tokens are long-lived ones; the mark may rise.
  const TokenId brief = h.Take(a, 2);
  CHECK(ReadLedger(&h.store()).watermark_ms <= LeastDeadline(&h.store()));
  h.Restart();
  CHECK(h.IsLive(brief));
}

TEST_CASE("the watermark is never above a live deadline in a long random life") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 1},
           {.flow = 2, .count = 1e6, .resource_timeout_ms = 700},
           {.flow = 3, .count = 1e6, .resource_timeout_ms = 40'000}});
  Prng prng(21);
  const SessionSlot a = h.Hello("a");
  std::vector<TokenId> held;
  for (int step = 0; step < 3000; ++step) {
    held.push_back(h.Take(a, prng.Between(1, 3)));
    if (prng.Below(3) > 0) h.Release(a, held[prng.Below(held.size())]);
    if (prng.Below(10) == 0) h.Keep(a, held[prng.Below(held.size())]);
    if (prng.Below(5) == 0) h.Pass(prng.Between(0, 800));
    if (prng.Below(5) == 0) h.Sleep(prng.Between(0, 800));
    if (step % 20 != 0) continue;
    // Load skips what lies below the mark, so a mark too high shows as a missing token.
    REQUIRE(TokensText(ReadLedger(&h.store())) == TokensText(h.core()));
  }
  CHECK(FindWrongBook(h.core()) == "");
}

// Invariant 7.
TEST_CASE("after the last deadline the ledger is empty") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6, .resource_timeout_ms = 1000},
           {.flow = 2, .count = 1e6, .resource_timeout_ms = 100'000},
           {.flow = 3, .count = 1e6, .resource_timeout_ms = 500'000}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.HelloUnnamed("@b");
  for (int i = 0; i < 300; ++i) {
    h.Take(i % 2 == 0 ? a : b, 1 + i % 3);
    h.Pass(7);
  }
  h.Restart();
  h.Hello("a");
  h.Pass(1'000'100);
  CHECK(h.core().books().tokens().size() == 0);
  const auto content = ReadLedger(&h.store());
  CHECK(content.tokens.empty());
  CHECK(content.sessions.size() == 1);  // a is online.
  CHECK(content.seal->live_tokens == 0);
  CHECK(content.seal->live_count_sum == 0);
  CHECK(content.seal->live_fence_sum == 0);
}

}  // namespace
}  // namespace nowcalls::core
