// Client: the TokenService at the other end of a connection to nowcalls-server.
//
//   auto client = nowcalls::Client::Start({.name_space = "shop"});
//   if (!client.ok()) return Fail(client.status());
//   nowcalls::Acquired acquired = (*client)->Acquire(nowcalls::FlowId(1001), {.wait = 2s});
//   if (!acquired) return Fail(acquired.message);
//   ... the call; the permit in `acquired` gives the token back.
//
// Thread: any, for all members. One background thread, without signals, has the connection and runs
// callbacks.
//
// Make a client in each process. In a forked child calls are kBadRequest, and permits do nothing:
// the tokens stay the parent's. The parent's connection stays open until the child exits or calls
// exec.
//
// After a broken connection, or a restart of the server, the client dials again after random pauses
// of up to 2 s. It resumes its session, asks unanswered acquires and releases again, and keeps its
// permits (tools/manual/clients.md).
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
#include "nowcalls/flow_name.h"
#include "nowcalls/session_service.h"
#include "nowcalls/status.h"
#include "nowcalls/token_service.h"

namespace nowcalls {

// Decides a new call that would end as kUnavailable or kUnknown, or that the server as a whole
// refuses: OVERLOADED, INTERNAL, token_limit, key_limit, namespace_qps, disk_low. A flow without a
// rule is no failure (kNoRule), and a call that the server does not permit is refused. While no
// server is reached, an acquire with a wait falls back when its wait is over.
//
// No call falls back until a server lets the client in again, once one refused its secret or its
// certificate (kPermissionDenied), nor while a secret is not answered. A server whose certificate
// the client does not believe is as one that is not reached.
enum class Fallback : uint8_t {
  // The call fails when its timeout is over. For calls that must never exceed a limit.
  kFail,
  // As Sentinel's clients, by fallbackToLocalWhenFail of the rule last seen. True: kLocal. False,
  // or no rule seen: kPass.
  kByRule,
  // Admitted up to this process's share: the rule's level, under GLOBAL divided by the sessions
  // online at the last connect. Tokens of the server count. No rule seen: kFail.
  kLocal,
  // Admitted.
  kPass,
};

enum class LogLevel : uint8_t { kInfo, kWarning };

// How the client makes sure of its server. Files are PEM, read at each dial: renewed ones are used.
struct TlsOptions {
  bool on = false;            // For HOST:PORT; a Unix socket is plain.
  std::string ca{};           // Authorities that the server's certificate is checked by. Empty: the
                              // system's.
  std::string certificate{};  // Shown to the server, with its chain. Empty: none.
  std::string key{};          // Of that certificate.
  std::string server_name{};  // The certificate must have it, in place of the host of the address.
};

struct ClientOptions {
  // HOST:PORT, or the path of a Unix socket; several of the same ledger are tried in turn.
  std::vector<std::string> addresses{"127.0.0.1:18730"};
  std::string name_space = "default";  // The application, which has the rules.
  // Names the client in listings. Empty: host, process and a random number. Processes that share a
  // name have a session each; a dead one's tokens end by clientOfflineTime.
  std::string client_id{};
  // Take over session and tokens of the last process that set it under this client id. Two at once
  // share them.
  bool rejoin = false;
  bool exclusive = false;      // Refuse to connect while another process has this client id.
  Milliseconds timeout{5000};  // Of calls that name none; 1 ms .. 1 h.
  Fallback fallback = Fallback::kByRule;
  // A flow's share under kLocal and kByRule, in place of the computed one: calls in progress, or
  // calls of one window of a rate. A rule's number and its name have a share each.
  std::map<FlowId, uint64_t> local_levels{};
  TlsOptions tls{};
  // Shown to the server, which then knows the client by it. Empty: none. It leaves over TLS, or to
  // a server on this machine; otherwise calls end as kBadRequest. No message has it.
  std::string secret{};
  // Lines for the program's log, on the client's own thread.
  std::function<void(LogLevel level, std::string_view line)> log{};
};

class NOWCALLS_EXPORT Client final : public SessionService {
 public:
  // Starts the background thread, which dials; does not wait. kInvalidArgument names the wrong
  // option, also if a file of `tls` is wrong now. kUnavailable: no thread. kIoError: no descriptor.
  static Result<std::unique_ptr<Client>> Start(const ClientOptions& options);

  // Waits until the session is open. kUnavailable: why it is not. kPermissionDenied: the server
  // does not let this client in. kFailedPrecondition: in a callback or a forked child.
  Status WaitConnected(Milliseconds timeout);

 private:
  using SessionService::SessionService;
};

}  // namespace nowcalls

#endif  // NOWCALLS_CLIENT_H_
