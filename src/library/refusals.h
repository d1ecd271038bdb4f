// Answers to calls in a callback or a forked child.
//
// Thread: any.
#ifndef NOWCALLS_LIBRARY_REFUSALS_H_
#define NOWCALLS_LIBRARY_REFUSALS_H_

#include <type_traits>

#include "nowcalls/answer.h"

namespace nowcalls::library {

inline constexpr char kMustNotWait[] =
    "a callback must not wait for the thread that it runs on; use the Async call";
inline constexpr char kInherited[] = "this client was made before a fork; make one in the child";

// Of a blocking call in a callback. T: an Answer.
template <typename T>
T MustNotWait() {
  T answer;
  answer.outcome = Outcome::kBadRequest;
  answer.message = kMustNotWait;
  return answer;
}

// In a forked child.
template <typename T>
T Inherited() {
  constexpr bool kHasToken = std::is_same_v<T, Released> || std::is_same_v<T, Kept>;
  T answer;
  answer.outcome = kHasToken ? Outcome::kUnavailable : Outcome::kBadRequest;
  answer.message = kInherited;
  return answer;
}

}  // namespace nowcalls::library

#endif  // NOWCALLS_LIBRARY_REFUSALS_H_
