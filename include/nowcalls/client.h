// Client: the TokenService at the other end of a connection to nowcalls-server.
//
//   auto client = nowcalls::Client::Start({.name_space = "shop"});
//   if (!client.ok()) return Fail(client.status());
//   nowcalls::Acquired acquired = (*client)->Acquire(nowcalls::FlowId(1001), {.wait = 2s});
//   if (!acquired) return Fail(acquired.message);
//   ... the call; the permit in `acquired` gives the token back.
//
// Thread: any, for all members; one background thread for each client has the connection and runs
// callbacks. It takes no signals.
//
// A client belongs to the process that made it. In a forked child its calls are kBadRequest, and
// its permits do nothing: destroying them, as a child does that returns from main, leaves the
// tokens to the parent. Make a client in each process. Until the child exits or calls exec, the
// connection of the parent stays open, also if the parent ends.
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
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/export.h"
#include "nowcalls/session_service.h"
#include "nowcalls/status.h"
#include "nowcalls/token_service.h"

namespace nowcalls {

// What new calls do that would end as kUnavailable or kUnknown: no server can be reached, or it
// does not answer. So do those that the whole server refuses: as OVERLOADED or INTERNAL, or by its
// token_limit, key_limit, namespace_qps or disk_low. A flow without a rule is no failure (kNoRule).
// While no server can be reached, an acquire with a wait falls back when its wait is over.
enum class Fallback : uint8_t {
  // They end as kUnavailable when their timeout is over. For those that must never exceed a limit.
  kFail,
  // As the rule's fallbackToLocalWhenFail said when it was last seen. True: kLocal. False, or no
  // rule seen: kPass. Sentinel's clients do this.
  kByRule,
  // They are admitted up to this process's share: the rule's level, under GLOBAL divided by the
  // sessions that were online when it last connected. What the process holds of the server counts.
  // Without a rule seen: as kFail.
  kLocal,
  // They are admitted.
  kPass,
};

enum class LogLevel : uint8_t { kInfo, kWarning };

struct ClientOptions {
  // HOST:PORT of one server, or of several addresses of the same ledger, tried in turn.
  std::vector<std::string> addresses{"127.0.0.1:18730"};
  std::string name_space = "default";  // The application, which has the rules.
  // Names the client in listings. Empty: made up of host, process and chance. Two processes may
  // share a name: each has a session of its own, and the tokens of one that died end with its own
  // clientOfflineTime.
  std::string client_id{};
  // Take over the session of the last process that said so under this client id, with its tokens.
  // Two that run at once share them.
  bool rejoin = false;
  bool exclusive = false;      // Refuse to connect while another process has this client id.
  Milliseconds timeout{5000};  // Of calls that name none; 1 ms .. 1 h.
  Fallback fallback = Fallback::kByRule;
  // The share of a flow for Fallback::kLocal and kByRule, instead of one that is worked out: calls
  // in progress, or of a rate those of one of its windows.
  std::map<FlowId, uint64_t> local_levels{};
  // Lines for the program's log: connections, fallbacks, lost tokens. On the client's own thread.
  std::function<void(LogLevel level, std::string_view line)> log{};
};

class NOWCALLS_EXPORT Client final : public SessionService {
 public:
  // Starts the background thread, which dials at once; it does not wait for it. kInvalidArgument
  // names the option that is wrong. kUnavailable, kIoError: the system gives no thread or
  // descriptor.
  static Result<std::unique_ptr<Client>> Start(const ClientOptions& options);

  // Waits until the session is open. kUnavailable says why it is not. kFailedPrecondition: a
  // callback must not wait.
  Status WaitConnected(Milliseconds timeout);

 private:
  using SessionService::SessionService;
};

}  // namespace nowcalls

#endif  // NOWCALLS_CLIENT_H_
