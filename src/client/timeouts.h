// What a call may take, beside its wait.
//
// Thread: any.
#ifndef NOWCALLS_CLIENT_TIMEOUTS_H_
#define NOWCALLS_CLIENT_TIMEOUTS_H_

#include "nowcalls/answer.h"
#include "nowcalls/status.h"

namespace nowcalls::client {

inline constexpr Milliseconds kTimeoutMin{1};
inline constexpr Milliseconds kTimeoutMax{3'600'000};

inline Status CheckTimeout(Milliseconds timeout) {
  if (timeout >= kTimeoutMin && timeout <= kTimeoutMax) return Status::Ok();
  return Status::InvalidArgument("timeout must be 1 ms to 1 h");
}

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_TIMEOUTS_H_
