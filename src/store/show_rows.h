// From stored rows to the calls of a LedgerVisitor: the half of Load that all stores share.
//
// Thread: any. A row that does not decode goes to OnBadRecord.
#ifndef NOWCALLS_STORE_SHOW_ROWS_H_
#define NOWCALLS_STORE_SHOW_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/ledger_source.h"

namespace nowcalls::store {

// Shows one row of a family other than the meta family.
Status ShowRow(ledger::Family family, std::string_view key, std::string_view value,
               LedgerVisitor* visitor);

// The few rows of the meta family, gathered because visitors want them in another order.
class MetaRows {
 public:
  void Add(std::string_view key, std::string_view value);

  // Shows them all. kCorruption when there is no format record.
  Status Show(LedgerVisitor* visitor) const;

  // No live token has a deadline below it; at most the time of the last batch, and 0
  // when one of the two cannot be read.
  int64_t WatermarkMs() const;

 private:
  using Row = std::pair<std::string, std::string>;
  const std::string* Find(std::string_view key) const;

  std::vector<Row> rows_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SHOW_ROWS_H_
