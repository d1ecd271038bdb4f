#include "bench/nowcalls_dialect.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "wire/messages.h"
#include "wire/param_list.h"

namespace nowcalls::bench {
namespace {

std::shared_ptr<NowcallsDialect::Setup> Setup() {
  return std::make_shared<NowcallsDialect::Setup>(
      NowcallsDialect::Setup{{{{1001, 10, 5000}, {1002, 7, 60'000}}, "bench"}, "me"});
}

wire::Envelope Decode(const wire::OutputBuffer& out) {
  wire::Envelope envelope;
  wire::RequestError error;
  REQUIRE(wire::DecodeEnvelope(out.view(), &envelope, &error));
  return envelope;
}

// The msgid under which `lane` acquires or releases.
uint32_t MsgidOf(NowcallsDialect* dialect, uint32_t lane, bool release) {
  wire::OutputBuffer out;
  if (release) {
    dialect->Release(lane, 0, 5, &out);
  } else {
    dialect->Acquire(lane, 0, 0, &out);
  }
  return Decode(out).msgid;
}

Answer TakeOne(NowcallsDialect* dialect, std::string_view bytes) {
  Answer answer;
  std::string_view input = bytes;
  REQUIRE(dialect->Take(&input, &answer) == Dialect::Outcome::kAnswer);
  CHECK(input.empty());
  return answer;
}

TEST_CASE("a secret goes before hello, and its answer is none of a request") {
  const auto setup = Setup();
  setup->secret = "s3cret";
  NowcallsDialect dialect(setup);
  wire::OutputBuffer out;
  dialect.Greet(&out);
  wire::MessageSplitter splitter;
  size_t size = 0;
  REQUIRE(splitter.Next(out.view(), &size) == wire::MessageSplitter::Outcome::kMessage);
  wire::Envelope identify;
  wire::Envelope hello;
  wire::RequestError error;
  REQUIRE(wire::DecodeEnvelope(out.view().substr(0, size), &identify, &error));
  REQUIRE(wire::DecodeEnvelope(out.view().substr(size), &hello, &error));
  wire::OutputBuffer answers;
  SUBCASE("it is taken") {
    wire::EncodeIdentify(identify.msgid, {.name = "bench"}, &answers);
    wire::EncodeHello(hello.msgid, {"0.1.0", 1, 1, 0}, &answers);
    CHECK(TakeOne(&dialect, answers.view()).kind == AnswerKind::kGreeted);
  }
  SUBCASE("it is refused") {
    wire::EncodeError(identify.msgid, {wire::ErrorCode::kPermission, "no"}, &answers);
    const Answer refused = TakeOne(&dialect, answers.view());
    CHECK(refused.kind == AnswerKind::kError);
    CHECK(refused.error_name == "PERMISSION");
  }
}

TEST_CASE("nowcalls is greeted with the namespace and the client id") {
  NowcallsDialect dialect(Setup());
  wire::OutputBuffer out;
  dialect.Greet(&out);
  const wire::Envelope envelope = Decode(out);
  CHECK(envelope.method == wire::Method::kHello);
  wire::HelloParams params;
  wire::RequestError error;
  REQUIRE(wire::DecodeHello(envelope.params, &params, &error));
  CHECK(params.name_space == "bench");
  CHECK(params.client_id == "me");
  out.Clear();
  wire::EncodeHello(envelope.msgid, {"0.1.0", 1, 1, 0}, &out);
  CHECK(TakeOne(&dialect, out.view()).kind == AnswerKind::kGreeted);
}

TEST_CASE("nowcalls is asked for one call of the flow, and to release the token") {
  NowcallsDialect dialect(Setup());
  wire::OutputBuffer out;
  wire::RequestError error;
  dialect.Acquire(500, 1, 0, &out);
  wire::AcquireParams acquire;
  REQUIRE(wire::DecodeAcquire(Decode(out).params, &acquire, &error));
  CHECK(acquire.flow_id == 1002);
  CHECK(acquire.count == 1);
  CHECK(acquire.request_id == 0);
  out.Clear();
  dialect.Release(500, 1, 0x1122334455667788, &out);
  CHECK(Decode(out).method == wire::Method::kRelease);
  wire::TokenParams release;
  REQUIRE(wire::DecodeToken(wire::Method::kRelease, Decode(out).params, &release, &error));
  CHECK(release.token_id == 0x1122334455667788);
}

TEST_CASE("nowcalls is asked for calls a second, of a rule or of its values in turn") {
  const std::shared_ptr<NowcallsDialect::Setup> setup = Setup();
  NowcallsDialect dialect(setup);
  wire::OutputBuffer out;
  wire::RequestError error;
  setup->operation = Operation::kRequest;
  dialect.Acquire(500, 1, 0, &out);
  CHECK(Decode(out).method == wire::Method::kRequest);
  CHECK(Decode(out).msgid == 1000);
  wire::RateParams rate;
  REQUIRE(wire::DecodeRequest(Decode(out).params, &rate, &error));
  CHECK(rate.flow_id == 1002);
  CHECK(rate.count == 1);
  setup->operation = Operation::kRequestParam;
  setup->values = {"a", "b"};
  for (const std::string value : {"a", "b", "a"}) {
    out.Clear();
    dialect.Acquire(0, 0, 0, &out);
    wire::ValueRateParams asked;
    wire::ParamList values;
    REQUIRE(wire::DecodeRequestParam(Decode(out).params, &asked, &values, &error));
    CHECK(asked.flow_id == 1001);
    REQUIRE(values.values().size() == 1);
    CHECK(values.values()[0] == Param{ParamType::kString, value});
  }
}

TEST_CASE("answers about calls a second are grants and refusals without tokens") {
  const std::shared_ptr<NowcallsDialect::Setup> setup = Setup();
  setup->operation = Operation::kRequest;
  NowcallsDialect dialect(setup);
  const auto take = [&](const wire::RateReply& reply) {
    wire::OutputBuffer out;
    wire::EncodeRate(2 * 7, reply, &out);
    const Answer answer = TakeOne(&dialect, out.view());
    CHECK(answer.lane == 7);
    CHECK(answer.token == 0);
    return answer;
  };
  CHECK(take({.status = TokenStatus::kOk, .remaining = 200}).kind == AnswerKind::kGranted);
  CHECK(take({.status = TokenStatus::kShouldWait, .wait_ms = 100}).kind == AnswerKind::kGranted);
  const Answer blocked = take({.status = TokenStatus::kBlocked, .refused_by = RefusedBy::kRate});
  CHECK(blocked.kind == AnswerKind::kRefused);
  CHECK(blocked.refused_by == RefusedBy::kRate);
  const Answer guarded =
      take({.status = TokenStatus::kTooManyRequest, .refused_by = RefusedBy::kNamespaceQps});
  CHECK(guarded.refused_by == RefusedBy::kNamespaceQps);
  CHECK(take({.status = TokenStatus::kNoRuleExists}).kind == AnswerKind::kError);
}

TEST_CASE("acquires of all connections have request ids of their own, if they are to have any") {
  const auto setup = Setup();
  setup->next_request_id = 7001;
  NowcallsDialect one(setup);
  NowcallsDialect other(setup);
  for (const uint64_t expected : {7001, 7002, 7003}) {
    wire::OutputBuffer out;
    (expected == 7002 ? other : one).Acquire(3, 0, 0, &out);
    wire::AcquireParams acquire;
    wire::RequestError error;
    REQUIRE(wire::DecodeAcquire(Decode(out).params, &acquire, &error));
    CHECK(acquire.flow_id == 1001);
    CHECK(acquire.request_id == expected);
  }
}

TEST_CASE("answers of nowcalls are told apart in any order, also byte by byte") {
  NowcallsDialect dialect(Setup());
  wire::OutputBuffer out;
  wire::EncodeStatus(MsgidOf(&dialect, 9, true), TokenStatus::kReleaseOk, &out);
  wire::EncodeAcquire(MsgidOf(&dialect, 300, false), {TokenStatus::kOk, 77, 5, 1, 10, 9}, &out);
  wire::EncodeAcquire(MsgidOf(&dialect, 0, false),
                      {TokenStatus::kBlocked, 0, 0, 10, 10, 0, RefusedBy::kLevel}, &out);
  std::vector<Answer> answers;
  std::string input;
  for (const char byte : out.view()) {
    input += byte;
    std::string_view rest = input;
    Answer answer;
    const Dialect::Outcome outcome = dialect.Take(&rest, &answer);
    REQUIRE(outcome != Dialect::Outcome::kInvalid);
    if (outcome != Dialect::Outcome::kAnswer) continue;
    answers.push_back(answer);
    input = rest;
  }
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].kind == AnswerKind::kReleased);
  CHECK(answers[0].lane == 9);
  CHECK(answers[1].kind == AnswerKind::kGranted);
  CHECK(answers[1].lane == 300);
  CHECK(answers[1].token == 77);
  CHECK(answers[2].kind == AnswerKind::kRefused);
  CHECK(answers[2].lane == 0);
  CHECK(answers[2].refused_by == RefusedBy::kLevel);
}

TEST_CASE("a server's errors and statuses are named as PROTOCOL.md names them") {
  NowcallsDialect dialect(Setup());
  wire::OutputBuffer out;
  wire::EncodeError(MsgidOf(&dialect, 4, false), {wire::ErrorCode::kOverloaded, "sessions_max"},
                    &out);
  const Answer error = TakeOne(&dialect, out.view());
  CHECK(error.kind == AnswerKind::kError);
  CHECK(error.lane == 4);
  CHECK(error.error_name == "OVERLOADED");
  CHECK(error.error_text == "sessions_max");
  out.Clear();
  wire::EncodeAcquire(MsgidOf(&dialect, 4, false), {TokenStatus::kNoRuleExists}, &out);
  CHECK(TakeOne(&dialect, out.view()).error_name == "NO_RULE_EXISTS");
  out.Clear();
  wire::EncodeStatus(MsgidOf(&dialect, 4, true), TokenStatus::kAlreadyRelease, &out);
  CHECK(TakeOne(&dialect, out.view()).error_name == "ALREADY_RELEASE");
  out.Clear();
  wire::EncodeAcquire(MsgidOf(&dialect, 4, false),
                      {TokenStatus::kTooManyRequest, 0, 0, 0, 0, 0, RefusedBy::kTokenLimit}, &out);
  CHECK(TakeOne(&dialect, out.view()).refused_by == RefusedBy::kTokenLimit);
}

TEST_CASE("what is no answer of nowcalls ends the connection") {
  for (const std::string_view bytes :
       {std::string_view("HTTP/1.1 400 Bad Request\r\n"), std::string_view("\x94\x01\x02\xc0\x07"),
        std::string_view("\x94\x00\x02\xa1x\x90", 6), std::string_view("\x93\x02\xa1x\x90")}) {
    CAPTURE(bytes);
    NowcallsDialect dialect(Setup());
    std::string_view input = bytes;
    Answer answer;
    CHECK(dialect.Take(&input, &answer) == Dialect::Outcome::kInvalid);
    CHECK_FALSE(dialect.error().empty());
  }
}

}  // namespace
}  // namespace nowcalls::bench
