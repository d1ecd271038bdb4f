// Health: /healthz and /readyz, answered without the loop, which may stand still.
//
// Thread: any.
#ifndef NOWCALLS_WEB_HEALTH_H_
#define NOWCALLS_WEB_HEALTH_H_

#include "web/board.h"
#include "web/http.h"
#include "web/snapshot.h"

namespace nowcalls::web {

// A commit or a loop that takes longer is not healthy. A disk that is busy may take a second.
inline constexpr int64_t kHungMsMax = 10'000;

// 200 while the loop turns and commits end; a server that loads its ledger is healthy. 503 says
// what hangs. A supervisor restarts a server that stays unhealthy.
Response AnswerHealth(const Board& board, int64_t now_ms);

// 200 while the server grants: it is healthy, has its ledger, and its disk is not low. 503 keeps
// traffic away. `now_ms` is BoottimeMs, here and above.
Response AnswerReady(const Board& board, const Snapshot& snapshot, int64_t now_ms);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HEALTH_H_
