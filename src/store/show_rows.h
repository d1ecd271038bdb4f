// Turns stored rows into calls of a LedgerVisitor, for every store.
//
// Thread: any. Rows that do not decode go to OnBadRecord.
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

// For all families but meta.
Status ShowRow(ledger::Family family, std::string_view key, std::string_view value,
               LedgerVisitor* visitor);

// Rows of the meta family, shown in the visitor's order.
class MetaRows {
 public:
  void Add(std::string_view key, std::string_view value);

  // kCorruption: no format record.
  Status Show(LedgerVisitor* visitor) const;

  // A lower bound of live deadlines, at most the time of the seal; 0 if either cannot be read.
  int64_t WatermarkMs() const;

 private:
  using Row = std::pair<std::string, std::string>;
  const std::string* Find(std::string_view key) const;

  std::vector<Row> rows_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SHOW_ROWS_H_
