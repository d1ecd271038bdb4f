// LoadLoop: one libuv loop that loads a server and times it.
//
// Thread: the one that calls Run. SIGINT and SIGTERM end the counting early; a second one ends the
// process.
#ifndef NOWCALLS_BENCH_LOAD_LOOP_H_
#define NOWCALLS_BENCH_LOAD_LOOP_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_port.h"
#include "bench/alarm.h"
#include "bench/connection.h"
#include "bench/process_usage.h"
#include "bench/recorder.h"
#include "bench/workload.h"
#include "net/socket_turn.h"
#include "nowcalls/status.h"

namespace nowcalls::bench {

struct LoadPlan {
  HostPort peer;
  std::function<std::unique_ptr<Dialect>(uint32_t lanes)> new_dialect;
  std::function<std::unique_ptr<net::Channel>()> new_channel = net::PlainChannel::Make;
  uint32_t connections = 1;
  // Absent: idle connections.
  std::optional<WorkloadOptions> workload;
  FlowPicker flows{0, 1, FlowDistribution::kRoundRobin, 0};
  // Acquires a second of tokens that expire, on their own connection; 0: none.
  uint32_t expire_rate = 0;
  uint32_t expire_flow = 0;
  int64_t warm_up_ns = 0;
  int64_t duration_ns = 0;    // Of a load with cycles_max: until all of them are done.
  int64_t behind_ns_max = 0;  // Of open loops; looked at some times a second.
  int64_t server_pid = 0;     // 0: not known.
  std::function<void(std::string_view)> show;  // The state in a few words, some times a second.
};

struct Usage {
  double client_cpu_s = 0;
  std::optional<ProcessUsage> server;
};

struct LoadResult {
  Recorder load;
  Recorder expiring;
  std::vector<SecondRow> seconds;
  std::vector<SecondRow> expiring_seconds;
  int64_t connect_ns = 0;
  int64_t counted_ns = 0;
  Usage before;  // The counted interval.
  Usage after;
  uint64_t granted_ever = 0;  // Also outside the counted interval, as refused_ever.
  uint64_t refused_ever = 0;
  bool interrupted = false;
};

class LoadLoop : public Connection::Owner {
 public:
  explicit LoadLoop(LoadPlan plan) : plan_(std::move(plan)) {}
  ~LoadLoop() override = default;
  LoadLoop(const LoadLoop&) = delete;
  LoadLoop& operator=(const LoadLoop&) = delete;

  // Call once. kUnavailable: no server, or a connection was lost. kResourceExhausted: behind the
  // schedule. kIoError: the system refuses.
  Status Run();
  // REQUIRES: Run was ok.
  std::unique_ptr<LoadResult> TakeResult();

 private:
  enum class Phase : uint8_t { kConnecting, kWarmingUp, kCounting, kAwaitingAnswers, kClosing };

  void MakeConnections(uint32_t connections);
  Status OpenLoop();
  void OpenConnections();
  void Start();
  void BeginCounting();
  void EndCounting();
  void OnPhaseTimer();
  void OnTick();
  void OnTurnEnd();
  int64_t AdvanceWorkloads();
  void OnSignal();
  void Flush();
  void CheckDone();
  Status CheckBehind();
  Status CheckAnswered() const;
  static Status CannotKeepUp(const Workload& load, int64_t now_ns,
                             const std::string& what_to_lower);
  void Show() const;
  void End(const Status& status);
  void SetPhaseTimer(int64_t delay_ns);
  Usage ReadUsage() const;
  template <typename Visit>
  void ForEachWorkload(Visit&& visit);
  bool IsExpiring(const Connection& connection) const {
    return connection.number() >= plan_.connections;
  }

  void OnGreeted(Connection* connection) override;
  bool OnAnswer(Connection* connection, const Answer& answer, const Moment& now) override;
  void OnAnswersTaken(Connection* connection, const Moment& now) override;
  void OnLost(Connection* connection, const Status& reason) override;

  LoadPlan plan_;
  std::unique_ptr<LoadResult> result_ = std::make_unique<LoadResult>();
  Status status_;
  Phase phase_ = Phase::kConnecting;
  int64_t opened_ns_ = 0;
  int64_t answered_ns_ = 0;  // Of the last answer.
  sockaddr_storage address_{};
  uv_loop_t loop_{};
  uv_timer_t phase_timer_{};
  uv_timer_t tick_{};
  uv_check_t turn_end_{};
  uv_signal_t signals_[2]{};
  Alarm alarm_;
  net::SocketTurn sockets_;
  std::vector<std::unique_ptr<Connection>> connections_;
  size_t opened_ = 0;
  size_t greeted_ = 0;
  std::optional<Workload> workload_;
  std::optional<Workload> expiring_;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_LOAD_LOOP_H_
