#include "server/shutdown.h"

#include <string>
#include <utility>

#include "base/counted.h"
#include "server/logging.h"

namespace nowcalls::server {

Shutdown::Shutdown(Parts parts, Instant now) : parts_(std::move(parts)), began_(now) {
  parts_.engine->BeginShutdown(now);
  parts_.peers->StopReading();
  parts_.rules->StopWatching();
  parts_.backups->End();
}

void Shutdown::Continue(Instant now) {
  if (now >= deadline()) {
    DieOfIoError("shutdown",
                 Status::Unavailable("not done after " + std::to_string(kShutdownMsMax) +
                                     " ms; the disk may hang"));
  }
  if (phase_ == Phase::kAnswering && now >= began_ + kShutdownWorkMsMax) LeaveWorkUndone();
  const bool answered = parts_.engine->idle() && !parts_.backups->busy();
  if (phase_ == Phase::kAnswering && answered) {
    phase_ = Phase::kDisconnecting;
    parts_.peers->CloseAll(now);
  }
  const bool quiet = parts_.peers->open() == 0 && !parts_.commits->busy() && !parts_.scans->busy();
  if (phase_ == Phase::kDisconnecting && quiet && parts_.engine->idle()) {
    phase_ = Phase::kClosingStore;
    parts_.commits->Finish(parts_.close_store);
  } else if (phase_ == Phase::kClosingStore && !parts_.commits->busy()) {
    phase_ = Phase::kClosed;
  }
}

// A dozen kilobytes of requests can ask for seconds of listings.
void Shutdown::LeaveWorkUndone() const {
  const size_t left = parts_.engine->DropWaitingInput();
  if (left == 0) return;
  LogAt(LogLevel::kWarn,
        "what " + Counted(left, "connection") + " had asked for is not all done after " +
            std::to_string(kShutdownWorkMsMax) + " ms, and the rest is left unanswered");
}

}  // namespace nowcalls::server
