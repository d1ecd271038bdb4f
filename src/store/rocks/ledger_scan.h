// LedgerScan: walks a database's expired tokens, step by step.
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

  void Step(const ledger::ScanRequest& request, ledger::ScanResult* result);
  // Gives up its iterator. REQUIRES: no Step is under way.
  void Stop() { cursor_.reset(); }

 private:
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
  static bool GoesOn(const Cursor* cursor, const ledger::ScanRequest& request,
                     ledger::Family family);

  const Database& database_;
  std::unique_ptr<Cursor> cursor_;  // nullptr unless the last step left `more`.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_SCAN_H_
