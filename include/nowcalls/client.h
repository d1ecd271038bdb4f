// Client: the TokenService at the other end of a connection to nowcalls-server.
//
//   auto client = nowcalls::Client::Start({.name_space = "shop", .client_id = "worker-1"});
//   if (!client.ok()) return Fail(client.status());
//   nowcalls::Acquired acquired = (*client)->Acquire(nowcalls::FlowId(1001), {.wait = 2s});
//   if (!acquired) return Fail(acquired.message);
//   ... the call; the permit in `acquired` gives the token back.
//
// Thread: any, for all members; one background thread for each client has the connection and runs
// callbacks. A client does not survive a fork: make one in each process.
//
// When the connection breaks, the client dials again after random pauses that grow to 2 s, resumes
// its session, asks again what has no answer, and goes on keeping its permits. That holds after a
// restart of the server too. tools/manual/clients.md tells the rest.
#ifndef NOWCALLS_CLIENT_H_
#define NOWCALLS_CLIENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/export.h"
#include "nowcalls/status.h"
#include "nowcalls/token_service.h"

namespace nowcalls {

// What new calls do while no server can be reached.
enum class Fallback : uint8_t {
  // They end as kUnavailable when their timeout is over.
  kFail,
  // As the rule's fallbackToLocalWhenFail says, of the rule as last seen: true: kLocal; false, or
  // no
  // rule seen: kPass. Sentinel's clients do this.
  kByRule,
  // They are admitted up to this process's share: the rule's level, under GLOBAL divided by the
  // sessions that were online when it last connected. Without a rule seen: kUnavailable.
  kLocal,
  // They are admitted.
  kPass,
};

enum class LogLevel : uint8_t { kInfo, kWarning };

struct ClientOptions {
  // HOST:PORT of one server, or of several addresses of the same ledger, tried in turn.
  std::vector<std::string> addresses{"127.0.0.1:18730"};
  std::string name_space = "default";  // The application, which has the rules.
  // Names the session. A name that stays lets a restarted process find its tokens; two processes
  // must not share one. Empty: made up of host, process and chance.
  std::string client_id{};
  bool exclusive = false;      // Refuse to share the session with another host.
  Milliseconds timeout{5000};  // Of calls that name none; 1 ms .. 1 h.
  Fallback fallback = Fallback::kFail;
  // The share of a flow for Fallback::kLocal and kByRule, instead of one that is worked out.
  std::map<FlowId, uint64_t> local_levels{};
  // Lines for the program's log: connections, fallbacks, lost tokens. On the client's own thread.
  std::function<void(LogLevel level, std::string_view line)> log{};
};

// Counters begin with the client.
struct ClientStats {
  bool connected = false;
  std::string address{};      // The last one dialled.
  std::string why_offline{};  // Empty while connected.
  std::string client_id{};    // As used.
  uint64_t sessions_online = 0;
  uint64_t held = 0;         // Tokens of permits that are not local.
  uint64_t calls = 0;        // In progress: asked and not answered.
  uint64_t connects = 0;     // Connections that said hello.
  uint64_t disconnects = 0;  // Of these, ended.
  uint64_t asked_again = 0;  // Calls that were sent once more.
  uint64_t cancelled = 0;    // Acquires that were given up after they were sent.
  uint64_t kept = 0;
  uint64_t lost = 0;
  uint64_t local_granted = 0;
  uint64_t local_refused = 0;
  uint64_t local_passed = 0;
};

class NOWCALLS_EXPORT Client final : public TokenService {
 public:
  // Starts the background thread, which dials at once; it does not wait for it. kInvalidArgument
  // names the option that is wrong.
  static Result<std::unique_ptr<Client>> Start(const ClientOptions& options);
  // As Close, and waits for what is on its way at most one second.
  ~Client() override;

  void AcquireAsync(FlowId flow, const AcquireOptions& options,
                    std::function<void(Acquired)> done) override;
  void AcquireAllAsync(const std::vector<FlowDemand>& demands, const AcquireOptions& options,
                       std::function<void(AllAcquired)> done) override;
  void RequestAsync(FlowId flow, const RequestOptions& options,
                    std::function<void(Passed)> done) override;
  void RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                         const RequestOptions& options, std::function<void(Passed)> done) override;
  Acquired Acquire(FlowId flow, const AcquireOptions& options = {}) override;
  AllAcquired AcquireAll(const std::vector<FlowDemand>& demands,
                         const AcquireOptions& options = {}) override;
  Passed Request(FlowId flow, const RequestOptions& options = {}) override;
  Passed RequestParam(FlowId flow, const std::vector<Value>& values,
                      const RequestOptions& options = {}) override;
  bool OnOwnThread() const override;

  // Waits until the session is open. kUnavailable says why it is not.
  Status WaitConnected(Milliseconds timeout);
  ClientStats stats() const;

  // A permit for a token that this client id holds already, such as one of an earlier process. The
  // server is not asked; a keep or a release tells whether it is held.
  Permit Adopt(TokenId token, FlowId flow, KeepMode keep = KeepMode::kOff);

  // Ends calls that have no answer, as kUnavailable or kUnknown, then waits until releases and
  // cancels on their way are answered, at most `timeout`. Permits that are still held stay with the
  // server for the rule's clientOfflineTime. kOutcomeUnknown: some release has no answer.
  Status Close(Milliseconds timeout);

 private:
  class Impl;
  explicit Client(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace nowcalls

#endif  // NOWCALLS_CLIENT_H_
