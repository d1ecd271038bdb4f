#include "engine/rpc/service.h"

#include <utility>

#include "base/check.h"

namespace nowcalls::engine::rpc {

Service::Service(core::Core* the_core, RuleSink* rules_sink, Outputs* the_outputs,
                 LateAnswers* the_late, Driver* the_driver, std::string the_version,
                 std::function<std::vector<wire::FigureRow>()> the_figures)
    : core(the_core),
      outputs(the_outputs),
      late(the_late),
      driver(the_driver),
      version(std::move(the_version)),
      figures(std::move(the_figures)),
      look_ahead(the_core->books()) {
  // Only stores the sink: the engine's parts are not complete yet.
  NOWCALLS_CHECK(this->rules.Start(rules_sink).ok());
}

void ReplyError(const Call& call, const wire::RequestError& error) {
  if (call.request.notification) return;
  wire::EncodeError(call.request.msgid, error, call.Immediate());
}

void ReplyErrorAfterCommit(const Call& call, const wire::RequestError& error) {
  if (call.request.notification) return;
  wire::EncodeError(call.request.msgid, error, call.AfterCommit());
}

void ReplyStatus(const Call& call, TokenStatus status) {
  if (call.request.notification) return;
  wire::EncodeStatus(call.request.msgid, status, call.AfterCommit());
}

wire::RequestError ErrorOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound: return {wire::ErrorCode::kBadParams, status.message()};
    case StatusCode::kAlreadyExists: return {wire::ErrorCode::kConflict, status.message()};
    case StatusCode::kUnavailable:  // The server ends.
    case StatusCode::kResourceExhausted: return {wire::ErrorCode::kOverloaded, status.message()};
    default: return {wire::ErrorCode::kInternal, status.ToString()};
  }
}

}  // namespace nowcalls::engine::rpc
