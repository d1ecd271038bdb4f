#include "base/shown_text.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "base/param_text.h"

namespace nowcalls {
namespace {

TEST_CASE("nothing that a terminal obeys is shown as it is") {
  CHECK(ShownText("a\x1b]52;c;eA==\x07z") == "a\\x1b]52;c;eA==\\x07z");
  CHECK(ShownText("a\r\nb\tc\x7f") == "a\\x0d\\x0ab\\x09c\\x7f");
  CHECK(ShownText("\u009b31mx\u0085") == "\\xc2\\x9b31mx\\xc2\\x85");
  CHECK(ShownText("\xff caf\u00e9 \xc3") == "\\xff caf\u00e9 \\xc3");
  CHECK(ShownText("").empty());
}

TEST_CASE("nothing that a person does not see, or takes for a blank, is shown as it is") {
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  CHECK(ShownText("a\u202eb") == "a\\u{202e}b");
  CHECK(ShownText("a\u2028b\u2029c") == "a\\u{2028}b\\u{2029}c");
  CHECK(ShownText("\u2800") == "\\u{2800}");
  CHECK(ShownText("a\ufff9b\ufffac\ufffbd") == "a\\u{fff9}b\\u{fffa}c\\u{fffb}d");
  CHECK(ShownText("a\u00a0b\u3000c\u2003d") == "a\\u{a0}b\\u{3000}c\\u{2003}d");
  CHECK(ShownText("\U0001d159\uffff\U0010fffe") == "\\u{1d159}\\u{ffff}\\u{10fffe}");
  CHECK(ShownText("a b \u65e5\u672c \u0627\u0660 \U0001f600 \u2026") ==
        "a b \u65e5\u672c \u0627\u0660 \U0001f600 \u2026");
}

TEST_CASE("JSON that is shown is the same JSON") {
  const std::string quoted = "{\n  \"a\": \"\\u001b \\\\ \u00e9\"\n}\n";
  CHECK(ShownJson(quoted) == quoted);
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  CHECK(ShownJson("\"\u202e\u009b\x7f\"") == "\"\\u202e\\u009b\\u007f\"");
  CHECK(ShownJson("\"\U000e0041\"") == "\"\\udb40\\udc41\"");
}

ParamValue Of(ParamType type, const std::string& text) {
  const auto value = ParamFromText(type, text);
  REQUIRE(value.has_value());
  return *value;
}

TEST_CASE("no two values of different types look alike") {
  CHECK(ShownParam(Of(ParamType::kInt, "7").view()) == "7");
  CHECK(ShownParam(Of(ParamType::kDouble, "7").view()) == "7.0");
  CHECK(ShownParam(Of(ParamType::kDouble, "-7.25").view()) == "-7.25");
  CHECK(ShownParam(Of(ParamType::kDouble, "1e22").view()) == "1e+22");
  CHECK(ShownParam(Of(ParamType::kString, "7").view()) == "\"7\"");
  CHECK(ShownParam(Of(ParamType::kLong, "7").view()) == "long 7");
  CHECK(ShownParam(Of(ParamType::kFloat, "7").view()) == "float 7");
  CHECK(ShownParam(Of(ParamType::kBoolean, "true").view()) == "true");
  CHECK(ShownParam(Of(ParamType::kString, "true").view()) == "\"true\"");
  CHECK(ShownParam(Of(ParamType::kString, "7.0").view()) == "\"7.0\"");
  CHECK(ShownParam(Of(ParamType::kString, "long 7").view()) == "\"long 7\"");
  CHECK(ShownParam(Of(ParamType::kString, "\"7\"").view()) == "\"\"7\"\"");
  CHECK(ShownParam(Of(ParamType::kString, "").view()) == "\"\"");
  std::set<std::string> shown;
  for (int number = 0; number < kParamTypeCount; ++number) {
    const auto type = static_cast<ParamType>(number);
    const bool flag = type == ParamType::kBoolean;
    CHECK(shown.insert(ShownParam(Of(type, flag ? "true" : "1").view())).second);
  }
}

TEST_CASE("a string that is no other value is shown without quotes, and escaped") {
  CHECK(ShownParam(Of(ParamType::kString, "user-7").view()) == "user-7");
  CHECK(ShownParam(Of(ParamType::kString, "longer 7").view()) == "longer 7");
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  CHECK(ShownParam(Of(ParamType::kString, "a\x1b[2J\u202e").view()) == "a\\x1b[2J\\u{202e}");
}

}  // namespace
}  // namespace nowcalls
