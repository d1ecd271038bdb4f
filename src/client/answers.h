// From a server's reply to a caller's Answer.
//
// Thread: any.
#ifndef NOWCALLS_CLIENT_ANSWERS_H_
#define NOWCALLS_CLIENT_ANSWERS_H_

#include <string>
#include <string_view>

#include "client/call.h"
#include "nowcalls/answer.h"
#include "wire/messages.h"

namespace nowcalls::client {

// Not carried out.
Answer AnswerOf(const wire::RequestError& error);
// Of a status that is neither OK, SHOULD_WAIT nor NOT_AVAILABLE.
Answer RefusalOf(FlowId flow, TokenStatus status, RefusedBy refused_by, uint64_t now_calls,
                 uint64_t level);
// By the client's share of a level.
Answer LocalRefusalOf(FlowId flow, uint64_t now_calls, uint64_t level);
Answer NoAnswerOf(const Call& call, std::string_view reason);
Answer BadRequestOf(std::string message);
Answer PermissionDeniedOf(std::string message);
Answer UnavailableOf(std::string message);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_ANSWERS_H_
