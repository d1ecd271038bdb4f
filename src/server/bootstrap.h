// Bootstrap: from a configuration to a server that serves, and to its exit code.
//
// Thread: main. A server that answers has recovered. Mistakes are found before the ledger is
// touched, as far as they can.
#ifndef NOWCALLS_SERVER_BOOTSTRAP_H_
#define NOWCALLS_SERVER_BOOTSTRAP_H_

#include <functional>
#include <vector>

#include "nowcalls/status.h"
#include "server/config.h"
#include "server/rule_files.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::server {

// Serves until a signal. Returns the exit code; logs the reason unless 0. `store`: options but for
// durability, which is `config`'s. `read_again`, on a worker thread: the configuration now.
int Serve(ServerConfig config, std::function<Result<Invocation>()> read_again,
          std::vector<LoadedRuleFile> rules, const store::RocksStoreOptions& store);

// kExitUsage: the operator's mistake. kExitCorruption: damage. kExitIoError: the system refused a
// call.
int ExitCodeOf(const Status& failure);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_BOOTSTRAP_H_
