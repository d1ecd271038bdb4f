// Bootstrap: from a configuration to a server that serves, and to its exit code.
//
// Thread: the main one. Order: ledger locked, address bound, old port file removed; with that, all
// is known to be right that can be known before the ledger is touched. Then ledger opened or
// formatted, loaded, proved complete and only then changed, clock recovered, rule files committed,
// listening, port file written. A server that answers has finished its recovery.
#ifndef NOWCALLS_SERVER_BOOTSTRAP_H_
#define NOWCALLS_SERVER_BOOTSTRAP_H_

#include <vector>

#include "nowcalls/status.h"
#include "server/config.h"
#include "server/rule_files.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::server {

// Serves until a signal ends it; returns the exit code, having logged the reason if it is not 0.
// The store is opened with `store`, but for its durability, which is that of `config`.
int Serve(ServerConfig config, std::vector<LoadedRuleFile> rules,
          const store::RocksStoreOptions& store);

// kExitUsage for what the operator wrote, kExitCorruption for what the ledger holds, kExitIoError
// for what the system refused.
int ExitCodeOf(const Status& failure);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_BOOTSTRAP_H_
