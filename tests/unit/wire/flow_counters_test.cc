// The table of a flow's counters is what PROTOCOL.md says.
#include "wire/flow_counters.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "test_paths.h"

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

}  // namespace
}  // namespace nowcalls::wire
