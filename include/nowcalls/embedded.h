// Embedded: the TokenService within the process: the server's core and ledger without a socket.
//
//   auto tokens = nowcalls::Embedded::Open({.data_dir = "/var/lib/gate"});
//   (*tokens)->LoadRules("shop", rules_json);
//   nowcalls::Acquired acquired = (*tokens)->Acquire(nowcalls::FlowId(1001));
//
// Tokens are in the ledger of the data directory and outlive a restart of the program. One process
// at a time may open it. nowcalls-server and nowcalls-admin read the same ledger.
//
// Thread: any, for all members. A waiting thread decides and commits its own call; one background
// thread does the rest and runs callbacks. Do not destroy a service in a callback. In a forked
// child its calls are kBadRequest, and its permits do nothing.
//
// When the ledger fails (full or broken disk, moved directory), the service ends and the process
// goes on. Every answer told is in the ledger. Calls under way are kUnknown, later ones
// kUnavailable at once. Permits stay, but their tokens are not kept. Open the directory anew when
// the cause is mended.
//
// A hanging disk delays blocking calls and callbacks beyond the timeout.
#ifndef NOWCALLS_EMBEDDED_H_
#define NOWCALLS_EMBEDDED_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/client.h"
#include "nowcalls/expire_strategy.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "nowcalls/token_service.h"

namespace nowcalls {

struct EmbeddedOptions {
  // Of the ledger; created if missing. Empty: in memory, for tests.
  std::string data_dir{};
  std::string name_space = "default";
  std::string client_id = "embedded";  // Names the session.
  // Take over session and tokens of the last process that set it under this client id. Otherwise
  // they end by their rules' clientOfflineTime.
  bool rejoin = false;
  // A grant is on the disk before it is told. False: with the operating system, so it survives only
  // the end of the process.
  bool sync = true;
  Milliseconds timeout{5000};  // Of calls that name none; 1 ms .. 1 h.
  // Lines for the program's log. On the background thread.
  std::function<void(LogLevel level, std::string_view line)> log{};
  // Decides about due tokens. Null: a DefaultExpireStrategy.
  std::shared_ptr<ExpireStrategy> expire_strategy{};
  // Reclaim a token not kept for this many times its resourceTimeout: 2 .. 3.
  double resource_timeout_factor = 2;
  // Started in this order on the background thread, before Open returns; stopped there before the
  // service ends. What a stopped source delivers is kUnavailable, until the service is destroyed.
  std::vector<std::shared_ptr<RuleSource>> rule_sources{};
};

// The destructor, like Close, ends unanswered calls, commits and closes the ledger. Held tokens
// stay in it for the rule's clientOfflineTime.
class Embedded final : public SessionService {
 public:
  // Opens and recovers the ledger. kCorruption: damaged; kAlreadyExists: another process has it;
  // kUnavailable: no thread; others as nowcalls-server. A rule source's failure to start is Open's;
  // nothing of the sources is in the ledger then.
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options);

  // Replaces all rules of the namespace, or none. `json`: as of rules_load. Returns how many are in
  // force, durable as EmbeddedOptions::sync says. kInvalidArgument names rule and field;
  // kAlreadyExists the rule source that has the namespace.
  Result<uint64_t> LoadRules(std::string_view name_space, std::string_view json);

 private:
  using SessionService::SessionService;
};

}  // namespace nowcalls

#endif  // NOWCALLS_EMBEDDED_H_
