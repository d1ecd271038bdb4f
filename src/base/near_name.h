// The name that a misspelt one was probably meant to be.
//
// Thread: any; pure.
#ifndef NOWCALLS_BASE_NEAR_NAME_H_
#define NOWCALLS_BASE_NEAR_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace nowcalls {

// "flow_id" and "FlowId" are both "flowid".
std::string PlainName(std::string_view name);

// The nearest of `names` as PlainName has them, at most two letters added, left out or changed;
// else empty.
std::string NearName(std::string_view wrong, const std::vector<std::string>& names);

// "; did you mean NAME?", or nothing.
std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_NEAR_NAME_H_
