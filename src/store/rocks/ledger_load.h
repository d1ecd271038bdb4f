// Loads a whole ledger: each row becomes a call of the visitor.
//
// Thread: one; starts another (read_ahead.h).
#ifndef NOWCALLS_STORE_ROCKS_LEDGER_LOAD_H_
#define NOWCALLS_STORE_ROCKS_LEDGER_LOAD_H_

#include "nowcalls/status.h"
#include "store/ledger_source.h"
#include "store/rocks/database.h"

namespace nowcalls::store {

enum class LoadFrom {
  kWatermark,  // A server starts behind the tombstones of all tokens that have ended.
  kBeginning,  // A tool looks at every row: one below the watermark is what a verifier is after.
};

// In the order of ledger::Entity.
Status LoadLedger(const Database& database, LoadFrom from, ledger::EntityVisitor* visitor);

StoreError ReadError(const Database& database, ledger::Family family,
                     const rocksdb::Status& status);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_LOAD_H_
