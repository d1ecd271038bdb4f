// Premises: what a process has however often it serves: addresses, HTTP, port file.
//
// Thread: main, which is the loop's.
#ifndef NOWCALLS_SERVER_PREMISES_H_
#define NOWCALLS_SERVER_PREMISES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "net/endpoint.h"
#include "nowcalls/status.h"
#include "recovery/recovery.h"
#include "server/bootstrap.h"
#include "server/config/config.h"
#include "server/loop/address_hold.h"
#include "server/port_file.h"
#include "server/rules/rule_files.h"
#include "server/security/access_file_watch.h"
#include "server/security/tls_port.h"
#include "server/server.h"
#include "store/disk/ledger_lock.h"
#include "store/rocks/rocks_store.h"
#include "store/store.h"
#include "web/board.h"
#include "web/web.h"

namespace nowcalls::server {

// A ledger to be served. Pointers outlive Serve.
struct Served {
  recovery::RecoveredLedger* ledger = nullptr;
  store::Store* store = nullptr;
  store::RocksStore* local = nullptr;  // The tables behind `store`, for backups.
  std::function<Status()> close;       // The last call, on the commit thread; not when deposed.
  std::vector<LoadedRuleFile> rules;
  ConfigAgain again;
  ClaimWatch claim{};               // Of a writer in a cluster.
  std::function<void()> serving{};  // Clients are let in.
  int64_t began_ms = 0;             // BoottimeMs, for the log.
};

class Premises {
 public:
  // Both outlive it.
  Premises(const ServerConfig* config, const ServeOptions* options);

  // Finds the mistakes that can be found before the ledger is touched. HTTP answers from here on,
  // and peers are refused. Returns the ledger's lock, with its errors; kInvalidArgument, kIoError.
  Result<std::unique_ptr<store::LedgerLock>> Enter();

  // Commits the rule files, lets clients in, serves until the end. May be called again behind a
  // deposed one; until then peers are refused.
  Result<Ended> Serve(Served served);

  web::Board* board() { return &board_; }

 private:
  Status ReadSecurity();
  void ReadSecurityAgain();
  Status StartWeb();
  void Look(const std::vector<net::Endpoint>& addresses);
  Status LetIn(Server* server, recovery::RecoveredLedger* ledger, const ledger::Clock& clock,
               int64_t began_ms);

  const ServerConfig* const config_;
  const ServeOptions* const options_;
  AccessListPtr access_;
  TlsContext tls_;
  std::vector<AddressHold> holds_;  // While nothing listens.
  web::Board board_;
  std::unique_ptr<web::Web> web_;
  bool web_looks_ = false;
  bool web_announces_ = false;
  PortFile port_file_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_PREMISES_H_
