// Flows by name in requests: every method that has a flow_id takes a str instead.
#include "wire/flow_field.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "unit/wire/pack.h"
#include "wire/admin_messages.h"
#include "wire/client_messages.h"
#include "wire/param_list.h"

namespace nowcalls::wire {
namespace {

// "NUMBER" or "'NAME'" of decoded params, else the error.
template <typename Params>
std::string FlowOf(bool decoded, const Params& params, const RequestError& error) {
  if (!decoded) return error.message;
  if constexpr (requires { params.flow_id.has_value(); }) {
    if (params.flow_id.has_value() == !params.flow_name.empty()) return "both or none";
    if (params.flow_id.has_value()) return std::to_string(*params.flow_id);
  } else if (params.flow_name.empty()) {
    return std::to_string(params.flow_id);
  } else if (params.flow_id != 0) {
    return "both";
  }
  return "'" + std::string(params.flow_name) + "'";
}

template <typename Params>
std::string Decoded(bool (*decode)(std::string_view, Params*, RequestError*),
                    const std::string& bytes) {
  Params params;
  RequestError error;
  const bool decoded = decode(bytes, &params, &error);
  return FlowOf(decoded, params, error);
}

// The flow of each method's request, with `flow` in its place.
template <typename T>
std::vector<std::string> OfEachMethod(const T& flow) {
  ParamList values;
  ValueRateParams by_value;
  RequestError error;
  // What is decoded has views of the bytes.
  const std::string value_bytes = PackArray(flow, 1, std::vector<int>{5});
  const bool decoded = DecodeRequestParam(value_bytes, &by_value, &values, &error);
  AcquireAllParams all;
  RequestError of_all;
  const std::string all_bytes = PackArray(Raw{PackArray(Raw{PackArray(flow, 1)})});
  const bool all_decoded = DecodeAcquireAll(all_bytes, &all, &of_all);
  return {Decoded(DecodeAcquire, PackArray(flow, 1)),
          Decoded(DecodeRequest, PackArray(flow, 1)),
          FlowOf(decoded, by_value, error),
          all_decoded ? FlowOf(true, all.items.at(0), of_all) : of_all.message,
          Decoded(DecodeFlow, PackArray(flow)),
          Decoded(DecodeParams, PackArray(flow)),
          Decoded(DecodeWaiters, PackArray(PackMap("flow_id", flow))),
          Decoded(DecodeTokens, PackArray(PackMap("flow_id", flow))),
          Decoded(DecodeReclaimFlow, PackArray(flow, "reason")),
          Decoded(DecodePurge, PackArray(flow)),
          Decoded(DecodeDrain, PackArray(flow, true))};
}

TEST_CASE("a flow_id is an integer or a str in every method that has one") {
  for (const std::string& flow : OfEachMethod(std::string("checkout"))) CHECK(flow == "'checkout'");
  for (const std::string& flow : OfEachMethod(7)) CHECK(flow == "7");
  // Digits in a str are a name like any other.
  for (const std::string& flow : OfEachMethod(std::string("7"))) CHECK(flow == "'7'");
  for (const std::string& flow : OfEachMethod(std::string(1024, 'x'))) CHECK(flow.size() == 1026);
}

TEST_CASE("a name is checked as the resource of a rule is") {
  for (const std::string& error : OfEachMethod(std::string())) {
    CHECK(error.ends_with("flow_id must be 1..1024 bytes, got 0"));
  }
  for (const std::string& error : OfEachMethod(std::string(1025, 'x'))) {
    CHECK(error.ends_with("flow_id must be 1..1024 bytes, got 1025"));
  }
  for (const std::string& name : {std::string("a\nb"), std::string("\xff"), std::string(1, '\0')}) {
    for (const std::string& error : OfEachMethod(name)) {
      CHECK(error.find("flow_id must") != std::string::npos);
    }
  }
  for (const std::string& error : OfEachMethod(true)) {
    CHECK(error.ends_with("flow_id must be an integer or a str, got bool"));
  }
}

TEST_CASE("of two flow_ids in a filter the last counts, whatever they are") {
  const std::string pair =
      "\xa7"
      "flow_id";
  const std::string number_last = "\x91\x82" + pair +
                                  "\xa1"
                                  "a" +
                                  pair + "\x07";
  const std::string name_last = "\x91\x82" + pair + "\x07" + pair +
                                "\xa1"
                                "a";
  CHECK(Decoded(DecodeTokens, number_last) == "7");
  CHECK(Decoded(DecodeTokens, name_last) == "'a'");
  CHECK(Decoded(DecodeWaiters, number_last) == "7");
  CHECK(Decoded(DecodeWaiters, name_last) == "'a'");
}

TEST_CASE("an acquire_all may not have a name twice") {
  const auto refusal = [](const std::string& items) {
    AcquireAllParams params;
    RequestError error;
    return DecodeAcquireAll(PackArray(Raw{items}), &params, &error) ? "" : error.message;
  };
  const Raw a{PackArray("a", 1)};
  CHECK(refusal(PackArray(a, Raw{PackArray("b", 1)}, Raw{PackArray(7, 1)})) == "");
  CHECK(refusal(PackArray(a, Raw{PackArray("a", 1, 5)}, Raw{PackArray("a", 1, Nil(), 1)})) == "");
  CHECK(refusal(PackArray(a, Raw{PackArray(7, 1)}, a)) ==
        "acquire_all: items must not hold flow_id 'a' with the same param twice");
}

// The parameters of a request that was encoded.
std::string ParamsOf(const std::function<void(OutputBuffer*)>& encode) {
  OutputBuffer out;
  encode(&out);
  Envelope envelope;
  RequestError error;
  REQUIRE(DecodeEnvelope(out.view(), &envelope, &error));
  return std::string(envelope.params);
}

TEST_CASE("clients send a name where they would send the number") {
  const auto acquire = [](const AcquireParams& params) {
    return ParamsOf([&](OutputBuffer* out) { EncodeAcquireRequest(1, params, out); });
  };
  CHECK(acquire({.count = 2, .flow_name = "a"}) == PackArray("a", 2));
  CHECK(acquire({.count = 2, .request_id = 5, .flow_name = "a"}) ==
        PackArray("a", 2, PackMap("request_id", 5)));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodeAcquireAllRequest(1, {.items = {{.count = 1, .flow_name = "a"}}}, out);
        }) == PackArray(Raw{PackArray(Raw{PackArray("a", 1)})}));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodeRateRequest(1, {.count = 3, .flow_name = "a"}, out);
        }) == PackArray("a", 3));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodeValueRateRequest(1, {.count = 3, .flow_name = "a"}, {}, out);
        }) == PackArray("a", 3, std::vector<int>{}));
}

TEST_CASE("administrators send a name where they would send the number") {
  CHECK(ParamsOf([](OutputBuffer* out) { EncodeFlowRequest(1, {.flow_name = "a"}, out); }) ==
        PackArray("a"));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodeParamsRequest(1, {.limit = 5, .flow_name = "a"}, out);
        }) == PackArray("a", 5));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodeWaitersRequest(1, {.limit = 5, .flow_name = "a"}, out);
        }) == PackArray(PackMap("flow_id", "a"), 5));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodeTokensRequest(1, {.page = {.limit = 5}, .flow_name = "a"}, out);
        }) == PackArray(PackMap("flow_id", "a"), 5, Nil()));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodeReclaimFlowRequest(1, {.reason = "r", .limit = 5, .flow_name = "a"}, out);
        }) == PackArray("a", "r", 5));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodePurgeRequest(1, {.limit = 5, .flow_name = "a"}, out);
        }) == PackArray("a", 5));
  CHECK(ParamsOf([](OutputBuffer* out) {
          EncodeDrainRequest(1, {.on = true, .flow_name = "a"}, out);
        }) == PackArray("a", true));
}

}  // namespace
}  // namespace nowcalls::wire
