#include "wire/json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/limits.h"
#include "unit/wire/pack.h"
#include "wire/client_messages.h"

namespace nowcalls::wire {
namespace {

using Json = nlohmann::ordered_json;

std::string Why(const std::string& value) {
  const Result<Json> json = JsonFromMessagePack(value);
  return json.ok() ? "" : json.status().message();
}

std::string_view ResultIn(const OutputBuffer& out) {
  const Result<Response> response = DecodeResponse(out.view());
  REQUIRE(response.ok());
  CHECK(response->msgid == 5);
  CHECK_FALSE(response->error.has_value());
  return response->result;
}

TEST_CASE("a document survives the way to MessagePack and back, key order included") {
  const Json document = Json::parse(R"({"z": [1, -1, 2.5, true, false, null], "a": {"k": "v\n"},
      "big": 18446744073709551615, "small": -9223372036854775808, "": [], "none": {}})");
  OutputBuffer out;
  EncodeJsonResult(5, document, &out);
  const Result<Json> back = JsonFromMessagePack(ResultIn(out));
  REQUIRE(back.ok());
  CHECK(back->dump() == document.dump());
}

TEST_CASE("a page is its rows and the next cursor, or nil at the end") {
  OutputBuffer out;
  EncodeJsonPage(5, {Json{{"flowId", 1}}, Json{{"flowId", 2}}}, 77, &out);
  CHECK(JsonFromMessagePack(ResultIn(out))->dump() == R"([[{"flowId":1},{"flowId":2}],77])");
  out.Clear();
  EncodeJsonPage(5, {}, 0, &out);
  CHECK(JsonFromMessagePack(ResultIn(out))->dump() == "[[],null]");
}

TEST_CASE("a number without a fraction is an integer on the wire") {
  OutputBuffer out;
  EncodeJsonResult(5, Json(2.0), &out);
  CHECK(ResultIn(out) == "\x02");
}

TEST_CASE("what JSON cannot say is refused with the reason") {
  CHECK(Why(Bytes("c4026162")) == "cannot be JSON: a value is bin");
  CHECK(Why(Bytes("d40001")) == "cannot be JSON: a value is an extension type");
  CHECK(Why(Bytes("cb7ff0000000000000")) == "cannot be JSON: a float is NaN or infinite");
  CHECK(Why(Bytes("ca7fc00000")) == "cannot be JSON: a float is NaN or infinite");
  CHECK(Why(Bytes("810102")) == "cannot be JSON: a map key is not a str");
  CHECK(Why(Bytes("a1ff")) == "cannot be JSON: a str is not UTF-8: '\\xff'");
  CHECK(Why(Bytes("81a1ff02")) == "cannot be JSON: a str is not UTF-8: '\\xff'");
  CHECK(Why(Bytes("0505")) == "cannot be JSON: stray bytes follow the value");
}

TEST_CASE("lengths that the bytes have not paid for are refused") {
  for (const char* hex : {"", "92", "91", "ddffffffff", "dfffffffff", "dbffffffff", "c6ffffffff",
                          "c9ffffffff00", "a3", "c1"}) {
    CAPTURE(hex);
    CHECK_FALSE(Why(Bytes(hex)).empty());
  }
  CHECK_FALSE(Why(std::string(100'000, '\x91')).empty());
}

TEST_CASE("of a key that comes twice the last counts, in the place of the first") {
  CHECK(JsonFromMessagePack(Bytes("82 a16b 01 a16b 02"))->dump() == R"({"k":2})");
  CHECK(JsonFromMessagePack(Bytes("83 a16b 01 a16a 03 a16b 02"))->dump() == R"({"k":2,"j":3})");
}

TEST_CASE("a map with as many keys as a map may have keeps them all, in their order") {
  Json document;
  for (uint32_t i = 0; i < kElementsMax; ++i) {
    document[std::to_string(i * 7919 % kElementsMax)] = {{"value", i}};
  }
  REQUIRE(document.size() == kElementsMax);
  OutputBuffer out;
  EncodeJsonResult(5, document, &out);
  const Result<Json> back = JsonFromMessagePack(ResultIn(out));
  REQUIRE(back.ok());
  CHECK(back->dump() == document.dump());
}

}  // namespace
}  // namespace nowcalls::wire
