// From what a server says to what a caller is told.
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

// What answers with an error was not carried out.
Answer AnswerOf(const wire::RequestError& error);
// Of a status that is neither OK, SHOULD_WAIT nor NOT_AVAILABLE.
Answer RefusalOf(FlowId flow, TokenStatus status, RefusedBy refused_by, uint64_t now_calls,
                 uint64_t level);
// By the client's share of a level.
Answer LocalRefusalOf(FlowId flow, uint64_t now_calls, uint64_t level);
// Of a call that gets no answer any more.
Answer NoAnswerOf(const Call& call, std::string_view reason);
Answer BadRequestOf(std::string message);
Answer UnavailableOf(std::string message);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_ANSWERS_H_
