#include "admin/oldest_heap.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace nowcalls::admin {
namespace {

wire::TokenRow Row(int64_t issued_ms, uint64_t fence) {
  wire::TokenRow row;
  row.issued_ms = issued_ms;
  row.fence = fence;
  return row;
}

std::vector<uint64_t> Fences(OldestHeap* heap) {
  std::vector<uint64_t> fences;
  for (const wire::TokenRow& row : heap->Take()) fences.push_back(row.fence);
  return fences;
}

TEST_CASE("the oldest come first, whatever the order they are offered in") {
  OldestHeap heap(3);
  for (const int64_t ms : {50, 20, 90, 10, 70, 30, 60}) heap.Offer(Row(ms, ms + 1000));
  CHECK(Fences(&heap) == std::vector<uint64_t>{1010, 1020, 1030});
}

TEST_CASE("tokens of one millisecond are in the order they were granted in") {
  OldestHeap heap(2);
  for (const uint64_t fence : {7, 5, 6}) heap.Offer(Row(10, fence));
  CHECK(Fences(&heap) == std::vector<uint64_t>{5, 6});
}

TEST_CASE("fewer tokens than the limit are all kept, and taking them leaves none") {
  OldestHeap heap(10);
  heap.Offer(Row(2, 2));
  heap.Offer(Row(1, 1));
  CHECK(Fences(&heap) == std::vector<uint64_t>{1, 2});
  CHECK(heap.Take().empty());
}

TEST_CASE("a limit of zero keeps nothing") {
  OldestHeap heap(0);
  heap.Offer(Row(1, 1));
  CHECK(heap.Take().empty());
}

}  // namespace
}  // namespace nowcalls::admin
