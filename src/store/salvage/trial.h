// Trial: work on damaged files in a child process, which an assertion of RocksDB may end.
//
// Thread: one, the process's only one, since it forks.
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

// Does `work` in a child: its effects on files stay, on memory not. `error` is kIo: no child,
// killed, or refused by the system.
TrialEnd Try(const std::function<StoreError(const Tell& tell)>& work);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_TRIAL_H_
