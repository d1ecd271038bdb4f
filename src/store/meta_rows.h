// The rows of the meta family, kept until all are read: a visitor gets them in its order.
//
// Thread: any.
#ifndef NOWCALLS_STORE_META_ROWS_H_
#define NOWCALLS_STORE_META_ROWS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/entity_visitor.h"

namespace nowcalls::store {

class MetaRows {
 public:
  void Add(std::string_view key, std::string_view value);

  // kCorruption: no format record.
  Status Show(ledger::EntityVisitor* visitor) const;

  // A lower bound of live deadlines, at most the time of the seal; 0 if either cannot be read.
  int64_t WatermarkMs() const;

 private:
  using Row = std::pair<std::string, std::string>;
  const std::string* Find(std::string_view key) const;

  std::vector<Row> rows_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_META_ROWS_H_
