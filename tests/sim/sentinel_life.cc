#include "sim/sentinel_life.h"

#include "sim/draw_calls.h"
#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

constexpr size_t kUnansweredMax = 20;

}  // namespace

SentinelLife::SentinelLife(World* world, SimSentinel* client, uint64_t seed)
    : world_(world), client_(client), prng_(seed) {
  pace_us_ = prng_.Between(2, 150) * kMs;
  held_max_ = static_cast<size_t>(prng_.Between(1, 8));
  calls_percent_ = prng_.Below(3) * 40;
}

void SentinelLife::ActLater() {
  int64_t pause_us = prng_.Between(1, 2 * pace_us_);
  if (prng_.ChancePerMillion(world_->options().plan.client_pause_chance)) {
    world_->faults().Count(Fault::kClientPause);
    pause_us += prng_.Between(0, world_->options().plan.client_pause_ms_max) * kMs;
  }
  world_->timeline().After(pause_us, [this] { Act(); });
}

void SentinelLife::Act() {
  if (stopped_) return;
  ActLater();
  if (!client_->connected()) {
    client_->Open(/*steady=*/false);
  } else if (client_->may_send() && !Leaves()) {
    DoSomething();
  }
}

bool SentinelLife::Leaves() {
  if (!prng_.ChancePerMillion(world_->options().plan.client_ends_chance)) return false;
  world_->faults().Count(Fault::kClientEnds);
  client_->Hangup(/*politely=*/prng_.Below(2) == 0);
  return true;
}

void SentinelLife::DoSomething() {
  if (client_->unanswered() >= kUnansweredMax) return;
  if (prng_.Below(100) < calls_percent_) return Request();
  const uint64_t what = prng_.Below(100);
  if (what < 45) {
    if (client_->held().size() < held_max_) return Acquire();
    EndOrKeep();
  } else if (what < 90) {
    EndOrKeep();
  } else if (what < 96) {
    Request();
  } else if (what < 98) {
    client_->SendRude(static_cast<Rude>(prng_.Below(kRudeCount)));
  } else {
    client_->Ping();
  }
}

void SentinelLife::Acquire() {
  const auto& rules = world_->rules();
  const SimRule& rule = rules[prng_.Below(rules.size())];
  const int64_t count = prng_.Below(4) == 0 ? prng_.Between(1, 4) : 1;
  const bool misfit = rule.keys > 0 && !HasRule(rules, rule.flow, FlowKind::kFlow);
  // Frames have no acquire with a value.
  if (rule.keys > 0 && prng_.Below(10) > 0) return Request();
  client_->Acquire(rule.flow, count, /*prioritized=*/prng_.Below(3) == 0, misfit);
}

void SentinelLife::Request() {
  const CallsWanted wanted = DrawCalls(world_->rules(), &prng_);
  if (wanted.lanes.empty()) {
    client_->Request(wanted.flow, wanted.count, wanted.prioritized, wanted.misfit);
  } else {
    client_->RequestValues(wanted.lanes, wanted.count, wanted.misfit);
  }
}

// Of its own tokens mostly; else of one that has ended, or of another client.
void SentinelLife::EndOrKeep() {
  uint64_t token = 0;
  const auto some = [&](const std::vector<uint64_t>& tokens) {
    return tokens.empty() ? 0 : tokens[prng_.Below(tokens.size())];
  };
  const uint64_t whose = prng_.Below(20);
  if (whose == 0) {
    token = some(client_->past());
  } else if (whose == 1) {
    token = some(world_->HeldTokens());
  } else {
    token = some(client_->held());
  }
  if (token == 0) return;
  if (prng_.Below(4) == 0) return client_->Keep(token);
  client_->Release(token);
}

}  // namespace nowcalls::sim
