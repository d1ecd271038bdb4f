// CopySource: a ledger whose files can be copied.
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

  // Copies the ledger into `to`, which has no ledger files: all batches committed before the call,
  // as after a crash during it. Files and names are on disk. kIoError; kUnavailable: `stop` was
  // set.
  virtual Result<std::vector<CopiedFile>> CopyTo(const std::string& to,
                                                 const std::atomic<bool>& stop) const = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_COPY_SOURCE_H_
