// MemberLife: a member of a cluster: stands by, takes over, serves, and stands by again.
//
// Thread: main.
#ifndef NOWCALLS_SERVER_CLUSTER_MEMBER_LIFE_H_
#define NOWCALLS_SERVER_CLUSTER_MEMBER_LIFE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backup/manifest.h"
#include "cluster/claimed_log.h"
#include "cluster/etcd.h"
#include "cluster/records.h"
#include "member/claim_keeper.h"
#include "member/cluster_store.h"
#include "member/etcd_log.h"
#include "member/follower.h"
#include "member/presence.h"
#include "nowcalls/status.h"
#include "server/bootstrap.h"
#include "server/cluster/roster.h"
#include "server/cluster/standby_signals.h"
#include "server/config/config.h"
#include "server/premises.h"
#include "server/server.h"
#include "store/disk/ledger_lock.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::server {

class MemberLife {
 public:
  // Opens the ledger of the data directory. `format`: of one to be made.
  using OpenLedger = std::function<Result<std::unique_ptr<store::RocksStore>>(
      std::unique_ptr<store::LedgerLock> lock, const std::optional<ledger::Format>& format)>;

  // Pointers outlive it. `config.cluster` is on.
  MemberLife(const ServerConfig* config, const ConfigAgain* again, const ServeOptions* options,
             Premises* premises, OpenLedger open);
  ~MemberLife();

  // Until a signal. `ready`: it stands by for the first time. kCorruption, kFailedPrecondition:
  // what etcd has and the ledger do not fit.
  Status Run(std::unique_ptr<store::LedgerLock> lock, const std::function<void()>& ready);

 private:
  Status Connect();
  Status AwaitEtcd();
  Status OpenTables(std::unique_ptr<store::LedgerLock> lock);
  Status CloseTables();
  Status MakeTablesAnew();
  Status TakeOverCopy();
  Status CheckCopy(const backup::Manifest& manifest) const;
  Status DropLedger();
  Status ReplaceLedger();
  Result<std::optional<member::FreshClaim>> StandBy();
  Status TakeOver(const member::FreshClaim& claim);
  Result<bool> Settle(const member::ClaimKeeper& keeper);
  Status Lead(const member::FreshClaim& claim, const member::ClaimKeeper& keeper);
  void TellLeft(const Ended& ended, uint64_t term, bool lease_over);
  void Resign(const cluster::HeldClaim& held);
  Status Follow(int64_t seal_ms);
  Status SyncSometimes();
  void NoteMember(const std::optional<member::Identity>& identity);
  void ShowPlace();
  void TellWriter();
  void TellRole(const std::string& role);
  void NoteEtcd(const Status& answer);
  void TellTrouble(const Status& trouble);
  std::optional<cluster::MemberRecord> Record() const;
  void Hear(const std::vector<member::HeardMember>& members);

  const ServerConfig* const config_;
  const ConfigAgain* const again_;
  const ServeOptions* const options_;
  Premises* const premises_;
  const OpenLedger open_;
  const std::string address_;

  // One for each thread that asks, so that none waits for another's answer.
  std::unique_ptr<cluster::Etcd> etcd_;
  std::unique_ptr<cluster::Etcd> etcd_of_claim_;
  std::unique_ptr<cluster::Etcd> etcd_of_presence_;
  std::optional<member::EtcdLog> log_;
  std::unique_ptr<store::RocksStore> local_;
  std::optional<member::ClusterStore> store_;
  std::optional<cluster::Lineage> lineage_;   // As of the last look before tables were opened.
  std::string format_;                        // Of the tables, as of Lineage::format.
  std::optional<member::Follower> follower_;  // None while this member leads.
  std::optional<StandbySignals> signals_;
  bool end_asked_ = false;
  std::string role_;       // As it was told last.
  bool troubled_ = false;  // Likewise.
  int64_t synced_ms_ = 0;
  int64_t holds_off_until_ms_ = 0;  // As FollowerOptions.

  mutable std::mutex mutex_;
  std::string member_;  // Guarded by mutex_; empty: of no cluster yet.
  std::atomic<bool> leads_ = false;
  std::atomic<uint64_t> promised_ = 0;  // While a copy is taken: MemberRecord::synced.
  Roster roster_;
  std::optional<member::Presence> presence_;  // Last: its thread uses what is above.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CLUSTER_MEMBER_LIFE_H_
