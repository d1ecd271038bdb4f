// Bootstrap: from a configuration to a server that serves, and to its exit code.
//
// Thread: main. Order: lock the ledger, bind the address, remove the old port file. These find
// every mistake that can be found before the ledger is touched. Then open or format the ledger,
// load it, prove it complete, and only then change it; recover the clock, commit the rule files,
// listen, write the port file. A server that answers has finished its recovery.
#ifndef NOWCALLS_SERVER_BOOTSTRAP_H_
#define NOWCALLS_SERVER_BOOTSTRAP_H_

#include <functional>
#include <vector>

#include "nowcalls/status.h"
#include "server/config.h"
#include "server/rule_files.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::server {

// Serves until a signal ends it; returns the exit code, having logged the reason if it is not 0.
// The store is opened with `store`, but for its durability, which is that of `config`.
// `read_again`, on a worker thread: what the configuration is while the server runs.
int Serve(ServerConfig config, std::function<Result<Invocation>()> read_again,
          std::vector<LoadedRuleFile> rules, const store::RocksStoreOptions& store);

// kExitUsage: the operator's mistake. kExitCorruption: the ledger is damaged. kExitIoError: the
// system refused a call.
int ExitCodeOf(const Status& failure);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_BOOTSTRAP_H_
