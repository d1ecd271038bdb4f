// LedgerScan: walks the expired tokens of a database, step by step.
//
// Thread: scan.
#ifndef NOWCALLS_STORE_ROCKS_LEDGER_SCAN_H_
#define NOWCALLS_STORE_ROCKS_LEDGER_SCAN_H_

#include <rocksdb/iterator.h>

#include <cstdint>
#include <memory>

#include "ledger/codec.h"
#include "ledger/scan.h"
#include "store/rocks/database.h"
#include "store/scan_walk.h"

namespace nowcalls::store {

class LedgerScan {
 public:
  // `database` outlives it.
  explicit LedgerScan(const Database* database) : database_(*database) {}

  // See Tables::Scan.
  void Step(const ledger::ScanRequest& request, ledger::ScanResult* result);
  // Lets go of what it has of the database. REQUIRES: no Step is under way.
  void Stop() { cursor_.reset(); }

 private:
  // The iterator of a walk between two steps. Making one over a memtable sorts it, tens of
  // milliseconds for a full one, so a walk of many steps must pay for that only once.
  struct Cursor {
    KeyRange range;
    rocksdb::Slice lower;  // Into `range`; RocksDB keeps pointers to these two.
    rocksdb::Slice upper;
    int64_t lower_ms = 0;  // Of the walk.
    int64_t upper_ms = 0;
    ledger::TokenKey last;  // Where `it` stands.
    std::unique_ptr<rocksdb::Iterator> it;
  };

  std::unique_ptr<Cursor> NewCursor(ledger::Family family, KeyRange range) const;
  // Whether `cursor` stands where the step before `request` ended, in `family`.
  static bool GoesOn(const Cursor* cursor, const ledger::ScanRequest& request,
                     ledger::Family family);

  const Database& database_;
  std::unique_ptr<Cursor> cursor_;  // nullptr unless the last step left `more`.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_SCAN_H_
