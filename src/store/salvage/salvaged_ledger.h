// SalvagedLedger: the copy of a damaged ledger, read on behind unreadable places. Messages name the
// ledger, not the copy, and omit the advice to salvage.
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
  // `copy_dir`: copy of the ledger in `ledger_dir`.
  SalvagedLedger(const std::string& copy_dir, std::string ledger_dir);

  StoreError Open();

  // Shows all that is readable; reports other places (OnUnreadable). REQUIRES: Open is ok.
  Status Load(ledger::EntityVisitor* visitor) const;

 private:
  using ShowOne = std::function<Status(std::string_view key, std::string_view value)>;
  Status ShowReadable(ledger::Family family, const ShowOne& show,
                      ledger::EntityVisitor* visitor) const;

  const std::string ledger_dir_;
  Database database_;
};

// `text` with the ledger's directory for the copy's.
std::string AboutLedger(std::string text, const std::string& copy_dir,
                        const std::string& ledger_dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_SALVAGED_LEDGER_H_
