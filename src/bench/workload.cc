#include "bench/workload.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace nowcalls::bench {

void Workload::AddConnection(Dialect* dialect, wire::OutputBuffer* out) {
  Connection connection;
  connection.dialect = dialect;
  connection.out = out;
  connection.lanes.resize(options_.lanes);
  connection.free.resize(options_.lanes);
  // A stack with lane 0 on top: few lanes are touched while few are in use.
  for (uint32_t i = 0; i < options_.lanes; ++i) connection.free[i] = options_.lanes - 1 - i;
  connections_.push_back(std::move(connection));
}

void Workload::Start(const Moment& now) {
  start_ns_ = now.ns;
  unanswered_since_ns_ = now.ns;
  touched_.reserve(connections_.size());
  // Every lane may hold a token, so the ring never grows. A power of two makes its index a mask.
  held_.resize(std::bit_ceil(connections_.size() * options_.lanes));
  for (uint32_t i = 0; i < connections_.size(); ++i) StartWaiting(i, now);
  Advance(now);
}

void Workload::Advance(const Moment& now) {
  // Held tokens first: their lanes are free again only when the release is answered.
  ReleaseHeld(now);
  // Arrivals go to the connections in turn. Nothing is stored for one that waits: arrived_ and the
  // connection's count say when its next request was due.
  while (open_loop() && !finished_ && ArrivalNs(arrived_) <= now.ns) {
    const auto connection = static_cast<uint32_t>(arrived_ % connections_.size());
    ++arrived_;
    StartWaiting(connection, now);
  }
}

int64_t Workload::next_due_ns() const {
  const int64_t release_ns =
      held_begin_ == held_end_ ? kNever : held_[held_begin_ & (held_.size() - 1)].due_ns;
  if (!open_loop() || finished_ || start_ns_ == kNever) return release_ns;
  return std::min(release_ns, ArrivalNs(arrived_));
}

bool Workload::Fits(AnswerKind kind, LaneState state) {
  switch (kind) {
    case AnswerKind::kGranted:
    case AnswerKind::kRefused: return state == LaneState::kAcquiring;
    case AnswerKind::kReleased: return state == LaneState::kReleasing;
    case AnswerKind::kError:
      return state == LaneState::kAcquiring || state == LaneState::kReleasing;
    case AnswerKind::kGreeted: return false;
  }
  return false;
}

bool Workload::OnAnswer(uint32_t connection, const Answer& answer, const Moment& now) {
  if (answer.lane >= options_.lanes) return false;
  Lane& lane = connections_[connection].lanes[answer.lane];
  // The lane says what it asked; another kind of answer means that client and server disagree.
  if (!Fits(answer.kind, lane.state)) return false;
  switch (answer.kind) {
    case AnswerKind::kGranted:
      ++granted_;
      // A latency runs from the moment the request was due, so waiting for a lane and sending
      // count.
      recorder_->Granted(lane.intended_ns, now.ns);
      if (options_.release) {
        lane.token = answer.token;
        Hold(connection, answer.lane, now);
        return true;
      }
      break;
    case AnswerKind::kReleased: recorder_->Released(lane.intended_ns, now.ns); break;
    case AnswerKind::kRefused:
      ++refused_;
      recorder_->Refused(answer.refused_by, lane.intended_ns, now.ns);
      break;
    default: recorder_->Failed(answer.error_name, answer.error_text, now.ns);
  }
  Free(connection, answer.lane);
  return true;
}

void Workload::StartWaiting(uint32_t connection, const Moment& now) {
  Connection& at = connections_[connection];
  if (open_loop()) {
    // Open loop: the request counts from its place in the schedule, however late it is sent.
    while (!at.free.empty() && Waits(connection)) {
      const int64_t intended_ns = ArrivalNs(NextArrivalOf(connection));
      ++at.arrivals_started;
      StartCycle(connection, intended_ns, now);
    }
  } else {
    // Closed loop: due now, when the answers before were looked at. So the client's own work on the
    // other answers of this turn counts, too.
    while (!at.free.empty() && MayStartCycle()) StartCycle(connection, now.ns, now);
  }
}

void Workload::Finish(const Moment& now) {
  Advance(now);
  finished_ = true;
  // Tokens that are granted from now on are released at once, and held ones, too.
  options_.hold_ns = 0;
  // All become due now, which keeps the ring in order.
  for (uint64_t i = held_begin_; i < held_end_; ++i) {
    held_[i & (held_.size() - 1)].due_ns = now.ns;
  }
  ReleaseHeld(now);
}

int64_t Workload::BehindNs(int64_t now_ns) const {
  if (!open_loop()) return 0;
  int64_t oldest_ns = now_ns;
  for (uint32_t i = 0; i < connections_.size(); ++i) {
    oldest_ns = std::min(oldest_ns, OldestInFlightNs(connections_[i]));
    // Only the next arrival of each connection: those behind it were due later.
    if (Waits(i)) oldest_ns = std::min(oldest_ns, ArrivalNs(NextArrivalOf(i)));
  }
  return now_ns - oldest_ns;
}

bool Workload::IsBehind(int64_t now_ns, int64_t behind_ns_max) {
  // Cheap nearly always: no request that was due before unanswered_since_ns_ is unanswered, so
  // while it is recent enough nothing is looked at.
  if (!open_loop() || unanswered_since_ns_ >= now_ns - behind_ns_max) return false;
  const int64_t behind_ns = BehindNs(now_ns);
  // What is sent from now on may have been due by now.
  unanswered_since_ns_ = std::min(now_ns - behind_ns, next_due_ns());
  return behind_ns > behind_ns_max;
}

int64_t Workload::OldestInFlightNs(const Connection& connection) {
  int64_t oldest_ns = kNever;
  // The free lanes are a stack with the first on top, so those in use are mostly the first.
  size_t busy = connection.lanes.size() - connection.free.size();
  for (size_t i = 0; busy > 0; ++i) {
    const Lane& lane = connection.lanes[i];
    if (lane.state == LaneState::kFree) continue;
    --busy;
    if (lane.state != LaneState::kHolding) oldest_ns = std::min(oldest_ns, lane.intended_ns);
  }
  return oldest_ns;
}

int64_t Workload::ArrivalNs(uint64_t index) const {
  return start_ns_ + std::llround(static_cast<double>(index) * interval_ns_);
}

bool Workload::MayStartCycle() const {
  return !finished_ && (options_.cycles_max == 0 || cycles_started_ < options_.cycles_max);
}

void Workload::Touch(uint32_t connection) {
  if (connections_[connection].touched) return;
  connections_[connection].touched = true;
  touched_.push_back(connection);
}

void Workload::StartCycle(uint32_t connection, int64_t intended_ns, const Moment& now) {
  Connection& at = connections_[connection];
  const uint32_t number = at.free.back();
  at.free.pop_back();
  ++busy_lanes_;
  ++cycles_started_;
  Lane& lane = at.lanes[number];
  // The state comes before the request: the answer must find it.
  lane = {intended_ns, 0, flows_.Next(), LaneState::kAcquiring};
  recorder_->Started(intended_ns, now.ns);
  at.dialect->Acquire(number, lane.flow, now.wall_ms, at.out);
  Touch(connection);
}

void Workload::Hold(uint32_t connection, uint32_t lane, const Moment& now) {
  // Not held: the release is due at the look at the clock that took the grant.
  if (options_.hold_ns == 0) return Release(connection, lane, now.ns, now);
  connections_[connection].lanes[lane].state = LaneState::kHolding;
  NOWCALLS_CHECK(held_end_ - held_begin_ < held_.size());
  held_[held_end_++ & (held_.size() - 1)] = {now.ns + options_.hold_ns, connection, lane};
}

void Workload::Release(uint32_t connection, uint32_t lane, int64_t intended_ns, const Moment& now) {
  Connection& at = connections_[connection];
  Lane& held = at.lanes[lane];
  held.intended_ns = intended_ns;
  held.state = LaneState::kReleasing;
  recorder_->Started(intended_ns, now.ns);
  at.dialect->Release(lane, held.flow, held.token, at.out);
  Touch(connection);
}

void Workload::Free(uint32_t connection, uint32_t lane) {
  connections_[connection].lanes[lane].state = LaneState::kFree;
  connections_[connection].free.push_back(lane);
  --busy_lanes_;
}

void Workload::ReleaseHeld(const Moment& now) {
  while (held_begin_ < held_end_) {
    const Held& held = held_[held_begin_ & (held_.size() - 1)];
    if (held.due_ns > now.ns) return;
    Release(held.connection, held.lane, held.due_ns, now);
    ++held_begin_;
  }
}

}  // namespace nowcalls::bench
