// LoadingStore: the simulated store as recovery sees it, through a saboteur.
//
// Thread: one.
#ifndef NOWCALLS_SIM_LOADING_STORE_H_
#define NOWCALLS_SIM_LOADING_STORE_H_

#include "sim/saboteur.h"
#include "store/store.h"

namespace nowcalls::sim {

class LoadingStore : public store::Store {
 public:
  LoadingStore(store::Store* store, const Saboteur* saboteur)
      : store_(store), saboteur_(saboteur) {}
  Status Load(store::LedgerVisitor* visitor) override { return saboteur_->Load(store_, visitor); }
  Status Commit(const ledger::CommitBatch& batch) override { return store_->Commit(batch); }
  Status Sync() override { return store_->Sync(); }
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override {
    store_->Scan(request, result);
  }

 private:
  store::Store* const store_;
  const Saboteur* const saboteur_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_LOADING_STORE_H_
