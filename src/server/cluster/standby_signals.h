// StandbySignals: notes signals while no loop runs that would.
//
// Thread: main. libuv has its own handlers, and leaves the defaults behind; so this one lives
// between loops.
#ifndef NOWCALLS_SERVER_CLUSTER_STANDBY_SIGNALS_H_
#define NOWCALLS_SERVER_CLUSTER_STANDBY_SIGNALS_H_

#include <csignal>
#include <cstdint>

namespace nowcalls::server {

class StandbySignals {
 public:
  StandbySignals();
  ~StandbySignals();
  StandbySignals(const StandbySignals&) = delete;
  StandbySignals& operator=(const StandbySignals&) = delete;

  // SIGTERM or SIGINT came.
  static bool end_asked();
  // Sleeps so long. False: at once, the end was asked for.
  static bool Pause(int64_t ms);
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CLUSTER_STANDBY_SIGNALS_H_
