// Health: /healthz and /readyz, answered without the loop, which may stand still.
//
// Thread: any.
#ifndef NOWCALLS_WEB_HEALTH_H_
#define NOWCALLS_WEB_HEALTH_H_

#include "web/board.h"
#include "web/http.h"

namespace nowcalls::web {

// A commit or a loop that takes longer is not healthy. A disk that is busy may take a second.
inline constexpr int64_t kHungMsMax = 10'000;

// 200 while the loop turns and commits end; a server that loads its ledger is healthy. 503 says
// what hangs. A supervisor restarts a server that stays unhealthy.
Response AnswerHealth(const Board& board, int64_t now_ms);

// 200 while the server takes traffic: it is healthy and has its ledger. 503 keeps traffic away. A
// low disk does not: clients must reach the server to release and keep what they hold. `now_ms` is
// BoottimeMs, here and above.
Response AnswerReady(const Board& board, int64_t now_ms);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HEALTH_H_
