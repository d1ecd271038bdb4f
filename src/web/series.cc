#include "web/series.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace nowcalls::web {
namespace {

constexpr FlowKey kAllFlows;  // No flow has its id, 0.

uint32_t Fitting(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
}

Point PointOf(const FlowLook& look, int64_t unix_s) {
  return {.unix_s = unix_s,
          .now_calls = Fitting(look.row.now_calls),
          .waiting = Fitting(look.row.waiters.value_or(0)),
          .granted = Fitting(look.came.granted),
          .refused = Fitting(look.came.refused),
          .ended = Fitting(look.came.ended),
          .exceptions = Fitting(look.came.exceptions),
          .held_ms = look.came.held_ms};
}

bool IsIdle(const Point& point) {
  return point.now_calls == 0 && point.waiting == 0 && point.granted == 0 && point.refused == 0 &&
         point.ended == 0;
}

}  // namespace

void Series::Flow::Append(const Point& point) {
  if (!IsIdle(point)) used_unix_s = point.unix_s;
  // Of two looks within a second the gauges are the later ones.
  // The newest point is the one before `next`, also while the ring grows and `next` is 0.
  Point* const last = ring.empty() ? nullptr : &ring[(next + ring.size() - 1) % ring.size()];
  if (last != nullptr && last->unix_s == point.unix_s) {
    const Point before = std::exchange(*last, point);
    last->granted += before.granted;
    last->refused += before.refused;
    last->ended += before.ended;
    last->exceptions += before.exceptions;
    last->held_ms += before.held_ms;
    return;
  }
  if (ring.size() < kPoints) {
    ring.push_back(point);
    return;
  }
  ring[next] = point;
  next = (next + 1) % kPoints;
}

std::vector<Point> Series::Flow::Between(int64_t from_unix_s, int64_t to_unix_s) const {
  std::vector<Point> points;
  for (size_t i = 0; i < ring.size(); ++i) {
    const Point& point = ring[(next + i) % ring.size()];
    if (point.unix_s >= from_unix_s && point.unix_s <= to_unix_s) points.push_back(point);
  }
  return points;
}

void Series::Add(const Snapshot& snapshot) {
  const int64_t unix_s = snapshot.second();
  const std::lock_guard lock(mutex_);
  // The sum is of all flows. Known ones get their point; others wait until they are used.
  Point all{.unix_s = unix_s};
  std::vector<const FlowLook*> newcomers;
  for (const FlowLook& look : snapshot.flows) {
    const Point point = PointOf(look, unix_s);
    all.now_calls += point.now_calls;
    all.waiting += point.waiting;
    all.granted += point.granted;
    all.refused += point.refused;
    all.ended += point.ended;
    all.exceptions += point.exceptions;
    all.held_ms += point.held_ms;
    const auto known = flows_.find(wire::KeyOf(look.row));
    if (known != flows_.end()) {
      known->second.Append(point);
    } else if (!IsIdle(point)) {
      newcomers.push_back(&look);
    }
  }
  flows_[kAllFlows].Append(all);
  // Long idle flows leave before newcomers look for room.
  std::erase_if(flows_, [&](const auto& flow) {
    return flow.first != kAllFlows &&
           flow.second.used_unix_s + static_cast<int64_t>(kPoints) < unix_s;
  });
  std::vector<FlowKey> idle = IdleAt(unix_s);
  for (const FlowLook* look : newcomers) {
    // kAllFlows stands in the map beside kFlowsMax flows.
    if (flows_.size() > kFlowsMax) {
      // All are in use: the newcomer is in the sum alone.
      if (idle.empty()) break;
      flows_.erase(idle.back());
      idle.pop_back();
    }
    flows_[wire::KeyOf(look->row)].Append(PointOf(*look, unix_s));
  }
}

std::vector<FlowKey> Series::IdleAt(int64_t unix_s) const {
  std::vector<std::pair<int64_t, FlowKey>> idle;  // Since when, and the flow.
  for (const auto& [key, flow] : flows_) {
    if (key != kAllFlows && flow.used_unix_s < unix_s) idle.emplace_back(flow.used_unix_s, key);
  }
  std::sort(idle.begin(), idle.end(), std::greater<>());
  std::vector<FlowKey> keys;
  keys.reserve(idle.size());
  for (const auto& [since_s, key] : idle) keys.push_back(key);
  return keys;
}

std::vector<Point> Series::PointsOf(const FlowKey& flow, int64_t from_unix_s) const {
  const std::lock_guard lock(mutex_);
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return {};
  return found->second.Between(from_unix_s, INT64_MAX);
}

std::map<FlowKey, std::vector<Point>> Series::All(int64_t from_unix_s, int64_t to_unix_s) const {
  const std::lock_guard lock(mutex_);
  std::map<FlowKey, std::vector<Point>> all;
  for (const auto& [key, flow] : flows_) {
    if (key != kAllFlows) all[key] = flow.Between(from_unix_s, to_unix_s);
  }
  return all;
}

}  // namespace nowcalls::web
