// Numbers and booleans as fastjson's TypeUtils reads them, and what it guesses and we refuse.
#include "core/rules/rule_values.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace nowcalls::core {
namespace {

using nlohmann::json;

std::optional<int64_t> Integer(const char* text) { return IntegerOf(json::parse(text)); }
std::optional<double> Number(const char* text) { return NumberOf(json::parse(text)); }
std::optional<bool> Boolean(const char* text) { return BooleanOf(json::parse(text)); }

TEST_CASE("an integer may be a string, with zeros behind its point and commas at its thousands") {
  CHECK(Integer("7") == 7);
  CHECK(Integer("-7") == -7);
  CHECK(Integer("7.0") == 7);
  CHECK(Integer(R"("7")") == 7);
  CHECK(Integer(R"("+7")") == 7);
  CHECK(Integer(R"("-7")") == -7);
  CHECK(Integer(R"("007")") == 7);
  CHECK(Integer(R"("7.")") == 7);
  CHECK(Integer(R"("7.000")") == 7);
  CHECK(Integer(R"(" 7 ")") == 7);
  CHECK(Integer(R"("1,000")") == 1000);
  CHECK(Integer(R"("-12,345,678.0")") == -12'345'678);
  CHECK(Integer(R"("9223372036854775807")") == INT64_MAX);
}

TEST_CASE("what is no whole number of 64 bits is no integer") {
  for (const char* text : {R"("")",
                           R"(" ")",
                           R"("x")",
                           R"("7x")",
                           R"("1.5")",
                           R"("1e3")",
                           R"("--7")",
                           R"("+-7")",
                           R"("1,5")",
                           R"(",5")",
                           R"("1,")",
                           R"("1,0000")",
                           R"("1000,000")",
                           R"("1,00.0")",
                           R"("1.0,000")",
                           R"("1,000.0,000")",
                           R"("7 8")",
                           R"(".")",
                           R"("9223372036854775808")",
                           "9223372036854775808",
                           "1.5",
                           "1e300",
                           "true",
                           "[]",
                           "{}",
                           "null"}) {
    CAPTURE(text);
    CHECK_FALSE(Integer(text).has_value());
  }
}

TEST_CASE("a number may be a string, with a fraction or an exponent") {
  CHECK(Number("2.5") == 2.5);
  CHECK(Number("-3") == -3);
  CHECK(Number(R"("2.5")") == 2.5);
  CHECK(Number(R"("20.0")") == 20);
  CHECK(Number(R"("1e3")") == 1000);
  CHECK(Number(R"(".5")") == 0.5);
  CHECK(Number(R"(" 1,234.5 ")") == 1234.5);
  CHECK(Number(R"("-0.5")") == -0.5);
}

TEST_CASE("what is no finite decimal number is no number") {
  for (const char* text :
       {R"("")", R"("NaN")", R"("Infinity")", R"("inf")", R"("-nan")", R"("0x10")", R"("1d")",
        R"("1f")", R"("1e400")", R"("1,5")", R"("1.234,5")", R"("1.2,345")", R"("1e1,000")",
        R"("ten")", "true", "[]", "null"}) {
    CAPTURE(text);
    CHECK_FALSE(Number(text).has_value());
  }
}

TEST_CASE("a boolean may be 0, 1 or one of the words that Sentinel's parser knows") {
  for (const char* text : {"true", "1", "1.0", R"("true")", R"("TRUE")", R"("True")", R"("1")",
                           R"("Y")", R"("y")", R"("T")"}) {
    CAPTURE(text);
    CHECK(Boolean(text) == true);
  }
  for (const char* text :
       {"false", "0", "0.0", R"("false")", R"("False")", R"("0")", R"("F")", R"("f")", R"("N")"}) {
    CAPTURE(text);
    CHECK(Boolean(text) == false);
  }
}

TEST_CASE("what is neither true nor false is no boolean") {
  for (const char* text : {"2", "-1", "0.5", R"("")", R"("yes")", R"("no")", R"("on")", R"("t")",
                           R"("n")", R"("tru-e")", R"("true ")", R"("2")", "[]", "{}", "null"}) {
    CAPTURE(text);
    CHECK_FALSE(Boolean(text).has_value());
  }
}

TEST_CASE("null, the word null and an empty string count as left out") {
  for (const char* text : {"null", R"("")", R"("null")", R"("NULL")"}) {
    CHECK(IsUnset(json::parse(text)));
  }
  for (const char* text : {"0", "false", R"(" ")", R"("Null")", "[]", "{}"}) {
    CHECK_FALSE(IsUnset(json::parse(text)));
  }
}

}  // namespace
}  // namespace nowcalls::core
