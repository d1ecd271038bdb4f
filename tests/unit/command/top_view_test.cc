#include "command/top_view.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace nowcalls::command {
namespace {

TopSnapshot OneFlow(const std::string& resource) {
  TopSnapshot snapshot;
  wire::FlowRow flow;
  flow.flow_id = 1001;
  flow.resource = resource;
  flow.level = 10;
  flow.now_calls = 5;
  flow.waiters = 3;
  snapshot.flows.push_back(flow);
  return snapshot;
}

std::string Lines(const std::string& resource, size_t columns) {
  std::string text;
  for (const std::string& line : TopLines(OneFlow(resource), {}, {}, 24, columns)) {
    CHECK(line.size() <= columns);
    text += line + "\n";
  }
  return text;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a screen of 80 columns shows resource names and leaves other columns out") {
  const std::string name = "com.example.Orders:place";
  const std::string narrow = Lines(name, 80);
  CHECK(Has(narrow, "  RESOURCE\n"));
  CHECK(Has(narrow, "5        10       3 "));  // Calls, level and waiting are always there.
  CHECK(Has(narrow, "  " + name + "\n"));
  CHECK_FALSE(Has(narrow, "FULL"));
  const std::string wide = Lines(name, 120);
  CHECK(Has(wide, "  " + name + "\n"));
  for (const char* title : {" FULL ", " OLDEST ", " GRANTED/S ", " REFUSED/S "}) {
    CHECK(Has(wide, title));
  }
}

TEST_CASE("short names leave room for other columns") {
  CHECK(Has(Lines("orders", 90), " FULL "));
  CHECK_FALSE(Has(Lines("orders", 80), " FULL "));
  CHECK(Has(Lines("orders", 80), " GRANTED/S "));
}

TEST_CASE("a long name is cut, and a screen that is too narrow for all shows what fits") {
  CHECK(Has(Lines(std::string(100, 'x'), 80), std::string(24, 'x')));
  CHECK(Has(Lines("orders", 20), "1001"));
}

}  // namespace nowcalls::command
