#include "bench/micro/loaded_core.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "base/check.h"
#include "base/prefetch.h"
#include "core/books.h"
#include "core/tables/deadline_counter.h"

namespace nowcalls::microbench {
namespace {

constexpr int64_t kResourceTimeoutMs = 60'000;

core::Rule BenchRule(int64_t flow, double level) {
  core::Rule rule;
  rule.resource = "checkout:" + std::to_string(flow);
  rule.flow_id = FlowId{flow};
  rule.threshold_type = core::ThresholdType::kGlobal;
  rule.grade = 0;  // Calls in progress.
  rule.count = level;
  rule.resource_timeout_ms = kResourceTimeoutMs;
  rule.client_offline_time_ms = kResourceTimeoutMs;
  return rule;
}

}  // namespace

core::CoreOptions BenchOptions() {
  core::CoreOptions options;
  options.token_id_key = {0x0123456789abcdef, 0xfedcba9876543210};
  return options;
}

core::RuleSet BenchRules(uint32_t flows) {
  core::RuleSet set;
  set.name_space = "shop";
  for (uint32_t i = 1; i <= flows; ++i) set.parsed.rules.push_back(BenchRule(i, INT32_MAX));
  set.parsed.rules.push_back(BenchRule(LoadedCore::kFullFlow, 0));
  return set;
}

LoadedCore::LoadedCore(uint32_t flows, uint32_t live_tokens, bool request_ids)
    : flows_(flows), core_(BenchOptions()), request_ids_(request_ids) {
  NOWCALLS_CHECK(core_.FinishLoad(std::nullopt).ok());
  core_.Begin(now_);
  NOWCALLS_CHECK(core_.ReplaceRules(step(), core::RefsTo({BenchRules(flows)})).ok());
  for (uint32_t i = 0; i < kSessions; ++i) {
    const std::string client_id = "checkout-" + std::to_string(i);
    const auto hello =
        core_.Hello(step(), {.name_space = "shop", .client_id = client_id, .display_id = {}});
    NOWCALLS_CHECK(hello.ok());
    sessions_.push_back(hello->session);
  }
  for (uint32_t i = 0; i < live_tokens; ++i) held_.push_back(Acquire());
}

void LoadedCore::ReplaceOne() {
  Held& held = NextHeld();
  Release(held);
  held = Acquire();
}

void LoadedCore::KeepOne() {
  const Held& held = NextHeld();
  NOWCALLS_CHECK(core_.Keep(step(), held.session, held.token).status == TokenStatus::kOk);
  Count(1);
}

void LoadedCore::RefuseOne() {
  const auto answer =
      core_.Acquire(step(), sessions_[0], {.flow = FlowId{kFullFlow}, .wait_ms = 0}, {});
  NOWCALLS_CHECK(answer.has_value() && answer->status == TokenStatus::kBlocked);
  Count(1);
}

LoadedCore::Held LoadedCore::Acquire() {
  return AcquireOf(static_cast<int64_t>(1 + prng_.Below(flows_)));
}

LoadedCore::Held LoadedCore::AcquireOf(int64_t flow) {
  const core::SessionSlot session = sessions_[prng_.Below(kSessions)];
  const uint64_t request_id = request_ids_ ? ++last_request_id_ : 0;
  const auto answer =
      core_.Acquire(step(), session, {.flow = FlowId{flow}, .request_id = request_id}, {});
  NOWCALLS_CHECK(answer.has_value() && answer->status == TokenStatus::kOk);
  Count(1);
  return {answer->token_id, session};
}

void LoadedCore::Release(const Held& held) {
  const TokenStatus status = core_.Release(step(), held.session, held.token);
  NOWCALLS_CHECK(status == TokenStatus::kReleaseOk);
  Count(1);
}

LoadedCore::Held& LoadedCore::NextHeld() {
  Held& held = held_[next_held_];
  next_held_ = prng_.Below(held_.size());
  PrefetchForReading(&held_[next_held_]);
  return held;
}

void LoadedCore::Count(uint32_t operations) {
  operations_ += operations;
  if (operations_ < kOperationsPerBatch) return;
  operations_ = 0;
  now_ = now_ + 1;
  Seal();
}

void LoadedCore::Seal() {
  core_.Seal(step(), {.boottime_ms = now_.ms, .wall_ms = now_.ms, .boot_id = {}});
  batch_.Clear();
}

ExpiringCore::ExpiringCore(uint32_t flows, uint32_t live_tokens)
    : flows_(flows), core_(BenchOptions()), live_(live_tokens) {
  NOWCALLS_CHECK(live_tokens % kTokensPerStep == 0);
  NOWCALLS_CHECK(core_.FinishLoad(std::nullopt).ok());
  core_.Begin(now_);
  NOWCALLS_CHECK(core_.ReplaceRules(step(), core::RefsTo({BenchRules(flows)})).ok());
  const auto hello =
      core_.Hello(step(), {.name_space = "shop", .client_id = "checkout", .display_id = {}});
  NOWCALLS_CHECK(hello.ok());
  session_ = hello->session;
  const uint32_t steps = live_tokens / kTokensPerStep;
  const auto hold_ms =
      static_cast<int64_t>(kResourceTimeoutMs * core_.books().options().resource_timeout_factor);
  for (uint32_t i = 0; i < steps; ++i) {
    AcquireStep();
    Seal();
    now_ = now_ + hold_ms / steps;
  }
}

void ExpiringCore::Prepare() {
  const auto first = live_.begin() + static_cast<ptrdiff_t>(oldest_);
  found_.expired.assign(first, first + kTokensPerStep);
  now_ = std::max(now_, Instant{first->deadline_ms + core::DeadlineCounter::kSpanMs});
  AcquireStep();
  Seal();
}

void ExpiringCore::Step() {
  const uint32_t before = core_.books().tokens().size();
  NOWCALLS_CHECK(core_.BeginScan(now_).has_value());
  NOWCALLS_CHECK(core_.OnScanDone(step(), found_).ok());
  NOWCALLS_CHECK(core_.books().tokens().size() + kTokensPerStep == before);
  Seal();
}

// In the order of their keys, as a scan has them: those of a step are due together.
void ExpiringCore::AcquireStep() {
  const auto first = live_.begin() + static_cast<ptrdiff_t>(oldest_);
  for (auto key = first; key != first + kTokensPerStep; ++key) {
    const FlowId flow{static_cast<int64_t>(1 + prng_.Below(flows_))};
    const auto answer = core_.Acquire(step(), session_, {.flow = flow}, {});
    NOWCALLS_CHECK(answer.has_value() && answer->status == TokenStatus::kOk);
    *key = {ledger::FamilyForHold(answer->hold_ms), now_.ms + answer->hold_ms, answer->token_id};
  }
  std::sort(first, first + kTokensPerStep,
            [](const auto& a, const auto& b) { return a.id < b.id; });
  oldest_ = (oldest_ + kTokensPerStep) % live_.size();
}

void ExpiringCore::Seal() {
  core_.Seal(step(), {.boottime_ms = now_.ms, .wall_ms = now_.ms, .boot_id = {}});
  batch_.Clear();
  core_.TakeNotices();
}

LoadedCore& CoreWith(uint32_t flows, uint32_t live_tokens, bool request_ids) {
  static std::unique_ptr<LoadedCore> core;
  static std::tuple<uint32_t, uint32_t, bool> made_for;
  const std::tuple wanted(flows, live_tokens, request_ids);
  if (core == nullptr || made_for != wanted) {
    core.reset();  // Before the next one, so that two never share the memory.
    core = std::make_unique<LoadedCore>(flows, live_tokens, request_ids);
    made_for = wanted;
  }
  return *core;
}

}  // namespace nowcalls::microbench
