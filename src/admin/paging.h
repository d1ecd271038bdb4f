// Paging: from page to page of a server's listing, to its end.
//
// Thread: one. A standing cursor, too many small pages or too many rows end the listing.
#ifndef NOWCALLS_ADMIN_PAGING_H_
#define NOWCALLS_ADMIN_PAGING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls::admin {

class Paging {
 public:
  // `method`: its cursor moves with every page.
  explicit Paging(std::string method);

  // `may_be_sparse`: its filters may leave pages empty.
  static Paging OfTokens(bool may_be_sparse);

  // 0 begins.
  uint64_t cursor() const { return cursor_; }
  bool at_end() const { return at_end_; }

  // kOutcomeUnknown: the listing leads nowhere.
  Status Take(size_t rows, uint64_t next_cursor);

 private:
  Status LeadsNowhere(const std::string& why) const;

  std::string method_;
  static constexpr uint64_t kFewRows = 10;

  uint64_t rows_max_;
  uint64_t rows_ = 0;
  uint64_t short_pages_max_ = 1000;  // And one for so many rows.
  uint64_t short_pages_ = 0;
  uint64_t cursor_ = 0;
  bool at_end_ = false;
};

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_PAGING_H_
