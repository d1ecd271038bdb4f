#include "bench/sentinel_dialect.h"

namespace nowcalls::bench {
namespace {

using wire::sentinel::RequestType;

constexpr uint32_t kGreetXid = UINT32_MAX;

}  // namespace

void SentinelDialect::Greet(wire::OutputBuffer* out) {
  wire::sentinel::EncodePingRequest(kGreetXid, setup_->name_space, out);
}

void SentinelDialect::Acquire(uint32_t lane, uint32_t flow, int64_t /*wall_ms*/,
                              wire::OutputBuffer* out) {
  const uint32_t xid = 2 * lane;
  const int64_t id = setup_->flows[flow].id;
  switch (setup_->operation) {
    case Operation::kAcquire:
      return wire::sentinel::EncodeCallRequest(xid, RequestType::kAcquire, {id, 1}, out);
    case Operation::kRequest:
      return wire::sentinel::EncodeCallRequest(xid, RequestType::kFlow, {id, 1}, out);
    case Operation::kRequestParam: {
      const Param value = setup_->NextValue();
      return wire::sentinel::EncodeParamCallRequest(xid, id, 1, {&value, 1}, out);
    }
  }
}

void SentinelDialect::Release(uint32_t lane, uint32_t /*flow*/, uint64_t token,
                              wire::OutputBuffer* out) {
  wire::sentinel::EncodeTokenRequest(2 * lane + 1, RequestType::kRelease, token, out);
}

Dialect::Outcome SentinelDialect::Take(std::string_view* input, Answer* answer) {
  wire::sentinel::Response response;
  switch (wire::sentinel::TakeResponse(input, &response)) {
    case wire::sentinel::Answer::kIncomplete: return Outcome::kIncomplete;
    case wire::sentinel::Answer::kMalformed: return Outcome::kInvalid;
    case wire::sentinel::Answer::kWhole: break;
  }
  Read(response, answer);
  return Outcome::kAnswer;
}

// A call that may be made after a wait has passed. Frames do not say which limit refused.
void SentinelDialect::Read(const wire::sentinel::Response& response, Answer* answer) {
  answer->lane = response.xid / 2;
  const bool of_token = response.type == static_cast<int8_t>(RequestType::kAcquire);
  switch (response.status) {
    case TokenStatus::kOk:
    case TokenStatus::kShouldWait:
      answer->kind = response.xid == kGreetXid ? AnswerKind::kGreeted : AnswerKind::kGranted;
      answer->token = of_token ? response.token_id() : 0;
      return;
    case TokenStatus::kBlocked:
      answer->kind = AnswerKind::kRefused;
      answer->refused_by = of_token ? RefusedBy::kLevel : RefusedBy::kRate;
      return;
    case TokenStatus::kTooManyRequest:
      answer->kind = AnswerKind::kRefused;
      answer->refused_by = of_token ? RefusedBy::kOther : RefusedBy::kNamespaceQps;
      return;
    case TokenStatus::kReleaseOk: answer->kind = AnswerKind::kReleased; return;
    default:
      answer->kind = AnswerKind::kError;
      answer->error_name = TokenStatusName(response.status);
      answer->error_text = "answer in a Sentinel frame";
  }
}

}  // namespace nowcalls::bench
