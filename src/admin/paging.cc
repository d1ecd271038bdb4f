#include "admin/paging.h"

namespace nowcalls::admin {

Paging Paging::OfTokens(bool may_be_sparse) {
  // A page looks at 5000 tokens, and a server may have a thousand million.
  constexpr uint32_t kSparsePagesMax = 200'000;
  Paging paging("tokens");
  if (may_be_sparse) paging.empty_pages_max_ = kSparsePagesMax;
  return paging;
}

Status Paging::Take(size_t rows, uint64_t next_cursor) {
  at_end_ = next_cursor == 0;
  if (at_end_) return {};
  if (next_cursor == cursor_) {
    return LeadsNowhere("it was asked for what is behind cursor " + std::to_string(cursor_) +
                        " and says to go on from there");
  }
  empty_pages_ = rows == 0 ? empty_pages_ + 1 : 0;
  if (empty_pages_ > empty_pages_max_) {
    return LeadsNowhere("more than " + std::to_string(empty_pages_max_) +
                        " pages in a row are empty");
  }
  cursor_ = next_cursor;
  return {};
}

Status Paging::LeadsNowhere(const std::string& why) const {
  return Status::OutcomeUnknown("the server's answers to " + method_ + " lead nowhere: " + why);
}

}  // namespace nowcalls::admin
