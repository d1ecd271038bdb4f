// The orderly end: from the first signal to the last closed handle.
#include <string>

#include "base/counted.h"
#include "base/exit_codes.h"
#include "server/logging.h"
#include "server/server.h"

namespace nowcalls::server {

// A signal that comes again so soon is the same one: who ends a process and then its group, as
// timeout(1) does, sends it twice.
constexpr int64_t kSameSignalMs = 500;

void Server::OnSignal(int signal) {
  if (signal == SIGHUP) return OnHangup();
  const std::string name = signal == SIGINT ? "SIGINT" : "SIGTERM";
  if (draining()) {
    const Instant began = drain_by_ + -kDrainMsMax;
    if (Now() - began < kSameSignalMs) return;
    LogAt(LogLevel::kWarn, "second signal (" + name + "): exiting at once");
    ExitNow(kExitFailure);
  }
  LogAt(LogLevel::kInfo, name + ": finishing what is in flight");
  sockets_.Receive();  // What the loop has found before the signal.
  BeginDrain();
}

void Server::BeginDrain() {
  phase_ = Phase::kAnswering;
  drain_by_ = Now() + kDrainMsMax;
  engine_.BeginDrain(Now());
  listener_->Close();
  rule_source_->Stop();
  backup_.End();
  for (const Peer& peer : peers_) {
    if (peer.connection != nullptr) peer.connection->SetReading(false);
  }
}

void Server::ContinueDrain(Instant now) {
  if (now >= drain_by_) {
    DieOfIoError("shutdown", Status::Unavailable("not done after " + std::to_string(kDrainMsMax) +
                                                 " ms; the disk may hang"));
  }
  if (phase_ == Phase::kAnswering && now >= drain_by_ + (kDrainWorkMsMax - kDrainMsMax)) {
    LeaveWorkUndone();
  }
  // Who asked for the backup is told that it was stopped.
  if (phase_ == Phase::kAnswering && engine_.idle() && !backup_.busy()) {
    phase_ = Phase::kDisconnecting;
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (peers_[i].connection == nullptr) continue;
      const auto id = static_cast<engine::ConnectionId>(i);
      const bool closes = peers_[i].close_by != kNever;
      SetCloseBy(id, std::min(peers_[i].close_by, now + kCloseMsMax));
      if (!closes) peers_[i].connection->CloseWhenFlushed();
    }
  }
  const bool quiet = connections_ == 0 && !commit_->busy() && !scan_->busy();
  if (phase_ == Phase::kDisconnecting && quiet && engine_.idle()) {
    phase_ = Phase::kClosingStore;
    commit_->Finish([this] {
      NOWCALLS_RETURN_IF_ERROR(store_->Sync());
      return close_store_();
    });
  } else if (phase_ == Phase::kClosingStore && !commit_->busy()) {
    phase_ = Phase::kClosed;
    if (!rule_source_->idle()) LeaveLookBehind();
    CloseHandles();
  }
}

// Some dozen kilobytes can ask for seconds of listings.
void Server::LeaveWorkUndone() {
  const size_t left = engine_.DropWaitingInput();
  if (left == 0) return;
  LogAt(LogLevel::kWarn,
        "what " + Counted(left, "connection") + " had asked for is not all done after " +
            std::to_string(kDrainWorkMsMax) + " ms, and the rest is left unanswered");
}

// A look at a rule file may take long: a huge file, a file server that is gone. Nothing depends on
// it any more, but its thread uses what would be destroyed now, and libuv would wait for it.
void Server::LeaveLookBehind() {
  LogAt(LogLevel::kInfo, "closed in good order; a look at a rule file is left unfinished");
  ExitNow(kExitOk);
}

void Server::CloseHandles() {
  commit_->Stop();
  scan_->Stop();
  backup_.Stop();
  uv_close(reinterpret_cast<uv_handle_t*>(&check_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&prepare_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&sigterm_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&sigint_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&sighup_), nullptr);
}

}  // namespace nowcalls::server
