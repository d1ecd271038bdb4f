#include "bench/load_loop.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/counted.h"
#include "bench/reachable_address.h"

namespace nowcalls::bench {
namespace {

constexpr int64_t kMsNs = 1'000'000;
constexpr int64_t kSecondNs = 1000 * kMsNs;
constexpr size_t kConnectingMax = 64;
constexpr int64_t kConnectTimeoutMs = 10'000;  // Without another connection being ready.
constexpr int64_t kAnswerTimeoutMs = 10'000;   // For an answer of a fill, or the last of a load.
constexpr uint64_t kTickMs = 200;
constexpr uint64_t kDescriptorsBesides = 32;

// Every connection is an open file; the soft limit is often 1024 and may be raised.
Status AllowOpenFiles(uint64_t files) {
  rlimit limit{};
  NOWCALLS_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_cur >= files) return {};
  if (limit.rlim_max < files) {
    return Status::IoError("the system allows " + std::to_string(limit.rlim_max) +
                           " open files, too few for so many connections; raise 'ulimit -n' to " +
                           std::to_string(files));
  }
  limit.rlim_cur = files;
  NOWCALLS_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  return {};
}

}  // namespace

Status LoadLoop::Run() {
  // Happy path: the sockets are allowed, the server is found, all connections are opened and
  // greeted (OnGreeted), the load starts (Start), is counted after the warm-up (BeginCounting)
  // until its end (EndCounting), and the last answers are awaited (CheckDone).
  const size_t connections = plan_.connections + (plan_.expire_rate > 0 ? 1 : 0);
  NOWCALLS_RETURN_IF_ERROR(AllowOpenFiles(connections + kDescriptorsBesides));
  // Found once: a host name with a dead address is not tried by each of 10,000 connections.
  const Result<sockaddr_storage> address =
      ReachableAddress(plan_.peer, BoottimeMs() + kConnectTimeoutMs);
  if (!address.ok()) {
    return address.status().WithContext("cannot reach " + plan_.peer.ToString());
  }
  address_ = *address;
  MakeConnections(static_cast<uint32_t>(connections));
  const Status ready = OpenLoop();
  if (ready.ok()) {
    opened_ns_ = MonotonicNs();
    OpenConnections();
  } else {
    End(ready);
  }
  // Runs until End has closed every handle, also after a failure.
  uv_run(&loop_, UV_RUN_DEFAULT);
  NOWCALLS_CHECK(uv_loop_close(&loop_) == 0);
  return status_;
}

void LoadLoop::MakeConnections(uint32_t connections) {
  if (plan_.workload) workload_.emplace(*plan_.workload, plan_.flows, &result_->load);
  if (plan_.expire_rate > 0) {
    // Tokens that expire come from a load of their own, on the last connection: one lane for each
    // acquire of a second.
    WorkloadOptions options;
    options.lanes = plan_.expire_rate;
    options.arrivals_per_s = plan_.expire_rate;
    options.release = false;
    const FlowPicker flow(plan_.expire_flow, 1, FlowDistribution::kRoundRobin, 0);
    expiring_.emplace(options, flow, &result_->expiring);
  }
  for (uint32_t i = 0; i < connections; ++i) {
    std::optional<Workload>& load = i < plan_.connections ? workload_ : expiring_;
    const uint32_t lanes = load ? load->lanes() : 1;
    connections_.push_back(std::make_unique<Connection>(i, plan_.new_dialect(lanes),
                                                        plan_.new_channel(), &sockets_, this));
    if (load) load->AddConnection(connections_[i]->dialect(), connections_[i]->out());
  }
}

Status LoadLoop::OpenLoop() {
  NOWCALLS_CHECK(uv_loop_init(&loop_) == 0);
  loop_.data = this;
  phase_timer_.data = tick_.data = turn_end_.data = this;
  NOWCALLS_CHECK(uv_timer_init(&loop_, &phase_timer_) == 0);
  NOWCALLS_CHECK(uv_timer_init(&loop_, &tick_) == 0);
  NOWCALLS_CHECK(uv_timer_start(
                     &tick_, [](uv_timer_t* t) { static_cast<LoadLoop*>(t->data)->OnTick(); },
                     kTickMs, kTickMs) == 0);
  // Runs behind the sockets of each turn, when all of them have been looked at.
  NOWCALLS_CHECK(uv_check_init(&loop_, &turn_end_) == 0);
  NOWCALLS_CHECK(uv_check_start(&turn_end_, [](uv_check_t* check) {
                   static_cast<LoadLoop*>(check->data)->OnTurnEnd();
                 }) == 0);
  const int numbers[] = {SIGINT, SIGTERM};
  for (size_t i = 0; i < std::size(numbers); ++i) {
    signals_[i].data = this;
    NOWCALLS_CHECK(uv_signal_init(&loop_, &signals_[i]) == 0);
    NOWCALLS_CHECK(uv_signal_start(
                       &signals_[i],
                       [](uv_signal_t* s, int) { static_cast<LoadLoop*>(s->data)->OnSignal(); },
                       numbers[i]) == 0);
  }
  // The alarm only wakes the loop: the end of the turn does what has become due.
  return alarm_.Start(&loop_, [] {});
}

void LoadLoop::OpenConnections() {
  SetPhaseTimer(kConnectTimeoutMs * kMsNs);
  // At most kConnectingMax at a time, so the server's backlog does not overflow. Each greeting
  // opens the next, and restarts the timeout.
  while (phase_ == Phase::kConnecting && opened_ < connections_.size() &&
         opened_ - greeted_ < kConnectingMax) {
    connections_[opened_++]->Open(&loop_, reinterpret_cast<const sockaddr*>(&address_));
  }
}

void LoadLoop::OnGreeted(Connection* /*connection*/) {
  ++greeted_;
  if (greeted_ == connections_.size()) return Start();
  OpenConnections();
}

void LoadLoop::Start() {
  const Moment now = Now();
  result_->connect_ns = now.ns - opened_ns_;
  phase_ = Phase::kWarmingUp;
  // The interval is set before the load starts. Latencies of requests due in the warm-up stay out,
  // even if their answers come later.
  const int64_t begin_ns = now.ns + plan_.warm_up_ns;
  const bool until_done = plan_.workload && plan_.workload->cycles_max > 0;
  const int64_t end_ns = until_done ? Workload::kNever : begin_ns + plan_.duration_ns;
  result_->load.Count(begin_ns, end_ns);
  result_->expiring.Count(begin_ns, end_ns);
  ForEachWorkload([&now](Workload* load) { load->Start(now); });
  if (plan_.warm_up_ns == 0) return BeginCounting();
  SetPhaseTimer(plan_.warm_up_ns);
}

void LoadLoop::BeginCounting() {
  phase_ = Phase::kCounting;
  answered_ns_ = MonotonicNs();
  // CPU and memory are those of the counted interval. The timer of the warm-up may be late, so the
  // rest is measured from the interval's own end.
  result_->before = ReadUsage();
  const bool until_done = plan_.workload && plan_.workload->cycles_max > 0;
  uv_timer_stop(&phase_timer_);
  if (!until_done) SetPhaseTimer(result_->load.end_ns() - MonotonicNs());
}

void LoadLoop::EndCounting() {
  const Moment now = Now();
  phase_ = Phase::kAwaitingAnswers;
  result_->load.EndAt(now.ns);
  result_->expiring.EndAt(now.ns);
  result_->counted_ns = result_->load.end_ns() - result_->load.begin_ns();
  // Before the last answers: awaiting them is not counted.
  result_->after = ReadUsage();
  // Requests that were due within the interval still count with their latency, so they are awaited.
  ForEachWorkload([&now](Workload* load) { load->Finish(now); });
  SetPhaseTimer(kAnswerTimeoutMs * kMsNs);
  Flush();
  CheckDone();
}

void LoadLoop::OnPhaseTimer() {
  switch (phase_) {
    case Phase::kConnecting:
      return End(Status::Unavailable("only " + std::to_string(greeted_) + " of " +
                                     std::to_string(connections_.size()) + " connections to " +
                                     plan_.peer.ToString() + " were answered within " +
                                     std::to_string(kConnectTimeoutMs / 1000) + " s"));
    case Phase::kWarmingUp: return BeginCounting();
    case Phase::kCounting: return EndCounting();
    case Phase::kAwaitingAnswers: {
      uint64_t unanswered = 0;
      ForEachWorkload([&](Workload* load) { unanswered += load->in_flight() + load->waiting(); });
      return End(Status::Unavailable(std::to_string(unanswered) +
                                     " requests were not answered within " +
                                     std::to_string(kAnswerTimeoutMs / 1000) +
                                     " s after the end; the server hangs or is overloaded"));
    }
    case Phase::kClosing: return;
  }
}

// Once a turn.
void LoadLoop::OnTurnEnd() {
  // Answers first, which make new requests; then what is due; then all of it leaves together.
  sockets_.Receive();
  if (phase_ == Phase::kConnecting || phase_ == Phase::kClosing) return;
  const int64_t next_due_ns = AdvanceWorkloads();
  Flush();
  // A send has found a connection lost: the run has ended.
  if (phase_ == Phase::kClosing) return;
  alarm_.Set(next_due_ns);
  CheckDone();
}

// Sends what has become due; returns when the next is.
int64_t LoadLoop::AdvanceWorkloads() {
  const auto next_due_ns = [this] {
    int64_t next_ns = Workload::kNever;
    ForEachWorkload([&](Workload* load) { next_ns = std::min(next_ns, load->next_due_ns()); });
    return next_ns;
  };
  // A closed loop that holds no tokens has no use for the clock.
  if (next_due_ns() == Workload::kNever) return Workload::kNever;
  const Moment now = Now();
  ForEachWorkload([&](Workload* load) {
    if (load->next_due_ns() <= now.ns) load->Advance(now);
  });
  return next_due_ns();
}

void LoadLoop::Flush() {
  if (workload_) workload_->TakeTouched([this](uint32_t i) { connections_[i]->Flush(); });
  if (expiring_) expiring_->TakeTouched([this](uint32_t) { connections_.back()->Flush(); });
  sockets_.SendAll();
}

void LoadLoop::CheckDone() {
  if (phase_ == Phase::kCounting && workload_ && plan_.workload->cycles_max > 0) {
    // A fill ends with its first refusal: the rest of its tokens would be refused, too.
    const bool refused = workload_->refused() + result_->load.errors_ever() > 0;
    if (refused || workload_->idle()) return EndCounting();
  }
  if (phase_ != Phase::kAwaitingAnswers) return;
  if ((!workload_ || workload_->idle()) && (!expiring_ || expiring_->idle())) End(Status::Ok());
}

void LoadLoop::OnTick() {
  for (const Status& checked : {CheckBehind(), CheckAnswered()}) {
    if (!checked.ok()) return End(checked);
  }
  if (plan_.show) Show();
}

Status LoadLoop::CheckBehind() {
  const int64_t now_ns = MonotonicNs();
  // A schedule that nobody keeps would run for its whole time and show the length of the queue, not
  // the server.
  if (workload_ && workload_->IsBehind(now_ns, plan_.behind_ns_max)) {
    const bool waits = workload_->waiting() > 0;
    return CannotKeepUp(*workload_, now_ns,
                        waits ? "--rate, or raise --connections or --in-flight if it is the "
                                "requests in flight that hold it up"
                              : "--rate");
  }
  if (expiring_ && expiring_->IsBehind(now_ns, plan_.behind_ns_max)) {
    return CannotKeepUp(*expiring_, now_ns, "--expire-rate");
  }
  return {};
}

// A fill has no end of its own while it waits for an answer.
Status LoadLoop::CheckAnswered() const {
  const bool is_fill = phase_ == Phase::kCounting && result_->load.end_ns() == Workload::kNever;
  if (!is_fill || MonotonicNs() - answered_ns_ <= kAnswerTimeoutMs * kMsNs) return {};
  return Status::Unavailable("no answer for " + std::to_string(kAnswerTimeoutMs / 1000) +
                             " s, and " + Counted(workload_->in_flight(), "request") +
                             " without one; the server hangs or is overloaded");
}

Status LoadLoop::CannotKeepUp(const Workload& load, int64_t now_ns,
                              const std::string& what_to_lower) {
  return Status::ResourceExhausted(
      "the server cannot keep up with the schedule: " + std::to_string(load.in_flight()) +
      " requests are in flight and " + std::to_string(load.waiting()) +
      " wait to be sent, the oldest has been due for " +
      std::to_string(load.BehindNs(now_ns) / kMsNs) + " ms, more than --behind-max-ms; lower " +
      what_to_lower);
}

void LoadLoop::Show() const {
  const std::string connections = Counted(greeted_, "connection");
  switch (phase_) {
    case Phase::kConnecting: return plan_.show(connections);
    case Phase::kWarmingUp: return plan_.show(connections + ", warming up");
    case Phase::kAwaitingAnswers: return plan_.show("awaiting the last answers");
    case Phase::kClosing: return;
    case Phase::kCounting: break;
  }
  const int64_t now_ns = MonotonicNs();
  const int64_t counted_s = (now_ns - result_->load.begin_ns()) / kSecondNs;
  const int64_t end_ns = result_->load.end_ns();
  std::string line = std::to_string(counted_s);
  if (end_ns != Workload::kNever) {
    line += " of " + std::to_string((end_ns - result_->load.begin_ns()) / kSecondNs);
  }
  line += " s";
  if (workload_ && counted_s > 0) {
    const SecondRow& second = result_->load.LastSecond(now_ns);
    line += ": " + std::to_string(second.granted + second.released) + " operations/s, p99 " +
            std::to_string(second.p99_ns / 1000) + " us, " + std::to_string(second.refused) +
            " refused, " + std::to_string(second.errors) + " errors; " +
            std::to_string(workload_->in_flight()) + " in flight";
    if (workload_->waiting() > 0)
      line += ", " + std::to_string(workload_->waiting()) + " wait to be sent";
  }
  plan_.show(line);
}

void LoadLoop::OnSignal() {
  // Once: a second signal finds no handler and ends the process.
  for (uv_signal_t& signal : signals_) uv_signal_stop(&signal);
  result_->interrupted = true;
  if (phase_ == Phase::kCounting) return EndCounting();
  if (phase_ == Phase::kAwaitingAnswers) return;
  End(Status::FailedPrecondition("interrupted before anything was counted"));
}

bool LoadLoop::OnAnswer(Connection* connection, const Answer& answer, const Moment& now) {
  if (IsExpiring(*connection)) return expiring_->OnAnswer(0, answer, now);
  return workload_ && workload_->OnAnswer(connection->number(), answer, now);
}

void LoadLoop::OnAnswersTaken(Connection* connection, const Moment& now) {
  answered_ns_ = now.ns;
  if (IsExpiring(*connection)) return expiring_->StartWaiting(0, now);
  // The first receive may bring the greeting, before the load has started.
  if (workload_ && phase_ != Phase::kConnecting) workload_->StartWaiting(connection->number(), now);
}

void LoadLoop::OnLost(Connection* connection, const Status& reason) {
  End({reason.code(), "connection " + std::to_string(connection->number() + 1) + " of " +
                          std::to_string(connections_.size()) + " to " + plan_.peer.ToString() +
                          " " + reason.message()});
}

void LoadLoop::End(const Status& status) {
  if (phase_ == Phase::kClosing) return;
  phase_ = Phase::kClosing;
  status_ = status;
  for (const auto& connection : connections_) connection->Close();
  // Closing all handles is what lets uv_run return.
  uv_walk(
      &loop_,
      [](uv_handle_t* handle, void*) {
        if (uv_is_closing(handle) == 0) uv_close(handle, nullptr);
      },
      nullptr);
}

void LoadLoop::SetPhaseTimer(int64_t delay_ns) {
  // libuv counts from the last turn's beginning, in whole milliseconds of which one may be over.
  uv_update_time(&loop_);
  const int64_t delay_ms = std::max<int64_t>(delay_ns, 0) / kMsNs + 2;
  NOWCALLS_CHECK(uv_timer_start(
                     &phase_timer_,
                     [](uv_timer_t* t) { static_cast<LoadLoop*>(t->data)->OnPhaseTimer(); },
                     static_cast<uint64_t>(delay_ms), 0) == 0);
}

Usage LoadLoop::ReadUsage() const {
  Usage usage{OwnCpuSeconds(), {}};
  if (plan_.server_pid == 0) return usage;
  const Result<ProcessUsage> server = ReadProcessUsage(plan_.server_pid);
  if (server.ok()) usage.server = *server;
  return usage;
}

template <typename Visit>
void LoadLoop::ForEachWorkload(Visit&& visit) {
  if (workload_) visit(&*workload_);
  if (expiring_) visit(&*expiring_);
}

std::unique_ptr<LoadResult> LoadLoop::TakeResult() {
  const int64_t now_ns = MonotonicNs();
  result_->seconds = result_->load.TakeSeconds(now_ns);
  result_->expiring_seconds = result_->expiring.TakeSeconds(now_ns);
  if (workload_) {
    result_->granted_ever = workload_->granted();
    result_->refused_ever = workload_->refused();
  }
  return std::move(result_);
}

}  // namespace nowcalls::bench
