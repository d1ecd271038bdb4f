// Permits that a program has when it ends, which does not run their destructors: only these would
// release the tokens.
//
// Thread: one.
#ifndef NOWCALLS_SUPPORT_FORGOTTEN_H_
#define NOWCALLS_SUPPORT_FORGOTTEN_H_

#include <utility>
#include <vector>

#include "nowcalls/permit.h"

namespace nowcalls::testing {

// Still reachable, so no leak to a sanitizer.
inline void Forget(Permit permit) {
  static auto* const forgotten = new std::vector<Permit>();
  forgotten->push_back(std::move(permit));
}

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_FORGOTTEN_H_
