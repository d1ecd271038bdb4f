// FlowNamed: a flow by the resource of its rule, for all calls that take a FlowId.
//
//   client->Acquire(nowcalls::FlowNamed("checkout"));
//
// The name is looked up in the namespace of the session, by the server, with each request.
//
// Thread: any.
#ifndef NOWCALLS_FLOW_NAME_H_
#define NOWCALLS_FLOW_NAME_H_

#include <cstddef>
#include <string_view>

#include "nowcalls/export.h"
#include "nowcalls/types.h"

namespace nowcalls {

// Names that a process may use; each stays in its memory. They are those of rules, so few.
inline constexpr size_t kFlowNamesMax = 200'000;

// The same name has the same id as long as the process lives, and no rule's number. FlowId{}, which
// every call refuses: the name is empty, has over 1024 bytes, or is one too many.
NOWCALLS_EXPORT FlowId FlowNamed(std::string_view resource);

// The name of an id of FlowNamed, such as Grant::flow and Answer::flow have it, good as long as the
// process lives. Empty: a number.
NOWCALLS_EXPORT std::string_view NameOfFlow(FlowId flow);

}  // namespace nowcalls

#endif  // NOWCALLS_FLOW_NAME_H_
