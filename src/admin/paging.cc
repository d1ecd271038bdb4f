#include "admin/paging.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/limits.h"

namespace nowcalls::admin {

namespace {

// Twice what a server has at most, since rows come and go while they are listed.
uint64_t RowsMaxOf(std::string_view method) {
  if (method == "rules_list") return uint64_t{2} * Limits().rules_max;
  if (method == "flows") return uint64_t{2} * Limits().flows_max();
  return 2'000'000;
}

}  // namespace

Paging::Paging(std::string method) : method_(std::move(method)), rows_max_(RowsMaxOf(method_)) {}

Paging Paging::OfTokens(bool may_be_sparse) {
  // A page looks at 5000 tokens, and a server may have a thousand million.
  constexpr uint32_t kSparsePagesMax = 200'000;
  Paging paging("tokens");
  if (may_be_sparse) paging.short_pages_max_ = kSparsePagesMax;
  // Only the listing of tokens may be of any length.
  paging.rows_max_ = UINT64_MAX;
  return paging;
}

Status Paging::Take(size_t rows, uint64_t next_cursor) {
  at_end_ = next_cursor == 0;
  if (at_end_) return {};
  // Three signs of a server that leads nowhere: the cursor stands, pages bring next to nothing, or
  // there is more than any server has.
  if (next_cursor == cursor_) {
    return LeadsNowhere("it was asked for what is behind cursor " + std::to_string(cursor_) +
                        " and says to go on from there");
  }
  rows_ += rows;
  if (rows < kFewRows && ++short_pages_ > short_pages_max_ + rows_ / kFewRows) {
    return LeadsNowhere(std::to_string(short_pages_) + " pages had fewer than " +
                        std::to_string(kFewRows) + " rows, and there are more");
  }
  if (rows_ > rows_max_) {
    return LeadsNowhere("there are more than " + std::to_string(rows_max_) + " rows");
  }
  cursor_ = next_cursor;
  return {};
}

Status Paging::LeadsNowhere(const std::string& why) const {
  return Status::OutcomeUnknown("the server's answers to " + method_ + " lead nowhere: " + why);
}

}  // namespace nowcalls::admin
