// CopySource: a ledger whose files can be copied, in a server or at rest.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_COPY_SOURCE_H_
#define NOWCALLS_STORE_ROCKS_COPY_SOURCE_H_

#include <atomic>
#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "store/disk/file_copy.h"

namespace nowcalls::store {

class CopySource {
 public:
  virtual ~CopySource() = default;

  // Makes a copy of the ledger in `to`, a directory without files of one: what a crash at some
  // moment of the call would have left, with all that was committed before the call. The files and
  // their names are on disk when it returns them. kIoError; kUnavailable: `stop` was set.
  virtual Result<std::vector<CopiedFile>> CopyTo(const std::string& to,
                                                 const std::atomic<bool>& stop) const = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_COPY_SOURCE_H_
