// request and request_param: the golden bytes, and what is refused.
#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "unit/wire/golden_vectors.h"
#include "wire/client_messages.h"
#include "wire/param_list.h"

namespace nowcalls::wire {
namespace {

ParamValue Int(int32_t number) {
  ParamValue value(ParamType::kInt, "");
  AppendBigEndian(&value.bytes, number);
  return value;
}

std::vector<ParamValue> TypedValues() {
  ParamValue big(ParamType::kLong, "");
  AppendBigEndian(&big.bytes, int64_t{1} << 31);
  return {Int(5),
          big,
          {ParamType::kString, "5"},
          {ParamType::kBoolean, "\1"},
          {ParamType::kDouble, {"\x3f\xe0\0\0\0\0\0\0", 8}}};  // 0.5
}

std::vector<Param> Views(const std::vector<ParamValue>& values) {
  std::vector<Param> views;
  for (const ParamValue& value : values) views.push_back(value.view());
  return views;
}

const std::vector<ParamValue> kKey7 = {{ParamType::kString, "key-7"}};

TEST_CASE("a client's requests for calls a second are the golden bytes") {
  using Out = OutputBuffer;
  const auto check = [](const char* name, const std::function<void(Out*)>& encode) {
    CheckBytes(Requests(), name, encode);
  };
  check("request", [](Out* o) { EncodeRateRequest(23, {111, 1}, o); });
  check("request_prioritized", [](Out* o) { EncodeRateRequest(23, {111, 2, true}, o); });
  check("request_param", [](Out* o) { EncodeValueRateRequest(24, {111, 1}, Views(kKey7), o); });
  const std::vector<ParamValue> typed = TypedValues();
  check("request_param_typed", [&](Out* o) {
    EncodeValueRateRequest(24, {111, 1}, Views(typed), o);
  });
}

TEST_CASE("a whole number that is a real keeps its type") {
  const auto real = [](auto number, ParamType type) {
    ParamValue value(type, "");
    if constexpr (sizeof(number) == sizeof(double)) {
      AppendBigEndian(&value.bytes, std::bit_cast<uint64_t>(number));
    } else {
      AppendBigEndian(&value.bytes, std::bit_cast<uint32_t>(number));
    }
    return value;
  };
  const std::vector<ParamValue> values = {
      real(1.0, ParamType::kDouble), real(-0.0, ParamType::kDouble),
      real(9223372036854775808.0, ParamType::kDouble), real(1.0F, ParamType::kFloat)};
  OutputBuffer out;
  EncodeValueRateRequest(24, {111, 1}, Views(values), &out);
  Envelope envelope;
  RequestError error;
  REQUIRE(DecodeEnvelope(out.view(), &envelope, &error));
  ValueRateParams asked;
  ParamList read;
  REQUIRE(DecodeRequestParam(envelope.params, &asked, &read, &error));
  REQUIRE(read.values().size() == values.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(read.values()[i] == values[i].view());
}

TEST_CASE("the server reads the golden requests for calls a second") {
  RequestError error;
  RateParams rate;
  REQUIRE(DecodeRequest(Params("request", Method::kRequest), &rate, &error));
  CHECK(rate.flow_id == 111);
  CHECK(rate.count == 1);
  CHECK_FALSE(rate.prioritized);
  REQUIRE(DecodeRequest(Params("request_prioritized", Method::kRequest), &rate, &error));
  CHECK(rate.count == 2);
  CHECK(rate.prioritized);
  ValueRateParams asked;
  ParamList values;
  const auto read = [&](const char* name, const std::vector<ParamValue>& wanted) {
    REQUIRE(DecodeRequestParam(Params(name, Method::kRequestParam), &asked, &values, &error));
    CHECK(asked.flow_id == 111);
    CHECK(asked.count == 1);
    REQUIRE(values.values().size() == wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(values.values()[i] == wanted[i].view());
  };
  read("request_param", kKey7);
  read("request_param_typed", TypedValues());
}

TEST_CASE(
    "the server's answers about calls a second are the golden bytes, and a client reads them") {
  const auto check = [](const char* name, uint32_t msgid, const RateReply& reply) {
    CheckBytes(Replies(), name, [&](OutputBuffer* o) { EncodeRate(msgid, reply, o); });
    const Result<RateReply> read = DecodeRateReply(ResultOf(name));
    REQUIRE(read.ok());
    CHECK(read->status == reply.status);
    CHECK(read->remaining == reply.remaining);
    CHECK(read->wait_ms == reply.wait_ms);
    CHECK(read->refused_by == reply.refused_by);
    // The quick way of reading has the same of it, or leaves it to the other.
    std::string_view input = Replies().at(name);
    CommonReply common;
    if (!TakeCommonReply(&input, &common)) return false;
    CHECK(input.empty());
    CHECK(common.msgid == msgid);
    CHECK(common.status == reply.status);
    CHECK(common.refused_by == reply.refused_by);
    return true;
  };
  CHECK(check("request_ok", 23, {.status = TokenStatus::kOk, .remaining = 9}));
  CHECK_FALSE(
      check("request_should_wait", 23, {.status = TokenStatus::kShouldWait, .wait_ms = 100}));
  CHECK(check("request_blocked", 23,
              {.status = TokenStatus::kBlocked, .refused_by = RefusedBy::kRate}));
  CHECK_FALSE(
      check("request_guarded", 23,
            {.status = TokenStatus::kTooManyRequest, .refused_by = RefusedBy::kNamespaceQps}));
  CHECK(check("request_param_ok", 24, {.status = TokenStatus::kOk, .remaining = -1}));
  CHECK(check("request_param_blocked", 24,
              {.status = TokenStatus::kBlocked,
               .refused_by = RefusedBy::kParam,
               .value = Param{ParamType::kString, "key-7"}}));
  CHECK(check("request_param_blocked_before_values", 24,
              {.status = TokenStatus::kBlocked, .refused_by = RefusedBy::kParam}));
}

TEST_CASE("the quick way of reading passes over a value of any type, and waits for all of it") {
  for (const Param& value :
       {Param{ParamType::kString, ""}, Param{ParamType::kString, "key"},
        Param{ParamType::kInt, {"\0\0\0\5", 4}}, Param{ParamType::kInt, {"\xff\xff\xff\x80", 4}},
        Param{ParamType::kInt, {"\0\1\2\3", 4}}, Param{ParamType::kLong, {"\1\2\3\4\5\6\7\x08", 8}},
        Param{ParamType::kFloat, {"\1\2\3\4", 4}},
        Param{ParamType::kDouble, {"\1\2\3\4\5\6\7\x08", 8}},
        Param{ParamType::kBoolean, {"\1", 1}}}) {
    CAPTURE(static_cast<int>(value.type));
    for (const size_t size : {0, 31, 32, 255, 256, 1024}) {
      const std::string text(size, 't');
      const bool is_text = value.type == ParamType::kString;
      const Param param = is_text ? Param{ParamType::kString, text} : value;
      OutputBuffer out;
      EncodeRate(7,
                 {.status = TokenStatus::kBlocked, .refused_by = RefusedBy::kParam, .value = param},
                 &out);
      EncodeAcquire(
          8, {.status = TokenStatus::kBlocked, .refused_by = RefusedBy::kParam, .value = param},
          &out);
      std::string_view input = out.view();
      CommonReply reply;
      for (const uint32_t msgid : {7, 8}) {
        REQUIRE(TakeCommonReply(&input, &reply));
        CHECK(reply.msgid == msgid);
        CHECK(reply.refused_by == RefusedBy::kParam);
      }
      CHECK(input.empty());
      std::string_view cut = out.view().substr(0, out.view().size() - 1);
      REQUIRE(TakeCommonReply(&cut, &reply));
      CHECK_FALSE(TakeCommonReply(&cut, &reply));
    }
  }
}

std::string ErrorOf(const std::string& params) {
  ValueRateParams asked;
  ParamList values;
  RequestError error;
  CHECK_FALSE(DecodeRequestParam(params, &asked, &values, &error));
  return error.message;
}

TEST_CASE("values that no parameter can have are refused") {
  const std::string head = "\x93\x01\x01";
  CHECK(ErrorOf(head + "\xc0") == "request_param: values is missing");
  CHECK(ErrorOf("\x92\x01\x01") == "request_param: values is missing");
  CHECK(ErrorOf(head + "\xa1k") == "request_param: values must be an array, got str");
  CHECK(ErrorOf(head + "\x91\xc0") ==
        "request_param: values.value must be an int, float, bool or str, got nil");
  CHECK(ErrorOf(head + "\x91\x90") ==
        "request_param: values.value must be an int, float, bool or str, got array");
  CHECK(ErrorOf(head + "\x91\xcf" + std::string(8, '\xff')) ==
        "request_param: values.value must fit a signed 64-bit integer");
  const std::string long_key(kParamBytesMax + 1, 'k');
  CHECK(ErrorOf(head + "\x91\xda\x04\x01" + long_key) ==
        "request_param: values.value of 1025 bytes exceeds 1024");
  CHECK(ErrorOf(head + "\x91\xcb\x3f") == "request_param: values.value is cut off");
}

TEST_CASE("a request may have as many values as an array may have elements") {
  const auto params = [](size_t values) {
    std::string bytes = "\x93\x01\x01\xdc";
    AppendBigEndian(&bytes, static_cast<uint16_t>(values));
    return bytes + std::string(values, '\7');
  };
  ValueRateParams asked;
  ParamList values;
  RequestError error;
  REQUIRE(DecodeRequestParam(params(kElementsMax), &asked, &values, &error));
  CHECK(values.values().size() == kElementsMax);
  CHECK(values.values().back() == Int(7).view());
  CHECK(ErrorOf(params(kElementsMax + 1)) == "request_param: values.value is one too many");
}

}  // namespace
}  // namespace nowcalls::wire
