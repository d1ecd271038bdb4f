// Actions on many tokens, or on a rule, of a running server.
//
// Thread: one. The server does a bounded piece a call; this loops.
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

struct Affected {
  std::string whose;  // "flow 7", "client 'a' of namespace 'shop'"
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
};

// kNotFound: nothing to take back. A drain asks nothing. REQUIRES: IsAction.
Result<Affected> FindAffected(const Arguments& arguments, client::BlockingClient* client);

// kInvalidArgument: no --yes, and no terminal to confirm at.
Status CheckConfirmable(const Arguments& arguments, const Affected& affected,
                        const Streams& streams);

// Adds to kOutcomeUnknown how to find out.
Status MaybeDone(const Arguments& arguments, const Status& failed);

// Confirms if due, and acts. Returns the line to print. REQUIRES: IsAction, CheckConfirmable.
Result<std::string> Act(const Arguments& arguments, const Affected& affected,
                        const Streams& streams, client::BlockingClient* client);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ACTIONS_H_
