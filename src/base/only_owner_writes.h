// Files that are believed, since nobody but their owners may write them.
//
// Thread: any; pure.
#ifndef NOWCALLS_BASE_ONLY_OWNER_WRITES_H_
#define NOWCALLS_BASE_ONLY_OWNER_WRITES_H_

#include <sys/stat.h>

#include <string>

#include "nowcalls/status.h"

namespace nowcalls {

// `mode`: of the open file. `danger`: why that matters, such as "it says who may come in".
// kInvalidArgument: others may write it.
inline Status CheckOnlyOwnerWrites(const std::string& file, mode_t mode,
                                   const std::string& danger) {
  if ((mode & (S_IWGRP | S_IWOTH)) == 0) return Status::Ok();
  return Status::InvalidArgument(file + " can be written by others than its owner, and " + danger +
                                 ": run `chmod go-w " + file + "`");
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_ONLY_OWNER_WRITES_H_
