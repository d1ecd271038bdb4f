#include "bench/micro/loaded_core.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"

namespace nowcalls::microbench {
namespace {

constexpr int64_t kResourceTimeoutMs = 60'000;

core::Rule BenchRule(int64_t flow, double level) {
  core::Rule rule;
  rule.resource = "checkout:" + std::to_string(flow);
  rule.flow_id = FlowId{flow};
  rule.threshold_type = core::ThresholdType::kGlobal;
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

LoadedCore::LoadedCore(uint32_t flows, uint32_t live_tokens)
    : flows_(flows), core_(BenchOptions()) {
  NOWCALLS_CHECK(core_.FinishLoad(std::nullopt).ok());
  core_.Begin(now_);
  NOWCALLS_CHECK(core_.ReplaceRules(turn(), {BenchRules(flows)}).ok());
  for (uint32_t i = 0; i < kSessions; ++i) {
    const auto hello = core_.Hello(turn(), "shop", "checkout-" + std::to_string(i), "");
    NOWCALLS_CHECK(hello.ok());
    sessions_.push_back(hello->session);
  }
  // A flow allocates at the first end of one of its tokens; in a server that was long ago.
  for (uint32_t flow = 1; flow <= flows; ++flow) Release(AcquireOf(flow));
  for (uint32_t i = 0; i < live_tokens; ++i) held_.push_back(Acquire());
}

void LoadedCore::ReplaceOne() {
  Held& held = NextHeld();
  Release(held);
  held = Acquire();
}

void LoadedCore::KeepOne() {
  const Held& held = NextHeld();
  NOWCALLS_CHECK(core_.Keep(turn(), held.session, held.token).status == TokenStatus::kOk);
  Count(1);
}

void LoadedCore::RefuseOne() {
  const auto answer =
      core_.Acquire(turn(), sessions_[0], {.flow = FlowId{kFullFlow}, .wait_ms = 0}, {});
  NOWCALLS_CHECK(answer.has_value() && answer->status == TokenStatus::kBlocked);
  Count(1);
}

LoadedCore::Held LoadedCore::Acquire() {
  return AcquireOf(static_cast<int64_t>(1 + prng_.Below(flows_)));
}

LoadedCore::Held LoadedCore::AcquireOf(int64_t flow) {
  const core::SessionSlot session = sessions_[prng_.Below(kSessions)];
  const auto answer = core_.Acquire(turn(), session, {.flow = FlowId{flow}}, {});
  NOWCALLS_CHECK(answer.has_value() && answer->status == TokenStatus::kOk);
  Count(1);
  return {answer->token_id, session};
}

void LoadedCore::Release(const Held& held) {
  const TokenStatus status = core_.Release(turn(), held.session, held.token);
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
  core_.Seal(turn(), {.boottime_ms = now_.ms, .wall_ms = now_.ms, .boot_id = {}});
  batch_.Clear();
}

LoadedCore& CoreWith(uint32_t flows, uint32_t live_tokens) {
  static std::unique_ptr<LoadedCore> core;
  static std::pair<uint32_t, uint32_t> made_for;
  const std::pair wanted(flows, live_tokens);
  if (core == nullptr || made_for != wanted) {
    core.reset();  // Before the next one, so that two never share the memory.
    core = std::make_unique<LoadedCore>(flows, live_tokens);
    made_for = wanted;
  }
  return *core;
}

}  // namespace nowcalls::microbench
