// Health: /healthz and /readyz, answered without the loop, which may stand still.
//
// Thread: any.
#ifndef NOWCALLS_WEB_HEALTH_H_
#define NOWCALLS_WEB_HEALTH_H_

#include "web/board.h"
#include "web/http.h"

namespace nowcalls::web {

// Longer is unhealthy. A busy disk may take a second.
inline constexpr int64_t kHungMsMax = 10'000;

// 200 while the loop turns and commits end, or the ledger loads. 503 names what hangs; a supervisor
// restarts then. `now_ms`: BoottimeMs, here and below.
Response AnswerHealth(const Board& board, int64_t now_ms);

// 200 while healthy and serving; 503 keeps traffic away. A low disk stays 200: clients must reach
// the server to release and keep.
Response AnswerReady(const Board& board, int64_t now_ms);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HEALTH_H_
