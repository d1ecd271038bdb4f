#include "sim/client_life.h"

#include <algorithm>
#include <iterator>

#include "sim/draw_calls.h"
#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

constexpr size_t kUnansweredMax = 20;
constexpr int64_t kWaitMsMax = 3'000;
constexpr int64_t kHoldMsMax = 8'000;

}  // namespace

ClientLife::ClientLife(World* world, SimClient* client, uint64_t first_request_id, uint64_t seed)
    : world_(world),
      client_(client),
      prng_(seed),
      holds_prng_(seed ^ 0x401d),
      group_prng_(~seed),
      rates_prng_(seed ^ 0x7a7e),
      next_request_id_(first_request_id) {
  pace_us_ = prng_.Between(2, 150) * kMs;
  held_max_ = static_cast<size_t>(prng_.Between(1, 8));
  request_id_chance_ = static_cast<uint32_t>(prng_.Below(3) * 500'000);
  wait_chance_ = static_cast<uint32_t>(prng_.Below(3) * 400'000);
  calls_percent_ = prng_.Below(4) == 0 ? 40 : 0;
  groups_percent_ = group_prng_.Below(3) == 0 ? 50 : 0;
}

void ClientLife::ActLater() {
  int64_t pause_us = prng_.Between(1, 2 * pace_us_);
  if (prng_.ChancePerMillion(world_->options().plan.client_pause_chance)) {
    world_->faults().Count(Fault::kClientPause);
    pause_us += prng_.Between(0, world_->options().plan.client_pause_ms_max) * kMs;
  }
  world_->timeline().After(pause_us, [this] { Act(); });
}

void ClientLife::Act() {
  if (stopped_) return;
  ActLater();
  if (!client_->connected()) {
    Reconnect();
  } else if (client_->may_send() && !Leaves()) {
    DoSomething();
  }
}

void ClientLife::Reconnect() {
  client_->Open(/*steady=*/false);
  if (client_->may_send()) Settle();
}

void ClientLife::Settle() {
  for (const auto& [id, wanted] : std::map(client_->unsettled())) {
    if (prng_.Below(4) == 0) {
      client_->Cancel(id);
    } else {
      client_->Acquire(wanted);
    }
  }
  for (const SimClient::Held& held : std::vector(client_->held())) {
    if (prng_.Below(3) == 0) client_->Keep(held.token);
  }
}

bool ClientLife::Leaves() {
  if (!prng_.ChancePerMillion(world_->options().plan.client_ends_chance)) return false;
  world_->faults().Count(Fault::kClientEnds);
  client_->Hangup(/*politely=*/prng_.Below(2) == 0);
  return true;
}

// Hardly ever one that is being released already.
const SimClient::Held* ClientLife::SomeHeld() {
  const auto& held = client_->held();
  if (held.empty()) return nullptr;
  const SimClient::Held& some = held[prng_.Below(held.size())];
  return some.releasing && prng_.Below(20) != 0 ? nullptr : &some;
}

void ClientLife::DoSomething() {
  if (client_->unanswered() >= kUnansweredMax) return;
  if (prng_.Below(100) < calls_percent_) return RequestCalls();
  const SimClient::Held* const some = SomeHeld();
  const uint64_t what = prng_.Below(100);
  if (what < 45) {
    if (client_->held().size() < held_max_) return AcquireNew();
    if (some != nullptr) client_->Release(some->token);
  } else if (what < 70) {
    if (some != nullptr) client_->Release(some->token);
  } else if (what < 82) {
    if (some != nullptr) client_->Keep(some->token);
  } else if (what < 88) {
    AskAgain();
  } else if (what < 93) {
    CancelSomething();
  } else if (what < 95) {
    ReleaseWrongly();
  } else if (what < 97) {
    RequestCalls();
  } else if (what < 98) {
    client_->ListFlows();
  } else if (what < 99) {
    client_->ListWaiters();
  } else {
    client_->Ping();
  }
}

SimClient::Wanted ClientLife::Draw() {
  const auto& rules = world_->rules();
  SimClient::Wanted wanted;
  const std::vector<int64_t> lanes = rules[prng_.Below(rules.size())].lanes();
  wanted.flow = lanes.size() == 1 ? lanes.front() : lanes[prng_.Below(lanes.size())];
  wanted.count = prng_.Below(4) == 0 ? prng_.Between(1, 4) : 1;
  wanted.prioritized = prng_.Below(5) == 0;
  if (prng_.ChancePerMillion(wait_chance_)) {
    wanted.wait_ms = static_cast<uint64_t>(prng_.Between(0, kWaitMsMax));
  }
  if (prng_.Below(100) == 0) wanted.flow += 1000;  // Which has no rule.
  if (holds_prng_.Below(3) == 0) {
    wanted.hold_ms = static_cast<uint64_t>(holds_prng_.Between(1, kHoldMsMax));
  }
  return wanted;
}

void ClientLife::AcquireNew() {
  SimClient::Wanted wanted = Draw();
  if (prng_.ChancePerMillion(request_id_chance_)) wanted.request_id = next_request_id_++;
  if (group_prng_.Below(100) < groups_percent_) DrawGroup(&wanted);
  client_->Acquire(wanted);
}

// Of some lanes, in any order.
void ClientLife::DrawGroup(SimClient::Wanted* wanted) {
  std::vector<int64_t> lanes;
  for (const auto& rule : world_->rules()) {
    for (const int64_t lane : rule.lanes()) lanes.push_back(lane);
  }
  for (uint64_t items = group_prng_.Between(1, 5); items > 0 && !lanes.empty(); --items) {
    const size_t at = group_prng_.Below(lanes.size());
    const int64_t count = group_prng_.Below(5) == 0 ? group_prng_.Between(1, 3) : 1;
    wanted->all.push_back({.flow = lanes[at], .count = count});
    lanes.erase(lanes.begin() + static_cast<ptrdiff_t>(at));
  }
  if (rates_prng_.Below(2) == 0) DrawRates(wanted);
}

// At most one of each lane.
void ClientLife::DrawRates(SimClient::Wanted* wanted) {
  for (int64_t rates = rates_prng_.Between(1, 2); rates > 0; --rates) {
    const CallsWanted drawn = DrawCalls(world_->rules(), &rates_prng_);
    const int64_t lane = drawn.lanes.empty() ? drawn.flow : drawn.lanes.front();
    const auto is_it = [&](const Item& item) { return item.flow == lane; };
    if (drawn.misfit || std::any_of(wanted->rates.begin(), wanted->rates.end(), is_it)) continue;
    wanted->rates.push_back({.flow = lane, .count = drawn.count});
  }
}

// A burst, which the window may not hold.
void ClientLife::RequestCalls() {
  const CallsWanted wanted = DrawCalls(world_->rules(), &prng_);
  for (uint64_t i = prng_.Below(4); client_->may_send(); --i) {
    if (wanted.lanes.empty()) {
      client_->Request(wanted.flow, wanted.count, wanted.prioritized, wanted.misfit);
    } else {
      client_->RequestValues(wanted.lanes, wanted.count, wanted.misfit);
    }
    if (i == 0) return;
  }
}

// By a request id that is in use, for the same or, wrongly, for something else.
void ClientLife::AskAgain() {
  SimClient::Wanted wanted;
  const auto& unsettled = client_->unsettled();
  if (!unsettled.empty() && prng_.Below(2) == 0) {
    wanted =
        std::next(unsettled.begin(), static_cast<ptrdiff_t>(prng_.Below(unsettled.size())))->second;
  } else if (!client_->held().empty()) {
    wanted = client_->held()[prng_.Below(client_->held().size())].wanted;
  }
  if (wanted.request_id == 0) return;
  if (prng_.Below(3) == 0) wanted.wait_ms = static_cast<uint64_t>(prng_.Between(0, kWaitMsMax));
  if (prng_.Below(10) == 0) ++(wanted.all.empty() ? wanted.count : wanted.all.back().count);
  client_->Acquire(wanted);
}

void ClientLife::CancelSomething() {
  const auto& unsettled = client_->unsettled();
  if (!unsettled.empty()) {
    const auto at =
        std::next(unsettled.begin(), static_cast<ptrdiff_t>(prng_.Below(unsettled.size())));
    return client_->Cancel(at->first);
  }
  for (const SimClient::Held& held : client_->held()) {
    if (held.wanted.request_id != 0) return client_->Cancel(held.wanted.request_id);
  }
}

// A token that has ended, or that of another client.
void ClientLife::ReleaseWrongly() {
  if (!client_->past().empty() && prng_.Below(2) == 0) {
    return client_->Release(client_->past()[prng_.Below(client_->past().size())]);
  }
  const std::vector<uint64_t> held = world_->HeldTokens();
  if (held.empty()) return;
  const uint64_t token = held[prng_.Below(held.size())];
  if (prng_.Below(2) == 0) return client_->Release(token);
  client_->Keep(token);
}

}  // namespace nowcalls::sim
