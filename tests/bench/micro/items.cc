#include "bench/micro/items.h"

namespace nowcalls::microbench {

void CountItems(benchmark::State* state, int64_t items) {
  state->SetItemsProcessed(items);
  state->counters["per_item"] = benchmark::Counter(
      static_cast<double>(items), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace nowcalls::microbench
