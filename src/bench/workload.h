// Workload: which request is sent when, on which connection; no I/O.
//
// Thread: one at a time. Deterministic; time comes with each call. Nothing is allocated per
// operation.
//
// A lane acquires, holds for hold_ns, releases, and is free again; a refusal, an error or a grant
// without release frees it at once. Free lanes start again
//   closed loop: at once, until `cycles_max` have been started;
//   open loop:   with the next arrival, on a fixed schedule, connections in turn. An arrival
//                without a free lane waits; its latency counts from when it was due.
#ifndef NOWCALLS_BENCH_WORKLOAD_H_
#define NOWCALLS_BENCH_WORKLOAD_H_

#include <cstdint>
#include <vector>

#include "bench/dialect.h"
#include "bench/flow_picker.h"
#include "bench/moment.h"
#include "bench/recorder.h"
#include "wire/output_buffer.h"

namespace nowcalls::bench {

struct WorkloadOptions {
  uint32_t lanes = 1;         // A connection.
  double arrivals_per_s = 0;  // Over all connections. 0: closed loop.
  uint64_t cycles_max = 0;    // Closed loop only. 0: without end.
  int64_t hold_ns = 0;
  bool release = true;
};

class Workload {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  // `recorder` outlives it.
  Workload(const WorkloadOptions& options, const FlowPicker& flows, Recorder* recorder)
      : options_(options),
        interval_ns_(options.arrivals_per_s > 0 ? 1e9 / options.arrivals_per_s : 0),
        flows_(flows),
        recorder_(recorder) {}

  // Numbered from 0, all before Start. Both pointers outlive the load.
  void AddConnection(Dialect* dialect, wire::OutputBuffer* out);
  void Start(const Moment& now);

  void Advance(const Moment& now);
  // When to call Advance next.
  int64_t next_due_ns() const;

  // False: answers no request. After a batch of answers call StartWaiting.
  bool OnAnswer(uint32_t connection, const Answer& answer, const Moment& now);
  void StartWaiting(uint32_t connection, const Moment& now);

  bool open_loop() const { return interval_ns_ > 0; }

  // Only arrivals due before still begin; held tokens are released.
  void Finish(const Moment& now);
  bool idle() const { return busy_lanes_ == 0 && waiting() == 0; }
  // Due arrivals without a lane.
  uint64_t waiting() const { return open_loop() ? arrived_ - cycles_started_ : 0; }

  uint64_t in_flight() const { return busy_lanes_ - (held_end_ - held_begin_); }

  // Since an open loop's oldest unanswered request was due; else 0.
  int64_t BehindNs(int64_t now_ns) const;
  bool IsBehind(int64_t now_ns, int64_t behind_ns_max);

  uint64_t granted() const { return granted_; }  // Ever, also while nothing was counted.
  uint64_t refused() const { return refused_; }
  uint32_t lanes() const { return options_.lanes; }  // Of a connection.
  uint32_t busy_lanes() const { return busy_lanes_; }

  // Connections with new requests since the last time.
  template <typename Visit>
  void TakeTouched(Visit&& visit) {
    for (const uint32_t connection : touched_) {
      connections_[connection].touched = false;
      visit(connection);
    }
    touched_.clear();
  }

 private:
  enum class LaneState : uint8_t { kFree, kAcquiring, kHolding, kReleasing };
  struct Lane {
    int64_t intended_ns = 0;  // The start of the request in flight.
    uint64_t token = 0;
    uint32_t flow = 0;
    LaneState state = LaneState::kFree;
  };
  struct Connection {
    Dialect* dialect = nullptr;
    wire::OutputBuffer* out = nullptr;
    std::vector<Lane> lanes;
    std::vector<uint32_t> free;
    uint64_t arrivals_started = 0;
    bool touched = false;
  };
  struct Held {
    int64_t due_ns = 0;
    uint32_t connection = 0;
    uint32_t lane = 0;
  };

  int64_t ArrivalNs(uint64_t index) const;
  uint64_t NextArrivalOf(uint32_t connection) const {
    return connection + connections_[connection].arrivals_started * connections_.size();
  }
  bool Waits(uint32_t connection) const { return NextArrivalOf(connection) < arrived_; }
  // kNever: none.
  static int64_t OldestInFlightNs(const Connection& connection);
  static bool Fits(AnswerKind kind, LaneState state);
  bool MayStartCycle() const;

  void Touch(uint32_t connection);
  void StartCycle(uint32_t connection, int64_t intended_ns, const Moment& now);
  void Hold(uint32_t connection, uint32_t lane, const Moment& now);
  void Release(uint32_t connection, uint32_t lane, int64_t intended_ns, const Moment& now);
  void Free(uint32_t connection, uint32_t lane);
  void ReleaseHeld(const Moment& now);

  WorkloadOptions options_;
  double interval_ns_;  // Between two arrivals.
  FlowPicker flows_;
  Recorder* recorder_;
  std::vector<Connection> connections_;
  std::vector<uint32_t> touched_;
  // A ring in order of release.
  std::vector<Held> held_;
  uint64_t held_begin_ = 0;
  uint64_t held_end_ = 0;
  int64_t start_ns_ = kNever;
  int64_t unanswered_since_ns_ = kNever;  // No request that is not answered was due before.
  bool finished_ = false;
  uint64_t arrived_ = 0;  // Arrivals that have been due.
  uint64_t cycles_started_ = 0;
  uint64_t granted_ = 0;
  uint64_t refused_ = 0;
  uint32_t busy_lanes_ = 0;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_WORKLOAD_H_
