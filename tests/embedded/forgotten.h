// Forget: what becomes of a permit in a program that ends without its destructors.
//
// Thread: any.
#ifndef NOWCALLS_EMBEDDED_FORGOTTEN_H_
#define NOWCALLS_EMBEDDED_FORGOTTEN_H_

#include <mutex>
#include <utility>
#include <vector>

#include "nowcalls/permit.h"

namespace nowcalls::testing {

// Its destructor never runs. A leak checker finds it in a list, so it calls nothing leaked.
inline void Forget(Permit permit) {
  static std::mutex mutex;
  static auto* const forgotten = new std::vector<Permit>();
  const std::lock_guard lock(mutex);
  forgotten->push_back(std::move(permit));
}

}  // namespace nowcalls::testing

#endif  // NOWCALLS_EMBEDDED_FORGOTTEN_H_
