#include "admin/oldest_heap.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace nowcalls::admin {
namespace {

bool Older(const wire::TokenRow& a, const wire::TokenRow& b) {
  return std::tie(a.issued_ms, a.fence) < std::tie(b.issued_ms, b.fence);
}

}  // namespace

void OldestHeap::Offer(const wire::TokenRow& row) {
  if (heap_.size() == limit_) {
    // Full: the youngest held row, which is on top, gives way to an older one.
    if (limit_ == 0 || !Older(row, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), Older);
    heap_.back() = row;
  } else {
    heap_.push_back(row);
  }
  std::push_heap(heap_.begin(), heap_.end(), Older);
}

std::vector<wire::TokenRow> OldestHeap::Take() {
  std::sort_heap(heap_.begin(), heap_.end(), Older);
  return std::exchange(heap_, {});
}

}  // namespace nowcalls::admin
