#include "sim/session_life.h"

#include <algorithm>

#include "sim/draw_calls.h"

namespace nowcalls::sim {
namespace {

constexpr size_t kOpenMax = 12;
constexpr int64_t kWaitMsMax = 3'000;
constexpr int64_t kHoldMsMax = 8'000;
constexpr int64_t kHurryMsMax = 500;
constexpr int64_t kDownUsMax = 3 * kSecond;

}  // namespace

SessionLife::SessionLife(World* world, SessionClient* client, uint64_t seed)
    : world_(world), client_(client), prng_(seed) {
  pace_us_ = prng_.Between(5, 200) * kMs;
  held_max_ = static_cast<size_t>(prng_.Between(1, 6));
  wait_chance_ = static_cast<uint32_t>(prng_.Below(3) * 300'000);
  hurry_chance_ = static_cast<uint32_t>(prng_.Below(3) * 200'000);
}

void SessionLife::Begin() {
  client_->Start();
  ActLater();
}

void SessionLife::Stop() {
  stopped_ = true;
  if (!client_->runs()) return;
  client_->ReleaseAll();
  if (prng_.Below(2) == 0) client_->Close();
}

void SessionLife::Leave() {
  if (client_->runs()) client_->Close();
}

void SessionLife::ActLater() {
  world_->timeline().After(prng_.Between(1, 2 * pace_us_), [this] { Act(); });
}

void SessionLife::Act() {
  if (stopped_) return;
  ActLater();
  if (!client_->runs()) return StartAgain();
  if (client_->closing() || Ends()) return;
  DoSomething();
}

bool SessionLife::Ends() {
  if (!prng_.ChancePerMillion(world_->options().plan.client_ends_chance)) return false;
  world_->faults().Count(Fault::kClientEnds);
  starts_us_ = world_->timeline().now_us() + prng_.Between(0, kDownUsMax);
  prng_.Below(2) == 0 ? client_->Kill() : client_->Close();
  return true;
}

void SessionLife::StartAgain() {
  if (world_->timeline().now_us() < starts_us_ || client_->connected()) return;
  client_->Start();
  for (const Grant& orphan : client_->orphans()) {
    if (prng_.Below(2) == 0) client_->Adopt(orphan);
  }
}

void SessionLife::DoSomething() {
  const size_t held = client_->permits().size();
  const uint64_t what = prng_.Below(100);
  if (what < 55) {
    if (held < held_max_) return AcquireNew();
    client_->Release(prng_.Below(held));
  } else if (what < 85) {
    if (held > 0) client_->Release(prng_.Below(held));
  } else if (what < 90) {
    if (held > 0) client_->Keep(prng_.Below(held));
  } else if (what < 97) {
    RequestCalls();
  }
}

void SessionLife::AcquireNew() {
  if (client_->unanswered() >= kOpenMax) return;
  const auto& rules = world_->rules();
  SessionClient::Wish wish;
  for (int64_t flows = prng_.Below(6) == 0 ? prng_.Between(2, 4) : 1; flows > 0; --flows) {
    const std::vector<int64_t> lanes = rules[prng_.Below(rules.size())].lanes();
    const int64_t lane = lanes[prng_.Below(lanes.size())];
    if (std::find(wish.lanes.begin(), wish.lanes.end(), lane) == wish.lanes.end()) {
      wish.lanes.push_back(lane);
    }
  }
  wish.count = prng_.Below(4) == 0 ? prng_.Between(1, 4) : 1;
  wish.prioritized = prng_.Below(3) == 0;
  if (prng_.Below(4) == 0) wish.hold_ms = prng_.Between(1, kHoldMsMax);
  if (prng_.ChancePerMillion(wait_chance_)) wish.wait_ms = prng_.Between(0, kWaitMsMax);
  if (prng_.ChancePerMillion(hurry_chance_)) wish.timeout_ms = prng_.Between(1, kHurryMsMax);
  constexpr KeepMode kModes[] = {KeepMode::kByRule, KeepMode::kAlways, KeepMode::kOff};
  wish.keep = kModes[prng_.Below(3)];
  client_->Acquire(wish);
}

void SessionLife::RequestCalls() {
  const CallsWanted wanted = DrawCalls(world_->rules(), &prng_);
  client_->Request(wanted.flow, wanted.lanes, wanted.count, wanted.prioritized);
}

}  // namespace nowcalls::sim
