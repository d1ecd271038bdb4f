#include "library/instance.h"

#include <pthread.h>

#include <atomic>

#include "base/clock.h"

namespace nowcalls::library {
namespace {

std::atomic<uint64_t> instance{0};

void Draw() {
  uint64_t drawn = 0;
  while (drawn == 0) drawn = RandomBits128()[0] >> 1;
  instance = drawn;
}

}  // namespace

uint64_t ProcessInstance() {
  // The handler runs in a child before its other code, so it meets no lock of the parent.
  [[maybe_unused]] static const int registered = [] {
    Draw();
    return pthread_atfork(nullptr, nullptr, Draw);
  }();
  return instance;
}

}  // namespace nowcalls::library
