#include "store/rocks/ledger_scan.h"

#include <string>
#include <utility>

#include "store/disk/store_error.h"

namespace nowcalls::store {

using ledger::Family;

// Whether `cursor` stands at the end of the step before `request`, in `family`.
bool LedgerScan::GoesOn(const Cursor* cursor, const ledger::ScanRequest& request, Family family) {
  return cursor != nullptr && request.resume && request.after.family == family &&
         cursor->last == request.after && cursor->lower_ms == request.lower_ms &&
         cursor->upper_ms == request.upper_ms;
}

std::unique_ptr<LedgerScan::Cursor> LedgerScan::NewCursor(Family family, KeyRange range) const {
  auto made = std::make_unique<Cursor>();
  made->range = std::move(range);
  made->lower = made->range.lower;
  made->upper = made->range.upper;
  rocksdb::ReadOptions read;
  read.iterate_lower_bound = &made->lower;
  read.iterate_upper_bound = &made->upper;
  made->it.reset(database_.db()->NewIterator(read, database_.HandleOf(family)));
  made->it->SeekToFirst();
  return made;
}

void LedgerScan::Step(const ledger::ScanRequest& request, ledger::ScanResult* result) {
  ScanWalk walk(request, result);
  std::unique_ptr<Cursor> cursor = std::move(cursor_);
  if (!database_.is_open()) {
    result->status = Status::FailedPrecondition("the ledger is closed");
    return;
  }
  for (const Family family : ledger::kTokenFamilies) {
    if (!walk.Visits(family)) continue;
    // Go on where the last step ended, or begin with this family.
    if (GoesOn(cursor.get(), request, family)) {
      cursor->it->Next();
    } else {
      KeyRange range = walk.RangeIn(family);
      if (range.lower >= range.upper) continue;
      cursor = NewCursor(family, std::move(range));
    }
    rocksdb::Iterator* const it = cursor->it.get();
    for (; it->Valid(); it->Next()) {
      if (!walk.Take(family, AsView(it->key()))) break;
    }
    // The step is over, the walk is not: keep the iterator, since a new one sorts the memtable for
    // tens of milliseconds.
    if (result->more) {
      cursor->lower_ms = request.lower_ms;
      cursor->upper_ms = request.upper_ms;
      cursor->last = result->expired.back();
      cursor_ = std::move(cursor);
      return;
    }
    // An undecodable key ends the walk; the iterator goes with it.
    if (!result->status.ok()) return;
    result->status = FromRocks(
        it->status(), "scan column family " + std::string(FamilyName(family)), database_.dir());
    if (!result->status.ok()) return;
  }
}

}  // namespace nowcalls::store
