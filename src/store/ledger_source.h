// LedgerSource: shows a ledger.
//
// Thread: one.
#ifndef NOWCALLS_STORE_LEDGER_SOURCE_H_
#define NOWCALLS_STORE_LEDGER_SOURCE_H_

#include "ledger/entity_visitor.h"
#include "nowcalls/status.h"

namespace nowcalls::store {

class LedgerSource {
 public:
  virtual ~LedgerSource() = default;

  // Shows the whole ledger to `visitor`. Clock, seal and watermark are absent from a ledger that
  // was formatted and never written to. Tables show the tokens from the watermark on.
  virtual Status Load(ledger::EntityVisitor* visitor) = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LEDGER_SOURCE_H_
