// Flows as texts of command lines and messages.
//
// Thread: any.
#ifndef NOWCALLS_CLIENT_FLOW_TEXT_H_
#define NOWCALLS_CLIENT_FLOW_TEXT_H_

#include <string>
#include <string_view>

#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::client {

// Digits are a number of at least 1, anything else the resource of a rule, of FlowNamed.
// kInvalidArgument completes "--flow: ".
Result<FlowId> ParseFlow(std::string_view text);

std::string FlowWord(FlowId flow);  // "7", "checkout".
std::string FlowText(FlowId flow);  // "flow 7", "flow 'checkout'".

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_FLOW_TEXT_H_
