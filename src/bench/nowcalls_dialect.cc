#include "bench/nowcalls_dialect.h"

#include <utility>

namespace nowcalls::bench {
namespace {

constexpr uint32_t kGreetMsgid = UINT32_MAX;
constexpr uint32_t kIdentifyMsgid = UINT32_MAX - 1;

void SetError(std::string_view name, std::string_view text, Answer* answer) {
  answer->kind = AnswerKind::kError;
  answer->error_name = name;
  answer->error_text = text;
}

}  // namespace

void NowcallsDialect::Greet(wire::OutputBuffer* out) {
  if (!setup_->secret.empty()) wire::EncodeIdentifyRequest(kIdentifyMsgid, setup_->secret, out);
  wire::EncodeHelloRequest(kGreetMsgid,
                           {.name_space = setup_->name_space, .client_id = setup_->client_id}, out);
}

void NowcallsDialect::Acquire(uint32_t lane, uint32_t flow, int64_t /*wall_ms*/,
                              wire::OutputBuffer* out) {
  const int64_t id = setup_->flows[flow].id;
  switch (setup_->operation) {
    case Operation::kAcquire: {
      // A request id as clients send it; without one no acquire could be asked again.
      wire::AcquireParams acquire{.flow_id = id, .count = 1};
      if (setup_->next_request_id != 0) acquire.request_id = setup_->next_request_id++;
      if (!setup_->values.empty()) acquire.param = setup_->NextValue();
      return wire::EncodeAcquireRequest(2 * lane, acquire, out);
    }
    case Operation::kRequest:
      return wire::EncodeRateRequest(2 * lane, {.flow_id = id, .count = 1}, out);
    case Operation::kRequestParam: {
      const Param value = setup_->NextValue();
      return wire::EncodeValueRateRequest(2 * lane, {.flow_id = id, .count = 1}, {&value, 1}, out);
    }
  }
}

void NowcallsDialect::Release(uint32_t lane, uint32_t /*flow*/, uint64_t token,
                              wire::OutputBuffer* out) {
  wire::EncodeTokenRequest(2 * lane + 1, wire::Method::kRelease, token, out);
}

Dialect::Outcome NowcallsDialect::Take(std::string_view* input, Answer* answer) {
  // The splitter goes on with what it has begun.
  if (!splitter_.in_message() && TakeCommon(input, answer)) return Outcome::kAnswer;
  size_t message_bytes = 0;
  switch (splitter_.Next(*input, &message_bytes)) {
    case wire::MessageSplitter::Outcome::kIncomplete: return Outcome::kIncomplete;
    case wire::MessageSplitter::Outcome::kInvalid: error_ = splitter_.error(); break;
    case wire::MessageSplitter::Outcome::kMessage: {
      const Status read = Read(input->substr(0, message_bytes), answer);
      input->remove_prefix(message_bytes);
      // The answer to hello behind it tells whether the connection may be used.
      if (std::exchange(identified_, false)) return Take(input, answer);
      if (read.ok()) return Outcome::kAnswer;
      error_ = read.message();
    }
  }
  return Outcome::kInvalid;
}

bool NowcallsDialect::TakeCommon(std::string_view* input, Answer* answer) {
  // The short way for nearly all answers of a load, so that a dear decoder is not taken for a slow
  // server. Whatever does not fit exactly is left to the general way.
  std::string_view rest = *input;
  wire::CommonReply reply;
  if (!wire::TakeCommonReply(&rest, &reply)) return false;
  // The msgid tells the lane and what was asked, so no table of requests is kept.
  const bool of_release = reply.msgid % 2 != 0;
  if (of_release != (reply.status == TokenStatus::kReleaseOk)) return false;
  *input = rest;
  answer->lane = reply.msgid / 2;
  answer->token = reply.token_id;
  answer->refused_by = reply.refused_by;
  if (of_release) {
    answer->kind = AnswerKind::kReleased;
  } else {
    answer->kind = reply.status == TokenStatus::kOk ? AnswerKind::kGranted : AnswerKind::kRefused;
  }
  return true;
}

Status NowcallsDialect::Read(std::string_view message, Answer* answer) {
  Result<wire::Response> response = wire::DecodeResponse(message);
  if (!response.ok()) return response.status();
  answer->lane = response->msgid / 2;
  if (response->error) {
    // The answer's views point into it until the next Take.
    response_ = *std::move(response);
    SetError(wire::ErrorCodeName(response_.error->code), response_.error->message, answer);
    return {};
  }
  if (response->msgid == kIdentifyMsgid) {
    identified_ = true;
    return {};
  }
  if (response->msgid == kGreetMsgid) {
    answer->kind = AnswerKind::kGreeted;
    return {};
  }
  if (response->msgid % 2 != 0) return ReadReleased(response->result, answer);
  return setup_->operation == Operation::kAcquire ? ReadAcquired(response->result, answer)
                                                  : ReadRate(response->result, answer);
}

Status NowcallsDialect::ReadAcquired(std::string_view result, Answer* answer) {
  const Result<wire::AcquireReply> reply = wire::DecodeAcquireReply(result);
  if (!reply.ok()) return reply.status();
  switch (reply->status) {
    case TokenStatus::kOk:
      answer->kind = AnswerKind::kGranted;
      answer->token = reply->token_id;
      break;
    case TokenStatus::kBlocked:
    case TokenStatus::kTooManyRequest:
      answer->kind = AnswerKind::kRefused;
      answer->refused_by = reply->refused_by;
      break;
    default: SetError(TokenStatusName(reply->status), "answer to an acquire", answer);
  }
  return {};
}

// A call that may be made after a wait has passed.
Status NowcallsDialect::ReadRate(std::string_view result, Answer* answer) {
  const Result<wire::RateReply> reply = wire::DecodeRateReply(result);
  if (!reply.ok()) return reply.status();
  switch (reply->status) {
    case TokenStatus::kOk:
    case TokenStatus::kShouldWait: answer->kind = AnswerKind::kGranted; break;
    case TokenStatus::kBlocked:
    case TokenStatus::kTooManyRequest:
      answer->kind = AnswerKind::kRefused;
      answer->refused_by = reply->refused_by;
      break;
    default: SetError(TokenStatusName(reply->status), "answer to a request", answer);
  }
  return {};
}

Status NowcallsDialect::ReadReleased(std::string_view result, Answer* answer) {
  const Result<TokenStatus> status = wire::DecodeStatusReply(result);
  if (!status.ok()) return status.status();
  answer->kind = AnswerKind::kReleased;
  if (*status != TokenStatus::kReleaseOk) {
    SetError(TokenStatusName(*status), "answer to a release: the token had ended before", answer);
  }
  return {};
}

}  // namespace nowcalls::bench
