// Changes of an access file on disk, with new secrets.
//
// Thread: one; blocking. Errors as access/access_edit.h and access/access_file.h; also
// kFailedPrecondition: another change is under way, or was cut short; kIoError.
#ifndef NOWCALLS_ADMIN_ACCESS_FILE_H_
#define NOWCALLS_ADMIN_ACCESS_FILE_H_

#include <string>

#include "admin/arguments.h"
#include "nowcalls/status.h"

namespace nowcalls::admin {

// "ncs_", a mark for scanners of lost secrets, and 256 random bits in base64url.
std::string MakeSecret();

struct AccessChange {
  std::string secret;  // Empty: none was made.
  std::string done;    // For a person, without it.
};
// Atomic and durable. The file keeps its mode and its owner; a new one is 0640.
Result<AccessChange> AddPrincipal(const Arguments& arguments);
Result<AccessChange> RotateSecret(const Arguments& arguments);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ACCESS_FILE_H_
