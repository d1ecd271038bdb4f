// Bootstrap: from a configuration to a server that serves, and to its exit code.
//
// Thread: main. Mistakes are found before the ledger is touched, as far as they can.
#ifndef NOWCALLS_SERVER_BOOTSTRAP_H_
#define NOWCALLS_SERVER_BOOTSTRAP_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "backup/backup.h"
#include "nowcalls/status.h"
#include "server/additions.h"
#include "server/config/config.h"
#include "server/rules/rule_files.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::server {

// Verifies a copy in a process of this program, whose main calls backup::RunAsVerifier.
Result<backup::VerifySummary> VerifyInChild(const std::string& data_dir,
                                            const std::atomic<bool>& stop);

struct ServeOptions {
  store::RocksStoreOptions store{};  // But for durability, which is the configuration's.
  Additions* additions = nullptr;    // Not null; outlives the call.
  backup::CopyVerifier verify = VerifyInChild;
};

// Serves until a signal. Returns the exit code; logs the reason unless 0. `read_again`: the
// configuration now, on a worker thread.
int Serve(ServerConfig config, std::function<Result<Invocation>()> read_again,
          std::vector<LoadedRuleFile> rules, const ServeOptions& options);

// As base/exit_codes.h says.
int ExitCodeOf(const Status& failure);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_BOOTSTRAP_H_
