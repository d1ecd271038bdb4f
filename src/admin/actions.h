// What nowcalls-admin does to many tokens at once, or to a rule, on a running server: reclaims of a
// client or a flow, purges, drains.
//
// Thread: one. The server does a bounded piece a call; this loops. A reclaim ends when as many
// tokens are taken back as were out when it began, so that it also ends while others acquire.
#ifndef NOWCALLS_ADMIN_ACTIONS_H_
#define NOWCALLS_ADMIN_ACTIONS_H_

#include <cstdint>
#include <string>

#include "admin/arguments.h"
#include "admin/commands.h"
#include "client/blocking_client.h"
#include "nowcalls/status.h"

namespace nowcalls::admin {

bool IsAction(Command command);

// What an action is about to take back.
struct Affected {
  std::string whose;  // "flow 7", "client 'a' of namespace 'shop'"
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
};

// Asks the server; of a drain it asks nothing. kNotFound when there is nothing to take back.
// REQUIRES: IsAction.
Result<Affected> FindAffected(const Arguments& arguments, client::BlockingClient* client);

// kInvalidArgument: the command must be confirmed, --yes is not given, and there is no terminal to
// ask at.
Status CheckConfirmable(const Arguments& arguments, const Affected& affected,
                        const Streams& streams);

// What an action came to. Of one without an answer (kOutcomeUnknown) nobody knows whether it was
// carried out, so the message says how to find out.
Status MaybeDone(const Arguments& arguments, const Status& failed);

// Does what the arguments ask, after confirmation where it is due. What to print, a line.
// REQUIRES: IsAction and CheckConfirmable.
Result<std::string> Act(const Arguments& arguments, const Affected& affected,
                        const Streams& streams, client::BlockingClient* client);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ACTIONS_H_
