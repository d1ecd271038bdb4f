// OldestHeap: the N oldest of tokens in any order.
//
// Thread: one.
#ifndef NOWCALLS_ADMIN_OLDEST_HEAP_H_
#define NOWCALLS_ADMIN_OLDEST_HEAP_H_

#include <cstddef>
#include <vector>

#include "wire/rows.h"

namespace nowcalls::admin {

class OldestHeap {
 public:
  explicit OldestHeap(size_t limit) : limit_(limit) {}

  void Offer(const wire::TokenRow& row);

  // Oldest first, then by fence. Leaves the heap empty.
  std::vector<wire::TokenRow> Take();

 private:
  size_t limit_;
  std::vector<wire::TokenRow> heap_;
};

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_OLDEST_HEAP_H_
