#include "client/answers.h"

#include <utility>

#include "client/flow_text.h"

namespace nowcalls::client {

using wire::ErrorCode;

namespace {

Answer EndOf(Outcome outcome, std::string message) {
  Answer answer;
  answer.outcome = outcome;
  answer.message = std::move(message);
  return answer;
}

Answer LimitOf(RefusedBy refused_by, FlowId flow, uint64_t now_calls, uint64_t level) {
  Answer answer;
  answer.outcome = Outcome::kRefused;
  answer.refused_by = refused_by;
  answer.flow = flow;
  answer.now_calls = now_calls;
  answer.level = level;
  return answer;
}

}  // namespace

Answer AnswerOf(const wire::RequestError& error) {
  Outcome outcome = Outcome::kBadRequest;  // A mistake in the request.
  switch (error.code) {
    case ErrorCode::kPermission: outcome = Outcome::kPermissionDenied; break;
    // These may pass, so the caller may ask again.
    case ErrorCode::kOverloaded:
    case ErrorCode::kInternal:
    case ErrorCode::kConflict: outcome = Outcome::kUnavailable; break;
    default: break;
  }
  return EndOf(outcome, std::string(ErrorCodeName(error.code)) + ": " + error.message);
}

Answer RefusalOf(FlowId flow, TokenStatus status, RefusedBy refused_by, uint64_t now_calls,
                 uint64_t level) {
  const std::string name = flow.value == 0 ? "the request" : FlowText(flow);
  Answer answer = LimitOf(refused_by, flow, now_calls, level);
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
  Answer answer = LimitOf(RefusedBy::kLevel, flow, now_calls, level);
  answer.local = true;
  answer.message = FlowText(flow) + " refused by the local share: " + std::to_string(now_calls) +
                   " of " + std::to_string(level) + " in progress";
  return answer;
}

Answer NoAnswerOf(const Call& call, std::string_view reason) {
  const std::string why(reason);
  if (call.unsettled) {
    return EndOf(Outcome::kUnknown, "no answer, perhaps it was carried out: " + why);
  }
  return UnavailableOf("not carried out: " + why);
}

Answer BadRequestOf(std::string message) { return EndOf(Outcome::kBadRequest, std::move(message)); }

Answer PermissionDeniedOf(std::string message) {
  return EndOf(Outcome::kPermissionDenied, std::move(message));
}

Answer UnavailableOf(std::string message) {
  return EndOf(Outcome::kUnavailable, std::move(message));
}

}  // namespace nowcalls::client
