#include "library/fork_count.h"

#include <pthread.h>

#include <atomic>

namespace nowcalls::library {
namespace {

std::atomic<uint32_t> forks{0};

}  // namespace

uint32_t ForkCount() {
  // It fails if memory is out; then forks are not noticed.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace nowcalls::library
