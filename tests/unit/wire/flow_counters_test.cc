// The table of a flow's counters is what PROTOCOL.md says.
#include "wire/flow_counters.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "test_paths.h"
#include "wire/client_messages.h"
#include "wire/json.h"
#include "wire/messages.h"

namespace nowcalls::wire {
namespace {

TEST_CASE("PROTOCOL.md documents every counter of a flow with the words of the table") {
  std::ifstream file(NOWCALLS_SOURCE_DIR "/src/wire/PROTOCOL.md");
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE(file.good());
  std::string wanted = "| key of `counters` | |\n|---|---|\n";
  for (const FlowCounter& counter : FlowCounterTable()) {
    wanted += "| `" + std::string(counter.key) + "` | " + std::string(counter.help) + " |\n";
  }
  const bool documented = text.str().find(wanted) != std::string::npos;
  if (!documented) MESSAGE("the section \"listings\" must have this table:\n" << wanted);
  CHECK(documented);
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
  counters.held_count = 2;
  counters.held_upto = {0, 1, 2, 2, 2, 2, 2};
  counters.waited_count = 1;
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
  CHECK(DecodeFlowRow(RowWithUpTo("\x08"))->counters->held_upto ==
        CountsBelow{1, 2, 3, 4, 5, 6, 7});
  std::string wrong = RowWithUpTo("\x08");
  wrong[wrong.size() - 2] = '\xc3';
  CHECK(DecodeFlowRow(wrong).status().message() ==
        "flow answer: upto.count must be an integer, got bool");
}

}  // namespace
}  // namespace nowcalls::wire
