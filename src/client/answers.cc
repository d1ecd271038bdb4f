#include "client/answers.h"

#include <utility>

namespace nowcalls::client {

using wire::ErrorCode;

Answer AnswerOf(const wire::RequestError& error) {
  const bool later = error.code == ErrorCode::kOverloaded || error.code == ErrorCode::kInternal ||
                     error.code == ErrorCode::kConflict;
  return {.outcome = later ? Outcome::kUnavailable : Outcome::kBadRequest,
          .message = std::string(ErrorCodeName(error.code)) + ": " + error.message};
}

Answer RefusalOf(FlowId flow, TokenStatus status, RefusedBy refused_by, uint64_t now_calls,
                 uint64_t level) {
  const std::string name = flow.value == 0 ? "the request" : "flow " + std::to_string(flow.value);
  Answer answer{.outcome = Outcome::kRefused,
                .refused_by = refused_by,
                .flow = flow,
                .now_calls = now_calls,
                .level = level};
  if (status == TokenStatus::kNoRuleExists) {
    answer.outcome = Outcome::kNoRule;
    answer.message = name + " has no rule";
  } else if (status == TokenStatus::kBadRequest) {
    answer.outcome = Outcome::kBadRequest;
    answer.message = name + ": the server calls the request wrong";
    if (refused_by != RefusedBy::kNone) {
      answer.message += ": " + std::string(RefusedByName(refused_by));
    }
  } else {
    answer.message = name + " refused by ";
    answer.message +=
        refused_by == RefusedBy::kNone ? TokenStatusName(status) : RefusedByName(refused_by);
    if (now_calls != 0 || level != 0) {
      answer.message +=
          ": " + std::to_string(now_calls) + " of " + std::to_string(level) + " in progress";
    }
  }
  return answer;
}

Answer LocalRefusalOf(FlowId flow, uint64_t now_calls, uint64_t level) {
  return {.outcome = Outcome::kRefused,
          .refused_by = RefusedBy::kLevel,
          .local = true,
          .flow = flow,
          .now_calls = now_calls,
          .level = level,
          .message = "flow " + std::to_string(flow.value) + " refused by the local share: " +
                     std::to_string(now_calls) + " of " + std::to_string(level) + " in progress"};
}

Answer NoAnswerOf(const Call& call, std::string_view reason) {
  const std::string why(reason);
  if (call.unsettled) {
    return {.outcome = Outcome::kUnknown,
            .message = "no answer, perhaps it was carried out: " + why};
  }
  return {.outcome = Outcome::kUnavailable, .message = "not carried out: " + why};
}

Answer BadRequestOf(std::string message) {
  return {.outcome = Outcome::kBadRequest, .message = std::move(message)};
}

}  // namespace nowcalls::client
