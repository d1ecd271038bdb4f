// Figures as maps within a map.
#include "wire/figures.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "wire/client_messages.h"
#include "wire/json.h"

namespace nowcalls::wire {
namespace {

std::string JsonOf(const std::vector<FigureRow>& rows) {
  OutputBuffer out;
  EncodeFigures(7, rows, &out);
  const auto response = DecodeResponse(out.view());
  REQUIRE(response.status().ToString() == "ok");
  CHECK(response->msgid == 7);
  const auto json = JsonTextFromMessagePack(response->result);
  REQUIRE(json.status().ToString() == "ok");
  return *json;
}

TEST_CASE("rows of a group are one map, and rows outside of groups stand beside it") {
  CHECK(JsonOf({}) == "{}");
  CHECK(JsonOf({{"version", std::string("1")},
                {"a.b", uint64_t{1}},
                {"a.c", uint64_t{2}},
                {"b.c", uint64_t{3}},
                {"last", true}}) == R"({"version":"1","a":{"b":1,"c":2},"b":{"c":3},"last":true})");
}

TEST_CASE("a figure is unknown, a flag, a number, a text, or numbers by word") {
  CHECK(JsonOf({{"none", {}},
                {"flag", false},
                {"less", int64_t{-1}},
                {"most", UINT64_MAX},
                {"half", 0.5},
                {"text", std::string("\"")},
                {"words", WordCounts{{"level", 3}, {"draining", 0}}}}) ==
        R"({"none":null,"flag":false,"less":-1,"most":18446744073709551615,"half":0.5,)"
        R"("text":"\"","words":{"level":3,"draining":0}})");
}

}  // namespace
}  // namespace nowcalls::wire
