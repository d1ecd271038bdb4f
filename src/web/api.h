// Api: answers /api/... from the latest snapshot: for the page, and as JSON for curl.
//
// Thread: the HTTP server's. The source and the board must outlive it, and it the HTTP server,
// whose streams call it.
//
// All routes are GET:
//   /api/flows?sort=ORDER&filter=TEXT&namespace=NS&offset=N&limit=N
//       ORDER: fullness (default), now_calls, waiting, oldest, granted, refused, held or id
//   /api/flow?id=N                                        one flow with its holders and waiters
//   /api/clients?filter=TEXT&namespace=NS&offset=N&limit=N
//   /api/client?id=N                  one session with what it holds and waits for
//   /api/history?filter=TEXT&namespace=NS&offset=N&limit=N
//   /api/server                                           info, commits, namespaces
//   /api/look?view=VIEW&...       that view; 304 while there is no newer snapshot than
//   If-None-Match /api/stream?view=VIEW&...     Server-Sent Events: that view, again with each new
//   snapshot
// A wrong parameter is 400, an unknown route 404, both with a text that says what is possible. A
// flow or a session that does not exist is 404, too, but in looks and streams, where it is null.
//
// Asking for a flow, a client, clients or history counts as watching them (snapshot_source.h): the
// next snapshot has them.
#ifndef NOWCALLS_WEB_API_H_
#define NOWCALLS_WEB_API_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "web/board.h"
#include "web/http.h"
#include "web/snapshot.h"
#include "web/snapshot_source.h"

namespace nowcalls::web {

class Api {
 public:
  Api(SnapshotSource* source, const Board* board) : source_(source), board_(board) {}
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // For paths that begin with "/api/".
  Response Handle(const Request& request);

 private:
  // How many answers are remembered for others that ask the same of the same snapshot.
  static constexpr size_t kRememberedMax = 16;

  struct Question;

  // 200, or an error about the parameters.
  static Response Parse(const std::string& view, const Request& request, Question* question);
  // The view of the snapshot as JSON. Ten pages that show the same cost as much as one.
  std::string Answer(const Snapshot& snapshot, const Question& question);
  std::string Write(const Snapshot& snapshot, const Question& question) const;
  Response Look(const Question& question, const Request& request);
  Response Stream(const Question& question);
  // The flow that is asked for.
  static FlowKey FlowOf(const Snapshot& snapshot, const Question& question);
  // What is asked for is known not to exist.
  static bool IsGone(const Snapshot& snapshot, const Question& question);
  void Watch(const Question& question);

  SnapshotSource* const source_;
  const Board* const board_;
  uint64_t remembered_of_ = 0;                     // The number of the snapshot.
  std::map<std::string, std::string> remembered_;  // By Question::key.
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_API_H_
