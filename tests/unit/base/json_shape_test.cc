#include "base/json_shape.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls {
namespace {

constexpr JsonShape kMuch{.depth = 100, .values = 1000};

TEST_CASE("the shape of a JSON text counts levels and values, and nothing within strings") {
  const auto shape = [](std::string_view text) {
    const JsonShape found = ShapeOfJson(text, kMuch);
    return std::to_string(found.depth) + " " + std::to_string(found.values);
  };
  CHECK(shape("") == "0 1");
  CHECK(shape("1") == "0 1");
  CHECK(shape("[]") == "1 2");
  CHECK(shape("[1,2]") == "1 3");
  CHECK(shape(R"({"a":[{}],"b":[]})") == "3 6");
  CHECK(shape(R"(["[[,,","\"[,",{}])") == "2 5");
  CHECK(shape(R"("[)") == "0 1");
  CHECK(shape(R"("\)") == "0 1");
}

TEST_CASE("a text that exceeds the bounds is looked at no further") {
  const JsonShape max{.depth = 3, .values = 10};
  CHECK(ShapeOfJson(std::string(1'000'000, '['), max).depth == 4);
  CHECK(ShapeOfJson(std::string(1'000'000, ','), max).values == 11);
}

TEST_CASE("the end of a JSON string is behind its quote, wherever backslashes are") {
  CHECK(EndOfJsonString(R"("")", 0) == 2);
  CHECK(EndOfJsonString(R"(x"a\"b"y)", 1) == 7);
  CHECK(EndOfJsonString(R"("a\\"b)", 0) == 5);
  CHECK(EndOfJsonString(R"("a)", 0) == 2);
  CHECK(EndOfJsonString(R"("\)", 0) == 2);
}

}  // namespace
}  // namespace nowcalls
