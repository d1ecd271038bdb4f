// Feed: looks at the server once a second.
//
// Thread: its own, a client of the server. The members are anybody's.
#ifndef NOWCALLS_WEB_FEED_H_
#define NOWCALLS_WEB_FEED_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/blocking_client.h"
#include "nowcalls/status.h"
#include "web/series.h"
#include "web/snapshot.h"
#include "web/snapshot_source.h"

namespace nowcalls::web {

class Feed : public SnapshotSource {
 public:
  // `on_new` runs after each look, on the feed's thread.
  explicit Feed(std::function<void()> on_new);
  ~Feed() override { Stop(); }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Call once. Asks the first of the server's addresses that answers, and shows the last. Until the
  // first look, the snapshot is empty and has a problem.
  void Start(const std::vector<std::string>& addresses);
  // No `on_new` after it. Waits for the look under way, at most kAskMsMax.
  void Stop();

  SnapshotPtr latest() const override;
  const Series& series() const override { return series_; }

  // The snapshots of the next kWatchMs have the watched rows. A new watch hurries the next look.
  // Beyond kWatchedMax it replaces the oldest watch and hurries nothing.
  void WatchFlow(const FlowKey& flow) override;
  void WatchSession(uint64_t session) override;
  void WatchSessions() override;
  void WatchHistory() override;
  void WatchRules() override;

  static constexpr int64_t kEveryMs = 1'000;     // At the ends of seconds.
  static constexpr int64_t kLeastEveryMs = 200;  // However many hurry.
  static constexpr int64_t kAskMsMax = 10'000;
  static constexpr int64_t kWatchMs = 10'000;
  static constexpr int64_t kRulesEveryMs = 5'000;
  static constexpr size_t kWatchedMax = 64;  // As many as one address may have connections.

 private:
  struct Watched {
    std::vector<FlowKey> flows{};
    std::vector<uint64_t> session_details{};
    bool sessions = false;
    bool history = false;
    bool rules = false;
  };
  // BoottimeMs of the last watch.
  template <typename Id>
  using WatchedMs = std::map<Id, int64_t>;

  void Run(const std::vector<std::string>& addresses);
  Status Look(client::BlockingClient* client, Snapshot* next);
  Status LookAtFlows(client::BlockingClient* client, Snapshot* next);
  static Status LookAtNamespaces(client::BlockingClient* client, Snapshot* next);
  static Status LookAtFlow(client::BlockingClient* client, const FlowKey& flow, Snapshot* next);
  static Status LookAtSession(client::BlockingClient* client, uint64_t session, Snapshot* next);
  Status LookAtLists(client::BlockingClient* client, const Watched& watched, Snapshot* next);
  Status LookAtWatched(client::BlockingClient* client, Snapshot* next);
  Status LookAtRules(client::BlockingClient* client, Snapshot* next);
  void Publish(std::shared_ptr<Snapshot> next);
  Watched TakeWatched();
  void Watch(int64_t* watched_ms);
  template <typename Id>
  void WatchOne(Id id, WatchedMs<Id>* watched_ms);
  // False: the end.
  bool Sleep(int64_t looked_ms);

  const std::function<void()> on_new_;
  Series series_;
  uint64_t flows_cursor_ = 0;  // Where the next look at flows begins; the thread's.
  bool read_once_ = false;     // All flows were read over this connection; the thread's.
  int64_t rules_read_ms_ = 0;  // The thread's.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  bool hurries_ = false;  // Somebody looks at what is not in the snapshots yet.
  SnapshotPtr latest_;
  WatchedMs<FlowKey> flows_watched_ms_;
  WatchedMs<uint64_t> session_details_watched_ms_;
  int64_t sessions_watched_ms_ = 0;  // 0: never.
  int64_t history_watched_ms_ = 0;
  int64_t rules_watched_ms_ = 0;

  std::thread thread_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_FEED_H_
