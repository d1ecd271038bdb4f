// Health: /healthz and /readyz, answered without the loop.
//
// Thread: any.
#ifndef NOWCALLS_WEB_HEALTH_H_
#define NOWCALLS_WEB_HEALTH_H_

#include "web/board.h"
#include "web/http.h"

namespace nowcalls::web {

// Longer is unhealthy.
inline constexpr int64_t kHungMsMax = 10'000;

// 200 while the loop turns and commits end, or the ledger loads. 503 names what hangs. `now_ms`:
// BoottimeMs, here and below.
Response AnswerHealth(const Board& board, int64_t now_ms);

// Further from the log's end, a standby's takeover takes a while.
inline constexpr uint64_t kReadyLagMax = 256;

// 200 while healthy and serving, also on a low disk: clients must release and keep. With
// `standby_ok` also on a standby that could take over: Kubernetes ends no pod before that.
Response AnswerReady(const Board& board, int64_t now_ms, bool standby_ok = false);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HEALTH_H_
