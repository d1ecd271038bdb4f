// Whether a batch follows the last one: log and tables take them without a gap.
//
// Thread: any; pure.
#ifndef NOWCALLS_STORE_BATCH_ORDER_H_
#define NOWCALLS_STORE_BATCH_ORDER_H_

#include <cstdint>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls::store {

// kInvalidArgument: it does not.
inline Status CheckFollows(uint64_t number, uint64_t last) {
  if (number == last + 1) return {};
  return Status::InvalidArgument("batch " + std::to_string(number) + " does not follow batch " +
                                 std::to_string(last));
}

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_BATCH_ORDER_H_
