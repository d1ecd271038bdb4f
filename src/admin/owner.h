// Whose the files of a new ledger are. A restore or a repair by root leaves files that the user of
// a service cannot open.
//
// Thread: any.
#ifndef NOWCALLS_ADMIN_OWNER_H_
#define NOWCALLS_ADMIN_OWNER_H_

#include <sys/types.h>

#include <string>

#include "nowcalls/status.h"

namespace nowcalls::admin {

struct Owner {
  uid_t user = 0;
  gid_t group = 0;
};

// Of "USER" or "USER:GROUP", as names or numbers; without a group it is the user's own.
// kInvalidArgument names what does not exist; kIoError.
Result<Owner> FindOwner(const std::string& text);

// Gives the directory and all in it to the owner. kIoError.
Status GiveTo(const std::string& dir, const Owner& owner);

// What to tell of a ledger that root has made in `dir` of the files of another user, of which
// `example` is one: a line that ends with a newline. Else empty.
std::string OwnerNote(const std::string& dir, const std::string& example);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_OWNER_H_
