// Trial: work on damaged files, in a process of its own.
//
// RocksDB's assertions end the process that reads certain damage. Here that is a child, and its
// parent hears what it was.
//
// Thread: one; the process must have no other, since it forks.
#ifndef NOWCALLS_STORE_SALVAGE_TRIAL_H_
#define NOWCALLS_STORE_SALVAGE_TRIAL_H_

#include <functional>
#include <string>
#include <vector>

#include "store/disk/store_error.h"

namespace nowcalls::store {

struct TrialEnd {
  StoreError error;               // Of the work; kDamaged with the last words if they ended it.
  std::vector<std::string> told;  // By the work, in order, up to its end.
};

using Tell = std::function<void(const std::string& what)>;

// Does `work` in a child. Nothing of what it does to the memory is left, all that it does to files
// is. `error` is kIo when there is no child, it was killed, or the system refused it something.
TrialEnd Try(const std::function<StoreError(const Tell& tell)>& work);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_TRIAL_H_
