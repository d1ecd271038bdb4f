// SalvagedLedger: the copy of a damaged ledger, opened without the checks of a sound one, and read
// on behind what cannot be read.
//
// Its messages are about the ledger, whose files the reader has, not about the copy. Those about
// damage are without the advice to salvage: that is being done.
//
// Thread: one.
#ifndef NOWCALLS_STORE_SALVAGE_SALVAGED_LEDGER_H_
#define NOWCALLS_STORE_SALVAGE_SALVAGED_LEDGER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "nowcalls/status.h"
#include "store/disk/store_error.h"
#include "store/ledger_source.h"
#include "store/rocks/database.h"

namespace nowcalls::store {

class SalvagedLedger {
 public:
  // The copy in the directory `copy_dir` of the ledger in `ledger_dir`.
  SalvagedLedger(const std::string& copy_dir, std::string ledger_dir);

  StoreError Open();

  // Shows all that can be read to `visitor`, in the order of LedgerVisitor, and tells it of each
  // place that cannot (LedgerVisitor::OnUnreadable). REQUIRES: Open is ok.
  Status Load(LedgerVisitor* visitor) const;

 private:
  using ShowOne = std::function<Status(std::string_view key, std::string_view value)>;
  Status ShowReadable(ledger::Family family, const ShowOne& show, LedgerVisitor* visitor) const;

  const std::string ledger_dir_;
  Database database_;
};

// `text` with the directory of the ledger in place of that of its copy.
std::string AboutLedger(std::string text, const std::string& copy_dir,
                        const std::string& ledger_dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_SALVAGED_LEDGER_H_
