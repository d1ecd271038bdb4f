// Network: connections between clients and servers, as TCP has them.
//
// Thread: one at a time. Bytes of one direction arrive in order, but late, in pieces, or not at
// all; nothing is promised between directions or connections. A connection that breaks takes with
// it what had not arrived, wherever in a message that ends. The client's end is called back; the
// server's end is polled, since a server reads when it has the time.
#ifndef NOWCALLS_SIM_NETWORK_H_
#define NOWCALLS_SIM_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "engine/driver.h"
#include "sim/faults.h"
#include "sim/timeline.h"

namespace nowcalls::sim {

using LinkId = uint32_t;

// The client's end of connections.
class LinkUser {
 public:
  virtual ~LinkUser() = default;
  virtual void OnBytes(LinkId link, std::string_view bytes) = 0;
  // Nothing more comes, and nothing can be sent.
  virtual void OnDown(LinkId link) = 0;
};

class Network {
 public:
  // What others want to know of connections, whichever end it came from.
  struct Watch {
    std::function<void(size_t server)> arrived;  // It has something to poll.
    std::function<void(LinkId)> broken;          // From now on an end may find the connection gone.
    std::function<void(LinkId)> settled;         // The server knows.
    // A server has answered what was asked when its lease was over.
    std::function<void(LinkId)> unfenced{};
  };

  Network(Timeline* timeline, const FaultPlan* plan, FaultCounts* faults, uint64_t seed)
      : timeline_(timeline), plan_(plan), faults_(faults), prng_(seed) {}

  int64_t now_ms() const { return timeline_->now_ms(); }

  void SetWatch(Watch watch) { watch_ = std::move(watch); }
  // No fault from now on; what has stalled goes on within `network_stall_ms_max`.
  void Heal() { healed_ = true; }

  // --- The client's end. ---
  // `steady`: no fault touches it.
  LinkId Connect(LinkUser* user, std::string peer, bool steady);
  void Send(LinkId id, std::string_view bytes);
  // Sends no more, and reads what still comes.
  void Finish(LinkId id);
  // Is gone, with or without telling the server at once.
  void Reset(LinkId id);
  // Has the answer to what it sent at `sent_ms`.
  void Answered(LinkId id, int64_t sent_ms) const;

  // --- Faults. ---
  void Break(LinkId id);
  void Vanish(LinkId id);
  std::vector<LinkId> OpenLinks() const;

  // --- The server's end. ---
  struct Link {
    static constexpr size_t kWindow = 65'536;
    LinkId id = 0;
    size_t server = 0;
    std::string peer;
    LinkUser* user = nullptr;  // Null: the client's end is gone.
    bool steady = false;
    size_t window = kWindow;  // Bytes under way to the client.
    bool slow() const { return window < kWindow; }

    // What the server finds when it polls.
    bool arrived = false;
    std::string inbox;
    bool end_of_input = false;
    bool reset = false;
    bool drained = false;  // Some of `outbox` has left since the server looked.

    // The server's own.
    std::optional<engine::ConnectionId> connection;
    bool reading = true;
    bool ended = false;   // Was told of end_of_input.
    bool closed = false;  // By the server.
    bool gone = false;    // For the server; the connection's id is free.

    // Under way.
    std::string outbox;
    size_t in_flight = 0;
    bool broken = false;
    bool cut_up = false;    // What the client sent and had not arrived is lost.
    bool cut_down = false;  // Likewise to the client.
    int64_t up_at_us = 0;
    int64_t down_at_us = 0;
  };
  Link& link(LinkId id) { return *links_[id]; }
  // Connections of a server with something to poll, in the order in which it arrived.
  std::vector<LinkId> TakeNews(size_t server) { return std::exchange(news_[server], {}); }
  void MarkNews(LinkId id);
  // Returns what is kept.
  size_t Write(LinkId id, std::string_view bytes);
  void CloseByServer(LinkId id, bool flush);
  // The server has taken note of the end; `id` says nothing to it any more.
  void Settle(LinkId id);
  // The kernel closes what the process had open.
  void ServerDied(size_t server);
  // From now on new connections are its, or those of another that listens.
  void ServerStarted(size_t server) { listening_.insert(server); }
  // Another server leads. This one may not know it, so its connections stand, and new ones come. To
  // those who watch they are gone: what is asked on them is never carried out.
  void Supersede(size_t server);
  // The server may answer what is asked until then.
  void SetLeaseEnd(size_t server, int64_t at_ms) { lease_ends_ms_[server] = at_ms; }

 private:
  bool Happens(const Link& link, uint32_t chance);
  int64_t DelayUs(const Link& link);
  void SendPieces(Link* link, std::string_view bytes, bool up);
  void ArriveUp(LinkId id, const std::string& bytes);
  void ArriveDown(LinkId id, const std::string& bytes);
  void PumpDown(Link* link);
  void NoteBroken(Link* link) const;
  void NoteGone(Link* link) const;
  void TellClient(Link* link, int64_t delay_us);
  void TellServer(Link* link, int64_t delay_us);
  void EndDown(Link* link);

  Timeline* const timeline_;
  const FaultPlan* const plan_;
  FaultCounts* const faults_;
  Prng prng_;
  Watch watch_;
  bool healed_ = false;
  std::set<size_t> listening_;               // Servers.
  std::set<size_t> superseded_;              // Some of them.
  std::map<size_t, int64_t> lease_ends_ms_;  // By server, of a cluster.
  std::vector<std::unique_ptr<Link>> links_;
  std::map<size_t, std::vector<LinkId>> news_;  // By server.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_NETWORK_H_
