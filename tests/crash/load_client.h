// LoadClient: one client of the crash loop, with a log of its own.
//
// Thread: Run on a thread of its own; everything else between two runs. It keeps several requests
// in flight, writes each to its log before it is sent and each answer when it came (history.h), and
// ends when its connection is closed under it.
//
// Some of its acquires are groups. Half of all carry a request id, and some of them may wait.
// Behind a reconnect or a new run it asks again for what was under way and for some that it holds.
// Now and then it also asks twice, or cancels what is under way, waiting or held. Of a group that
// has ended in part it asks for the whole, which must be refused, or cancels the rest.
#ifndef NOWCALLS_CRASH_LOAD_CLIENT_H_
#define NOWCALLS_CRASH_LOAD_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "crash/history.h"
#include "support/poll_until.h"
#include "support/rpc_client.h"

namespace nowcalls::crash {

struct LoadOptions {
  std::string client_id;  // Empty: a connection without hello.
  uint64_t instance = 0;  // Of the client id.
  std::string name_space = "default";
  std::vector<int64_t> flow_ids;     // Those it uses.
  size_t held_max = 40;              // About as many tokens as it holds at most.
  bool request_ids = true;           // And with them waits and cancels.
  bool short_holds = true;           // Some tokens end by themselves.
  uint32_t reconnects_per_10k = 20;  // Of 10,000 requests, how many come behind a reconnect.
};

// What the loop tells its clients while they run.
struct LoadSignals {
  std::atomic<bool> stop{false};    // End.
  std::atomic<bool> ending{false};  // The server is about to be ended: lost connections are due.
  std::atomic<bool> drain{false};   // Acquire nothing more, release what is held.
  // For so long they wait for an answer. While `ending`, they then come again.
  std::atomic<int64_t> patience_ms{testing::kPatienceMs};
};

class LoadClient {
 public:
  LoadClient(LoadOptions options, uint64_t seed)
      : options_(std::move(options)), prng_(seed), next_request_(1 + prng_.Below(1'000'000'000)) {}

  const std::string& client_id() const { return options_.client_id; }
  // The session that can be come back to, as DumpedToken names it; empty: there is none.
  std::string owner() const { return OwnerOf(options_.client_id, options_.instance); }

  // The tokens it may release and keep from now on.
  void SetHeld(std::vector<uint64_t> tokens) { held_ = std::move(tokens); }

  // What an honest client should never see (an error, garbage, silence, a connection that the
  // server closed); empty after a run as it should be.
  const std::string& problem() const { return problem_; }

  // Drives load against the server until the connection ends or it is told to stop.
  void Run(const std::string& address, const std::string& log_path, const LoadSignals* signals);

 private:
  using Call = std::vector<Operation>;  // One operation, or the items of a group.

  // A request id whose call is wanted, or in progress.
  struct Wanted {
    Call items;                 // Only flows and counts.
    std::set<uint64_t> tokens;  // Of those known the ones that have not ended.
  };

  bool Connect(const std::string& address);
  void Disconnect();
  bool ComeAgain(const std::string& address);
  void SettleRequests();
  void SendOne(bool drain);
  void Send(Call call);
  void SendToken(Action action, uint64_t token_id);
  void SendAcquire();
  Call DrawItems();
  uint32_t SendItems(const Call& call);
  void SendAgain(uint64_t request_id);
  void SendCancel(uint64_t request_id);
  uint64_t AnyWanted();
  testing::Reply Await(const LoadSignals& signals);
  bool ReceiveOne(const LoadSignals& signals);
  void OnAnswer(Call call, const testing::Reply& reply);
  void OnLost(const testing::Json& notice);
  void OnGranted(const testing::Reply& reply, Call* call);
  void Forget(uint64_t token_id);
  uint64_t TakeHeld(bool remove);

  LoadOptions options_;
  Prng prng_;
  std::string problem_;
  std::vector<uint64_t> held_;
  std::unique_ptr<HistoryWriter> log_;
  testing::RpcClient rpc_;
  bool gave_up_ = false;                // No answer came in time.
  std::string name_;                    // Its owner(), or "@HOST:PORT".
  std::map<uint64_t, Call> in_flight_;  // By msgid.
  size_t waiting_ = 0;                  // Of these, acquires that may wait.
  std::map<uint64_t, Wanted> wanted_;   // By request id.
  std::set<uint64_t> cancels_;          // Request ids whose cancel is not answered.
  uint64_t next_request_ = 1;
  int64_t next_number_ = 1;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_LOAD_CLIENT_H_
