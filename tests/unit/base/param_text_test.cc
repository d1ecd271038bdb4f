#include "base/param_text.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls {
namespace {

using namespace std::string_literals;

TEST_CASE("each type has its bytes: numbers big-endian in their width") {
  const struct {
    ParamType type;
    const char* text;
    std::string bytes;
  } cases[] = {
      {ParamType::kInt, "5", "\0\0\0\5"s},
      {ParamType::kInt, "-2147483648", "\x80\0\0\0"s},
      {ParamType::kLong, "5", "\0\0\0\0\0\0\0\5"s},
      {ParamType::kLong, "9223372036854775807", "\x7f\xff\xff\xff\xff\xff\xff\xff"s},
      {ParamType::kByte, "-1", "\xff"s},
      {ParamType::kShort, "258", "\1\2"s},
      {ParamType::kDouble, "1.5", "\x3f\xf8\0\0\0\0\0\0"s},
      {ParamType::kFloat, "1.5", "\x3f\xc0\0\0"s},
      {ParamType::kBoolean, "true", "\1"s},
      {ParamType::kBoolean, "false", "\0"s},
      {ParamType::kString, "5", "5"s},
      {ParamType::kString, "", ""s},
      {ParamType::kString, "caf\xc3\xa9", "caf\xc3\xa9"s},
  };
  for (const auto& value : cases) {
    CAPTURE(value.text);
    const auto param = ParamFromText(value.type, value.text);
    REQUIRE(param.has_value());
    CHECK(param->type == value.type);
    CHECK(param->bytes == value.bytes);
    CHECK(ParamText(param->view()) == value.text);
  }
}

TEST_CASE("a number is read back from the shortest text that tells it") {
  for (const char* text : {"0.1", "1e+300", "5e-324", "-0", "0.30000000000000004"}) {
    const auto param = ParamFromText(ParamType::kDouble, text);
    REQUIRE(param.has_value());
    CHECK(ParamFromText(ParamType::kDouble, ParamText(param->view())) == param);
  }
  CHECK(ParamText(ParamFromText(ParamType::kFloat, "0.1")->view()) == "0.1");
  CHECK(ParamFromText(ParamType::kDouble, "0.10") == ParamFromText(ParamType::kDouble, "0.1"));
  CHECK(ParamFromText(ParamType::kInt, "+5") == ParamFromText(ParamType::kInt, "5"));
  CHECK(ParamFromText(ParamType::kBoolean, "TRUE") == ParamFromText(ParamType::kBoolean, "true"));
}

TEST_CASE("a text that is no value of its type is none") {
  const struct {
    ParamType type;
    std::string text;
  } cases[] = {
      {ParamType::kInt, ""},
      {ParamType::kInt, "2147483648"},
      {ParamType::kInt, "1.0"},
      {ParamType::kInt, " 5"},
      {ParamType::kInt, "0x5"},
      {ParamType::kInt, "+-5"},
      {ParamType::kInt, "1,000"},
      {ParamType::kByte, "128"},
      {ParamType::kShort, "32768"},
      {ParamType::kDouble, "NaN"},
      {ParamType::kDouble, "inf"},
      {ParamType::kDouble, "1e400"},
      {ParamType::kDouble, "1.5d"},
      {ParamType::kFloat, "1e39"},
      {ParamType::kDouble, ""},
      {ParamType::kBoolean, "1"},
      {ParamType::kBoolean, "tr_ue"},
      {ParamType::kBoolean, ""},
      {ParamType::kLong, "9223372036854775808"},
      {ParamType::kString, std::string(kParamBytesMax + 1, 'x')},
  };
  for (const auto& value : cases) {
    CAPTURE(value.text);
    CHECK_FALSE(ParamFromText(value.type, value.text).has_value());
  }
  CHECK(ParamFromText(ParamType::kString, std::string(kParamBytesMax, 'x')).has_value());
}

TEST_CASE("an integer is an int if 32 bits hold it, as MessagePack clients send it") {
  for (const int64_t value : {int64_t{0}, int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
    CHECK(IntegerParam(value).type == ParamType::kInt);
    CHECK(ParamText(IntegerParam(value).view()) == std::to_string(value));
  }
  for (const int64_t value : {int64_t{INT32_MAX} + 1, int64_t{INT32_MIN} - 1, INT64_MIN}) {
    CHECK(IntegerParam(value).type == ParamType::kLong);
    CHECK(ParamText(IntegerParam(value).view()) == std::to_string(value));
  }
}

TEST_CASE("types have Java's names") {
  CHECK(ParamTypeName(ParamType::kInt) == "int");
  CHECK(ParamTypeName(ParamType::kBoolean) == "boolean");
  CHECK(ParamTypeName(ParamType::kString) == "string");
}

}  // namespace
}  // namespace nowcalls
