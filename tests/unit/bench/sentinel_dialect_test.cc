#include "bench/sentinel_dialect.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "wire/sentinel/frames.h"

namespace nowcalls::bench {
namespace {

using wire::sentinel::RequestType;

SentinelDialect Asking(Operation operation) {
  return SentinelDialect(std::make_shared<LoadSetup>(
      LoadSetup{{{1001, 10, 5000}, {1002, 7, 60'000}}, "bench", operation, {"key-0", "key-1"}}));
}

wire::sentinel::Request RequestIn(const wire::OutputBuffer& out) {
  wire::sentinel::Request request;
  REQUIRE(wire::sentinel::DecodeRequest(out.view().substr(wire::sentinel::kLengthBytes), &request));
  return request;
}

Answer TakeOne(SentinelDialect* dialect, const wire::OutputBuffer& answers) {
  Answer answer;
  std::string_view input = answers.view();
  REQUIRE(dialect->Take(&input, &answer) == Dialect::Outcome::kAnswer);
  CHECK(input.empty());
  return answer;
}

TEST_CASE("a Sentinel load greets with a PING of the namespace") {
  SentinelDialect dialect = Asking(Operation::kAcquire);
  wire::OutputBuffer out;
  dialect.Greet(&out);
  const auto request = RequestIn(out);
  std::string_view name_space;
  REQUIRE(wire::sentinel::DecodePing(request.data, &name_space));
  CHECK(name_space == "bench");
  wire::OutputBuffer answer;
  wire::sentinel::EncodePing(request.xid, 1, &answer);
  CHECK(TakeOne(&dialect, answer).kind == AnswerKind::kGreeted);
}

TEST_CASE("a Sentinel load acquires one call of the flow and releases the token") {
  SentinelDialect dialect = Asking(Operation::kAcquire);
  wire::OutputBuffer out;
  dialect.Acquire(5, 1, 0, &out);
  auto request = RequestIn(out);
  wire::sentinel::CallParams call;
  REQUIRE(wire::sentinel::DecodeCall(request.data, &call));
  CHECK(request.type == static_cast<int8_t>(RequestType::kAcquire));
  CHECK(call.flow_id == 1002);
  CHECK(call.count == 1);
  wire::OutputBuffer answers;
  wire::sentinel::EncodeAcquire(request.xid, TokenStatus::kOk, 77, &answers);
  const Answer granted = TakeOne(&dialect, answers);
  CHECK(granted.kind == AnswerKind::kGranted);
  CHECK(granted.lane == 5);
  CHECK(granted.token == 77);
  out.Clear();
  dialect.Release(5, 1, 77, &out);
  request = RequestIn(out);
  uint64_t token = 0;
  REQUIRE(wire::sentinel::DecodeToken(request.data, &token));
  CHECK(token == 77);
  answers.Clear();
  wire::sentinel::EncodeStatus(request.xid, request.type, TokenStatus::kReleaseOk, &answers);
  const Answer released = TakeOne(&dialect, answers);
  CHECK(released.kind == AnswerKind::kReleased);
  CHECK(released.lane == 5);
}

TEST_CASE("a Sentinel load asks for calls a second, of a flow or of one value after the other") {
  SentinelDialect flow = Asking(Operation::kRequest);
  wire::OutputBuffer out;
  flow.Acquire(2, 0, 0, &out);
  CHECK(RequestIn(out).type == static_cast<int8_t>(RequestType::kFlow));
  SentinelDialect param = Asking(Operation::kRequestParam);
  for (const char* value : {"key-0", "key-1", "key-0"}) {
    out.Clear();
    param.Acquire(2, 0, 0, &out);
    wire::sentinel::ParamRoom room;
    wire::sentinel::ParamCallParams call;
    REQUIRE(wire::sentinel::DecodeParamCall(RequestIn(out).data, &room, &call));
    REQUIRE(call.values.size() == 1);
    CHECK(call.values[0].bytes == value);
  }
}

TEST_CASE("a Sentinel load tells grants, refusals and errors from the status") {
  SentinelDialect dialect = Asking(Operation::kRequest);
  const auto answer_of = [&](TokenStatus status) {
    wire::OutputBuffer out;
    wire::sentinel::EncodeRate(14, RequestType::kFlow, status, 0, 0, &out);
    const Answer answer = TakeOne(&dialect, out);
    CHECK(answer.lane == 7);
    return answer;
  };
  CHECK(answer_of(TokenStatus::kOk).kind == AnswerKind::kGranted);
  CHECK(answer_of(TokenStatus::kShouldWait).kind == AnswerKind::kGranted);
  CHECK(answer_of(TokenStatus::kBlocked).refused_by == RefusedBy::kRate);
  CHECK(answer_of(TokenStatus::kTooManyRequest).refused_by == RefusedBy::kNamespaceQps);
  const Answer error = answer_of(TokenStatus::kNoRuleExists);
  CHECK(error.kind == AnswerKind::kError);
  CHECK(error.error_name == "NO_RULE_EXISTS");
}

TEST_CASE("a part of a Sentinel answer is left alone, and what is no answer is an error") {
  SentinelDialect dialect = Asking(Operation::kRequest);
  wire::OutputBuffer out;
  wire::sentinel::EncodeStatus(1, 4, TokenStatus::kReleaseOk, &out);
  Answer answer;
  std::string_view part = out.view().substr(0, 7);
  CHECK(dialect.Take(&part, &answer) == Dialect::Outcome::kIncomplete);
  CHECK(part.size() == 7);
  std::string_view garbage("\0\1x", 3);
  CHECK(dialect.Take(&garbage, &answer) == Dialect::Outcome::kInvalid);
  CHECK(dialect.error() == "a frame that is no answer");
}

}  // namespace
}  // namespace nowcalls::bench
