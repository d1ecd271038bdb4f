// Api: answers GET /api/... from the latest snapshot, as JSON.
//
// Thread: any; it locks. The source and the board outlive it; it outlives the HTTP server, whose
// streams call it.
//
// Routes; LIST is filter=TEXT&namespace=NS&offset=N&limit=N:
//   /api/flows?sort=ORDER&LIST        ORDER: fullness (default), now_calls, waiting, oldest,
//                                     granted, refused, held or id
//   /api/flow?id=N&kind=flow|value    with its holders and waiters
//   /api/clients?LIST
//   /api/client?id=N                  with its tokens and waiters
//   /api/history?LIST
//   /api/server                       info, commits, namespaces
//   /api/look?view=VIEW&...           304 if If-None-Match names its snapshot
//   /api/stream?view=VIEW&...         Server-Sent Events, for each new snapshot
// 400: wrong parameter. 404: unknown route, flow or session; in looks and streams the row is null.
// What its reader may not see does not exist.
//
// A request watches what it shows (snapshot_source.h), if its reader may see it.
#ifndef NOWCALLS_WEB_API_H_
#define NOWCALLS_WEB_API_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "web/board.h"
#include "web/http.h"
#include "web/snapshot.h"
#include "web/snapshot_source.h"
#include "web/visible.h"

namespace nowcalls::web {

class Api {
 public:
  Api(SnapshotSource* source, const Board* board) : source_(source), board_(board) {}
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // A stream ends when its reader may see nothing any more.
  Response Handle(const Request& request, const Viewer& reader);

 private:
  // Of a snapshot.
  static constexpr size_t kRememberedMax = 16;

  struct Question;

  static Response Parse(const std::string& view, const Request& request, Question* question);
  std::string Answer(const Snapshot& snapshot, const Question& question);
  std::string Write(const Snapshot& snapshot, const Question& question) const;
  Response Look(const Snapshot& snapshot, const Question& question, const Request& request);
  Response Stream(Question question, const Viewer& reader);
  SnapshotPtr LatestFor(const access::Principal& principal);
  static FlowKey FlowOf(const Snapshot& snapshot, const Question& question);
  // False before the first look at a session.
  static bool IsGone(const Snapshot& snapshot, const Question& question);
  void Watch(const Snapshot& snapshot, const Question& question);
  void WatchSession(const Snapshot& snapshot, uint64_t session);

  SnapshotSource* const source_;
  const Board* const board_;
  VisibleSnapshots visible_;
  std::mutex mutex_;
  uint64_t remembered_of_ = 0;  // The number of the snapshot.
  // By Question::sight and key.
  std::map<std::pair<std::string, std::string>, std::string> remembered_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_API_H_
