// LoadingTables: the simulated tables as recovery sees them, through a saboteur.
//
// Thread: one.
#ifndef NOWCALLS_SIM_LOADING_TABLES_H_
#define NOWCALLS_SIM_LOADING_TABLES_H_

#include <cstdint>

#include "sim/saboteur.h"
#include "store/tables.h"

namespace nowcalls::sim {

class LoadingTables : public store::Tables {
 public:
  LoadingTables(store::Tables* tables, const Saboteur* saboteur)
      : tables_(tables), saboteur_(saboteur) {}
  Status Load(ledger::EntityVisitor* visitor) override { return saboteur_->Load(tables_, visitor); }
  uint64_t applied() const override { return tables_->applied(); }
  Status Apply(const ledger::SealedBatch& batch) override { return tables_->Apply(batch); }
  Status Sync() override { return tables_->Sync(); }
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override {
    tables_->Scan(request, result);
  }

 private:
  store::Tables* const tables_;
  const Saboteur* const saboteur_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_LOADING_TABLES_H_
