// StartLog: what a server's log tells of its start, and how far it came before it was killed.
//
// Thread: one at a time. Lines are written beside the server's work, so the last ones of a killed
// server may be missing; the port file is not.
#ifndef NOWCALLS_CRASH_START_LOG_H_
#define NOWCALLS_CRASH_START_LOG_H_

#include <cstdint>
#include <deque>
#include <string>

#include "support/process.h"

namespace nowcalls::crash {

enum class StartStage {
  kBefore,  // It had not begun: no line yet.
  kIn,      // It was opening or reading the ledger.
  kAfter,   // It had recovered, and served or was about to.
};

std::string NameOf(StartStage stage);

class StartLog {
 public:
  // Uses DIR/server.log and DIR/port.
  explicit StartLog(const std::string& dir) : log_(dir + "/server.log"), port_(dir + "/port") {}

  // A server is about to be started.
  void Begin();
  // Until the first line. False: the server has ended.
  bool WaitForFirstLine(testing::Process* server) const;
  // How far the server came that is gone now. Learns how long recovery takes.
  StartStage End();

  // How long the last recoveries took, from the first line on: the middle one.
  int64_t RecoveryUs() const;

 private:
  std::string Lines() const;  // Since Begin.

  std::string log_;
  std::string port_;
  uint64_t begin_ = 0;
  std::deque<int64_t> took_ms_;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_START_LOG_H_
