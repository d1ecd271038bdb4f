// The table of figures: what info sends, and what PROTOCOL.md says of it.
#include "engine/figures.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "support/engine_harness.h"
#include "test_paths.h"
#include "wire/json.h"

namespace nowcalls::engine {
namespace {

std::string_view GroupOf(const Figure& figure) {
  const size_t dot = figure.name.find('.');
  return dot == std::string_view::npos ? "" : figure.name.substr(0, dot);
}

// The table as PROTOCOL.md has it: a table for each group, the figures outside of groups first.
std::string Markdown() {
  std::string text;
  std::string_view group = "none yet";
  for (const Figure& figure : Figures()) {
    if (GroupOf(figure) != group) {
      group = GroupOf(figure);
      const std::string title = group.empty() ? "`info`" : "`" + std::string(group) + "`";
      text +=
          (text.empty() ? "" : "\n") + ("| " + title) + " | kind | unit | |\n|---|---|---|---|\n";
    }
    const std::string_view name =
        group.empty() ? figure.name : figure.name.substr(group.size() + 1);
    text += "| `" + std::string(name) + "` | " + std::string(wire::FigureKindName(figure.kind)) +
            " | " + std::string(figure.unit) + (figure.unit.empty() ? "| " : " | ") +
            std::string(figure.help) + " |\n";
  }
  return text;
}

std::string FiguresText() {
  std::ifstream file(NOWCALLS_SOURCE_DIR "/src/wire/PROTOCOL.md");
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE(file.good());
  return text.str();
}

TEST_CASE("PROTOCOL.md documents every figure with the words of the table") {
  const std::string wanted = Markdown();
  const bool documented = FiguresText().find(wanted) != std::string::npos;
  if (!documented) MESSAGE("the section \"info\" must have these tables:\n" << wanted);
  CHECK(documented);
}

TEST_CASE("each figure has a name of its own, and the figures of a group follow one another") {
  std::set<std::string_view> names;
  std::set<std::string_view> groups;
  std::string_view group;
  for (const Figure& figure : Figures()) {
    CAPTURE(figure.name);
    CHECK(names.insert(figure.name).second);
    CHECK_FALSE(figure.help.empty());
    if (GroupOf(figure) == group) continue;
    group = GroupOf(figure);
    CHECK(groups.insert(group).second);
  }
}

// Users' scripts find figures by these paths. A new one may be added anywhere.
constexpr std::string_view kDocument =
    R"({"version":"9.9.9","uptime_ms":0,"ledger":{"data_dir":"/data\\xff",)"
    R"("durability":"sync","format":4,"ledger_ms":LEDGER_MS,"batches":BATCHES,)"
    R"("next_fence":NEXT_FENCE,"disk_free_bytes":null,"disk_low":false},)"
    R"("counts":{"connections":1,"connections_by_protocol":{"messagepack_rpc":1,"sentinel":0},)"
    R"("unidentified":0,"sessions":1,"namespaces":1,"rules":1,"flows":1,"tokens":1,)"
    R"("keys":0,"key_bytes":KEY_BYTES,)"
    R"("waiters":0,"waiter_bytes":0,"mass_expiries":0,"mass_sessions":0,"now_calls":1,"history":0,)"
    R"("oldest_issued_ms":LEDGER_MS,"token_table_bytes":TABLE_BYTES,)"
    R"("param_values":0,"param_value_bytes":0},)"
    R"("totals":{"granted":1,"refused":{"level":0,)";

TEST_CASE("info sends the figures in the order of the table, as maps within a map") {
  testing::EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Take(c);
  const auto text = wire::JsonTextFromMessagePack(
      h.Call(c, testing::PlainRequest(5, wire::Method::kInfo)).result);
  REQUIRE(text.status().ToString() == "ok");
  std::string expected(kDocument);
  const auto put = [&expected](std::string_view word, const std::string& value) {
    for (size_t at = expected.find(word); at != std::string::npos; at = expected.find(word)) {
      expected.replace(at, word.size(), value);
    }
  };
  put("BATCHES", std::to_string(h.core().books().batch_number()));
  put("NEXT_FENCE", std::to_string(h.core().books().next_fence()));
  put("LEDGER_MS", std::to_string(h.now().ms));
  put("KEY_BYTES", std::to_string(h.core().flows().keys().MemoryBytes()));
  put("TABLE_BYTES", std::to_string(h.core().books().tokens().MemoryBytes()));
  CHECK(text->substr(0, expected.size()) == expected);
  size_t at = 0;
  for (const Figure& figure : Figures()) {
    CAPTURE(figure.name);
    const std::string_view group = GroupOf(figure);
    const std::string_view key = group.empty() ? figure.name : figure.name.substr(group.size() + 1);
    at = text->find('"' + std::string(key) + "\":", at);
    REQUIRE(at != std::string::npos);
    const bool by_word = (*text)[at + key.size() + 3] == '{';
    CHECK(by_word == !figure.label.empty());
  }
}

TEST_CASE("what is told of the figures is the same without their values") {
  REQUIRE(FigureInfos().size() == Figures().size());
  for (size_t i = 0; i < Figures().size(); ++i) {
    CHECK(FigureInfos()[i].name == Figures()[i].name);
    CHECK(FigureInfos()[i].label == Figures()[i].label);
  }
}

// The text of info from this key on.
std::string InfoFrom(testing::EngineHarness* h, ConnectionId c, std::string_view key) {
  const auto text = wire::JsonTextFromMessagePack(
      h->Call(c, testing::PlainRequest(5, wire::Method::kInfo)).result);
  REQUIRE(text.status().ToString() == "ok");
  const size_t at = text->find("\"" + std::string(key) + "\":");
  REQUIRE(at != std::string::npos);
  return text->substr(at);
}

TEST_CASE("requests are counted by method, once each, also those that do not exist") {
  testing::EngineHarness h;
  const ConnectionId c = h.Connect();
  for (int i = 0; i < 3; ++i) h.Take(c);
  using std::string_view_literals::operator""sv;
  h.Send(c,
         "\x94\x00\x07\xa4"
         "nope\x90"sv);
  h.Settle();
  CHECK(h.TakeReplies(c).size() == 1);
  CHECK(
      InfoFrom(&h, c, "requests").starts_with(R"("requests":{"acquire":3,"release":0,"keep":0,)"));
  CHECK(InfoFrom(&h, c, "info").starts_with(R"("info":2,)"));
  CHECK(InfoFrom(&h, c, "handover").starts_with(R"("handover":0,"unknown":1})"));
}

TEST_CASE("scans of the sweep are counted, and what they found") {
  testing::EngineHarness h;
  const ConnectionId c = h.Connect();
  CHECK(InfoFrom(&h, c, "sweep").starts_with(R"("sweep":{"scans":0,"keys":0})"));
  h.Take(c);
  h.Take(c);
  h.Pass(10'000);
  const std::string sweep = InfoFrom(&h, c, "sweep");
  CHECK_FALSE(sweep.starts_with(R"("sweep":{"scans":0,)"));
  CHECK(sweep.substr(0, sweep.find('}')).ends_with(R"(,"keys":2)"));
}

}  // namespace
}  // namespace nowcalls::engine
