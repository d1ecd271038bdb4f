// A child that has the memory of the test, but only the thread that forked it.
//
// Thread: any.
#ifndef NOWCALLS_SUPPORT_FORKED_CHILD_H_
#define NOWCALLS_SUPPORT_FORKED_CHILD_H_

#include <functional>

namespace nowcalls::testing {

// Whether a forked child finds that `looks` holds. A child that hangs is killed: false.
bool ChildFinds(const std::function<bool()>& looks);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_FORKED_CHILD_H_
