// The owner of a new ledger's files.
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

// "USER" or "USER:GROUP", names or numbers; without a group the user's own. kInvalidArgument:
// unknown name. kIoError.
Result<Owner> FindOwner(const std::string& text);

// kIoError.
Status GiveTo(const std::string& dir, const Owner& owner);

// A line for root about a ledger in `dir` made of another user's files, of which `example` is one;
// else empty.
std::string OwnerNote(const std::string& dir, const std::string& example);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_OWNER_H_
