#include "support/json.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace nowcalls::testing {
namespace {

TEST_CASE("a JSON text and the value of a test that says the same are equal") {
  const Json value = {
      {"name", "a"}, {"numbers", {1, -2, 2.5, true, nullptr}}, {"none", Json::object()}};
  CHECK(Json::parse(R"({"none": {}, "numbers": [1, -2, 2.5, true, null], "name": "a"})") == value);
  CHECK(value.dump() == R"({"name":"a","none":{},"numbers":[1,-2,2.5,true,null]})");
  CHECK(Json::parse(value.dump()) == value);
  CHECK_FALSE(Json::parse(R"({"name": "a"})") == value);
}

TEST_CASE("a list is an object if it holds nothing but names with values") {
  CHECK(Json{{"a", 1}, {"b", 2}}.is_object());
  CHECK(Json{{"a", 1}, {2, 2}}.is_array());
  CHECK(Json{"a", 1}.is_array());
  CHECK(Json::array({{"a", 1}}).is_array());
}

TEST_CASE("numbers are equal if their values are") {
  CHECK(Json(1) == Json(1.0));
  CHECK(Json(int64_t{7}) == Json(uint64_t{7}));
  CHECK_FALSE(Json(-1) == Json(UINT64_MAX));
  CHECK_FALSE(Json(1) == Json("1"));
  CHECK_FALSE(Json(0) == Json(false));
  CHECK(Json(-1) < Json(0));
  CHECK(Json(2.5) > Json(2));
}

TEST_CASE("a value of another kind, out of range or missing is an error") {
  const Json value = Json::parse(R"({"small": 300, "below": -1, "text": "t", "list": [1]})");
  CHECK(value["small"].get<uint16_t>() == 300);
  CHECK(value["below"].get<int8_t>() == -1);
  CHECK_THROWS_AS(value["small"].get<uint8_t>(), std::runtime_error);
  CHECK_THROWS_AS(value["below"].get<uint64_t>(), std::runtime_error);
  CHECK_THROWS_AS(value["text"].get<int>(), std::runtime_error);
  CHECK_THROWS_AS(value["text"].begin(), std::runtime_error);
  CHECK_THROWS_AS(value["absent"], std::runtime_error);
  CHECK_THROWS_AS(value["list"][1], std::runtime_error);
  CHECK_THROWS_AS(static_cast<void>(Json("a") < Json(1)), std::runtime_error);
  CHECK_THROWS_AS(Json::parse("{} {}"), std::runtime_error);
}

}  // namespace
}  // namespace nowcalls::testing
