// The figures of a flow are what PROTOCOL.md says, and each view has them in a fixed order.
#include "wire/flow_figures.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>

#include "test_paths.h"
#include "wire/client_messages.h"
#include "wire/json.h"
#include "wire/messages.h"

namespace nowcalls::wire {
namespace {

// The table of PROTOCOL.md for a map within the row of a flow.
std::string TableOf(FlowMap map, std::string_view key) {
  std::string table = "| key of `" + std::string(key) + "` | |\n|---|---|\n";
  for (const FlowFigure& figure : FlowFigures()) {
    if (figure.map != map || figure.help.empty()) continue;
    table += "| `" + std::string(figure.name) + "` | " + std::string(figure.help) + " |\n";
  }
  return table + "\n";
}

TEST_CASE("PROTOCOL.md documents every figure of a flow's maps with the words of the table") {
  std::ifstream file(NOWCALLS_SOURCE_DIR "/src/wire/PROTOCOL.md");
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE(file.good());
  for (const std::string& wanted :
       {TableOf(FlowMap::kCounters, "counters"), TableOf(FlowMap::kRate, "rate")}) {
    const bool documented = text.str().find(wanted) != std::string::npos;
    if (!documented) MESSAGE("the section \"listings\" must have this table:\n" << wanted);
    CHECK(documented);
  }
}

// Places are taken once and without gaps: a new figure takes the next one.
void CheckPlaces(std::string_view view, uint8_t (*place)(const FlowFigure& figure)) {
  size_t next = 1;
  for (const FlowFigure* figure : ByPlace(place)) {
    CAPTURE(std::string(view));
    CAPTURE(std::string(figure->name));
    CHECK(size_t{place(*figure)} == next++);
  }
  CHECK(next > 1);
}

TEST_CASE("the places of each view follow one another") {
  CheckPlaces("columns", [](const FlowFigure& f) { return f.column.place; });
  CheckPlaces("metrics", [](const FlowFigure& f) { return f.metric.place; });
  CheckPlaces("counters", [](const FlowFigure& f) {
    return f.map == FlowMap::kCounters ? f.json : uint8_t{0};
  });
  CheckPlaces("rate",
              [](const FlowFigure& f) { return f.map == FlowMap::kRate ? f.json : uint8_t{0}; });
}

TEST_CASE("every number of a flow has a column, and every column a name of its own") {
  std::set<std::string_view> names;
  for (const FlowFigure* figure : ByPlace([](const FlowFigure& f) { return f.column.place; })) {
    CAPTURE(std::string(figure->name));
    CHECK(names.insert(figure->column.name).second);
  }
  FlowRow row;
  row.counters.emplace();
  row.rate.emplace();
  for (const FlowFigure& figure : FlowFigures()) {
    CAPTURE(std::string(figure.name));
    if (std::holds_alternative<uint64_t>(figure.get(row))) CHECK(figure.column.place > 0);
  }
}

std::string CountersAsSent(const FlowCounters& counters) {
  OutputBuffer out;
  FlowRow row;
  row.counters = counters;
  EncodeFlow(1, row, &out);
  const Result<Response> response = DecodeResponse(out.view());
  REQUIRE(response.ok());
  CHECK(DecodeFlowRow(response->result)->counters == counters);
  const std::string text = *JsonTextFromMessagePack(response->result);
  return text.substr(text.find("\"held_ms\":"));
}

TEST_CASE("a flow that has counted no times sends none") {
  CHECK(CountersAsSent({}) == R"("held_ms":{"p50":0,"p90":0,"p99":0,"longest":0}}})");
  FlowCounters counters;
  counters.held.count = 2;
  counters.held.upto = {0, 1, 2, 2, 2, 2, 2};
  counters.waited.count = 1;
  CHECK(CountersAsSent(counters) ==
        R"("held_ms":{"p50":0,"p90":0,"p99":0,"longest":0,"sum":0,"count":2,)"
        R"("upto":[0,1,2,2,2,2,2]},)"
        R"("waited_ms":{"p50":0,"p90":0,"p99":0,"sum":0,"count":1,"upto":[0,0,0,0,0,0,0]}}})");
}

// [{"flow_id": 5, "counters": {"held_ms": {"upto": [1, .. 8]}}}], or with a word as last count.
std::string RowWithUpTo(std::string_view last) {
  return std::string(
             "\x82\xa7"
             "flow_id\x05\xa8"
             "counters\x81\xa7"
             "held_ms\x81\xa4"
             "upto\x98")
      .append("\x01\x02\x03\x04\x05\x06\x07")
      .append(last);
}

TEST_CASE("counts for bounds of a later server are skipped, and what is no count is refused") {
  CHECK(DecodeFlowRow(RowWithUpTo("\x08"))->counters->held.upto ==
        CountsBelow{1, 2, 3, 4, 5, 6, 7});
  std::string wrong = RowWithUpTo("\x08");
  wrong[wrong.size() - 2] = '\xc3';
  CHECK(DecodeFlowRow(wrong).status().message() ==
        "flow answer: upto.count must be an integer, got bool");
}

}  // namespace
}  // namespace nowcalls::wire
