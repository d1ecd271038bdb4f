// Embedded: the TokenService within the process: the server's core and ledger without a socket.
//
//   auto tokens = nowcalls::Embedded::Open({.data_dir = "/var/lib/gate"});
//   (*tokens)->LoadRules("shop", rules_json);
//   nowcalls::Acquired acquired = (*tokens)->Acquire(nowcalls::FlowId(1001));
//
// Tokens are in the ledger of the data directory, which no other process may have open, and outlive
// a restart of the program. nowcalls-server and nowcalls-admin read the same ledger.
//
// Thread: any, for all members. One background thread for each service runs callbacks, and decides
// and commits what nobody waits for. A thread that waits for its answer decides and commits itself.
// A service must not be destroyed in a callback. It belongs to the process that opened it: in a
// forked child its calls are kBadRequest, and its permits do nothing.
//
// When the ledger fails (a full or broken disk, a directory that was moved away), the service ends
// and the process goes on. Nothing was told that is not in the ledger. Calls on their way are
// kUnknown, later ones kUnavailable at once; permits stay as they are, but nobody keeps their
// tokens. Open the directory anew when the cause is mended.
//
// A disk that hangs holds up the thread that writes: a blocking call may take longer than its
// timeout, and so may callbacks.
#ifndef NOWCALLS_EMBEDDED_H_
#define NOWCALLS_EMBEDDED_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/client.h"
#include "nowcalls/status.h"
#include "nowcalls/token_service.h"

namespace nowcalls {

struct EmbeddedOptions {
  // Where the ledger is; made if it does not exist. Empty: in memory alone, for tests.
  std::string data_dir{};
  std::string name_space = "default";
  std::string client_id = "embedded";  // Names the session.
  // Take over the session of the last process that said so under this client id, with its tokens.
  // Otherwise they end by the clientOfflineTime of their rules.
  bool rejoin = false;
  // Whether a grant is on the disk before it is told. Otherwise it is with the operating system,
  // and survives the end of the process.
  bool sync = true;
  Milliseconds timeout{5000};  // Of calls that name none; 1 ms .. 1 h.
  // Lines for the program's log. On the background thread.
  std::function<void(LogLevel level, std::string_view line)> log{};
};

// Its destructor, like Close, ends calls that have no answer, commits what was asked, and closes
// the ledger. Tokens that are held stay in it for the rule's clientOfflineTime.
class Embedded final : public SessionService {
 public:
  // Opens the ledger and recovers it. Errors as nowcalls-server has them: kCorruption: damaged;
  // kAlreadyExists: another process has it. kUnavailable: the system gives no thread.
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options);

  // Replaces all rules of the namespace, or none: JSON text as of rules_load. Returns how many are
  // in force, and on the disk as EmbeddedOptions::sync says. kInvalidArgument names rule and field.
  Result<uint64_t> LoadRules(std::string_view name_space, std::string_view json);

 private:
  using SessionService::SessionService;
};

}  // namespace nowcalls

#endif  // NOWCALLS_EMBEDDED_H_
