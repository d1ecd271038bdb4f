// What a load would change: rules added, removed, changed field by field, skipped and in conflict.
#include "admin/rules_diff.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "admin/commands.h"
#include "admin/namespace_columns.h"
#include "admin/offline_source.h"
#include "unit/admin/ledger_builder.h"
#include "unit/admin/string_output.h"

namespace nowcalls::admin {
namespace {

const ClockSample kDiffMachine{.boottime_ms = 180'500, .wall_ms = 0, .boot_id = {1}};

core::ParsedRules FileOf(const std::vector<core::Rule>& rules, const std::string& more = "") {
  std::string text;
  for (const core::Rule& rule : rules) text += (text.empty() ? "" : ",") + core::RuleToJson(rule);
  text = "[" + text + (text.empty() || more.empty() ? "" : ",") + more + "]";
  const auto parsed = core::ParseRules(text);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().ToString());
  return *parsed;
}

// "changed 1 count 10 20"
std::vector<std::string> Lines(const RulesDiff& diff) {
  std::vector<std::string> lines;
  for (const RuleChange& change : diff.changes) {
    std::string line(change.change);
    if (change.flow_id.has_value()) line += " " + std::to_string(*change.flow_id);
    if (change.field.has_value()) {
      line += " " + *change.field + " " + change.before.value_or("-") + " " +
              change.after.value_or("-");
    }
    if (!change.note.empty()) line += ": " + change.note;
    lines.push_back(line);
  }
  return lines;
}
using Expected = std::vector<std::string>;

TEST_CASE("a set that is in force differs in nothing") {
  const RulesDiff diff =
      DiffRules("shop", {{"shop", GlobalRule(1, 10)}, {"bank", GlobalRule(2, 3)}},
                FileOf({GlobalRule(1, 10)}));
  CHECK(diff.same());
  CHECK(diff.changes.empty());
  CHECK(diff.Summary() == "0 added, 0 removed, 0 changed, 1 unchanged, 0 skipped");
}

TEST_CASE("two rules of one flow id differ each from its own, and have owners of their own") {
  core::Rule by_value = GlobalRule(1, 4);
  by_value.param.emplace();
  by_value.max_queueing_time_ms = 0;
  core::Rule more = by_value;
  more.count = 5;
  RulesDiff diff = DiffRules("shop", {{"shop", GlobalRule(1, 10)}, {"shop", by_value}},
                             FileOf({GlobalRule(1, 10), more}));
  CHECK(diff.unchanged == 1);
  CHECK(Lines(diff) == Expected{"changed 1 count 4 5"});
  CHECK(diff.changes[0].kind == FlowKind::kValue);
  diff = DiffRules("shop", {{"shop", GlobalRule(1, 10)}, {"bank", by_value}},
                   FileOf({GlobalRule(1, 10)}));
  CHECK(diff.same());
  diff = DiffRules("shop", {{"bank", by_value}}, FileOf({GlobalRule(1, 10), by_value}));
  CHECK(Lines(diff) == Expected{"added 1", "conflict 1: the flowId belongs to namespace bank"});
}

TEST_CASE("rules added, removed and changed are told in the order of their flow ids") {
  core::Rule changed = GlobalRule(2, 12.25);
  changed.resource = "other";
  changed.resource_timeout_ms = 5000;
  const RulesDiff diff =
      DiffRules("shop", {{"shop", GlobalRule(1, 10)}, {"shop", GlobalRule(2, 10)}},
                FileOf({GlobalRule(3, 10), changed}));
  CHECK_FALSE(diff.same());
  CHECK(Lines(diff) == Expected{"removed 1", "changed 2 resource resource-2 other",
                                "changed 2 count 10 12.25",
                                "changed 2 clusterConfig.resourceTimeout 2000 5000", "added 3"});
  CHECK(diff.changes[1].resource == "other");
  CHECK(diff.Summary() == "1 added, 1 removed, 1 changed, 0 unchanged, 0 skipped");
}

TEST_CASE("values with limits of their own are told one by one, and another order is no change") {
  const auto rule = [](const std::string& items) {
    return FileOf({}, R"({"resource":"r","paramIdx":0,"count":5,"clusterMode":true,
                          "clusterConfig":{"flowId":7},"paramFlowItemList":[)" +
                          items + "]}");
  };
  const std::string one = R"({"object":"1","classType":"int","count":10})";
  const std::string vip = R"({"object":"vip","count":20})";
  const core::Rule before = rule(one + "," + vip).rules.at(0);
  CHECK(DiffRules("shop", {{"shop", before}}, rule(vip + "," + one)).same());
  CHECK(Lines(DiffRules("shop", {{"shop", before}},
                        rule(R"({"object":"1","classType":"int","count":11},
                                {"object":"1","classType":"long","count":10})"))) ==
        Expected{"changed 7 paramFlowItemList int 1 10 11",
                 "changed 7 paramFlowItemList long 1 - 10",
                 "changed 7 paramFlowItemList string vip 20 -"});
}

TEST_CASE("a rule that becomes one of another form shows the fields of both") {
  core::Rule before = GlobalRule(1, 10);
  before.param.emplace();
  const core::ParsedRules file = FileOf({}, R"({"resource":"resource-1","paramIndex":0,
      "threshold":10,"clusterConfig":{"flowId":1,"thresholdType":1}})");
  const auto lines = Lines(DiffRules("shop", {{"shop", before}}, file));
  const auto has = [&](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  CHECK(has("changed 1 threshold - 10"));
  CHECK(has("changed 1 count 10 -"));
  CHECK(has("changed 1 clusterConfig.windowIntervalMs 1000 -"));
  CHECK_FALSE(has("changed 1 clusterConfig.thresholdType 1 1"));
}

TEST_CASE("a rule that gets a parameter is another rule") {
  core::Rule by_value = GlobalRule(1, 10);
  by_value.param.emplace();
  by_value.max_queueing_time_ms = 0;
  CHECK(Lines(DiffRules("shop", {{"shop", GlobalRule(1, 10)}}, FileOf({by_value}))) ==
        Expected{"removed 1", "added 1"});
}

TEST_CASE("a flow of another namespace is a conflict, and a skipped rule no difference") {
  const RulesDiff conflict =
      DiffRules("shop", {{"bank", GlobalRule(1, 10)}}, FileOf({GlobalRule(1, 10)}));
  CHECK_FALSE(conflict.same());
  CHECK(Lines(conflict) == Expected{"conflict 1: the flowId belongs to namespace bank"});
  CHECK(conflict.Summary().ends_with("0 skipped, 1 in conflict"));
  const RulesDiff skipped =
      DiffRules("shop", {{"shop", GlobalRule(1, 10)}},
                FileOf({GlobalRule(1, 10)}, R"({"resource":"local","clusterMode":false})"));
  CHECK(skipped.same());
  CHECK(Lines(skipped) ==
        Expected{"skipped: rule 2 (resource \"local\") is skipped: clusterMode is false"});
}

TEST_CASE("a key that is probably misspelt is told, and no difference") {
  const RulesDiff diff =
      DiffRules("shop", {}, FileOf({}, R"({"resource":"r","count":1,"clusterMode":true,"Grade":1,
                                 "clusterConfig":{"flowId":1}})"));
  CHECK(Lines(diff) == Expected{"added 1",
                                "ignored: rule 1 (resource \"r\", flowId 1): 'Grade' is not known "
                                "and is ignored; did you mean grade?"});
  CHECK(diff.Summary() == "1 added, 0 removed, 0 changed, 0 unchanged, 0 skipped");
}

TEST_CASE("a level that is rounded to 0 and a key that comes twice are told as warnings") {
  const RulesDiff diff = DiffRules(
      "shop", {}, FileOf({}, R"({"resource":"r","grade":0,"count":9,"count":0.5,"clusterMode":true,
                                 "clusterConfig":{"flowId":1,"thresholdType":1}})"));
  CHECK(Lines(diff) ==
        Expected{"added 1",
                 "warning: rule 1 (resource \"r\", flowId 1): count 0.5 is rounded down: the "
                 "level is 0, and every acquire is refused",
                 "warning: rule 1 (resource \"r\", flowId 1): 'count' appears twice; the last one "
                 "counts"});
}

TEST_CASE("of very many skipped rules the first are told and the others counted") {
  std::string more = R"({"resource":"local","clusterMode":false})";
  for (int i = 0; i < 14; ++i) more += R"(,{"resource":"local","clusterMode":false})";
  const RulesDiff diff = DiffRules("shop", {}, FileOf({GlobalRule(1, 10)}, more));
  CHECK(diff.skipped == 15);
  REQUIRE(diff.changes.size() == 12);
  CHECK(diff.changes.back().note == "5 more are skipped");
}

struct Diff {
  std::string out;
  std::string err;
  bool same = false;
};

Diff Print(Format format, const core::ParsedRules& file) {
  LedgerBuilder builder;
  builder.Rule("shop", GlobalRule(1, 10)).Rule("shop", GlobalRule(2, 20));
  builder.Namespace("shop", "file:/etc/shop.json");
  store::MemoryStore store = builder.Build();
  Progress progress(false, "rules", [](std::string_view) {});
  OfflineSource source(&store, kDiffMachine, &progress);
  StringOutput out;
  Diff printed;
  Arguments arguments;
  arguments.name_space = "shop";
  const Streams streams{out.get(), [&](std::string_view bytes) { printed.err += bytes; }};
  const Result<bool> same = PrintRulesDiff(arguments, format, file, &source, &progress, streams);
  REQUIRE(same.status().ToString() == "ok");
  printed.same = *same;
  printed.out = out.text();
  return printed;
}

TEST_CASE("a difference is printed in every format, and whose the rules are") {
  const core::ParsedRules file = FileOf({GlobalRule(1, 15)});
  const Diff table = Print(Format::kTable, file);
  CHECK_FALSE(table.same);
  CHECK(table.out ==
        "CHANGE   FLOW_ID  RESOURCE    FIELD  OLD  NEW  NOTE\n"
        "changed        1  resource-1  count  10   15   -\n"
        "removed        2  resource-2  -      -    -    -\n"
        "0 added, 1 removed, 1 changed, 0 unchanged, 0 skipped\n");
  CHECK(table.err ==
        "nowcalls-admin: note: namespace 'shop' takes its rules from file:/etc/shop.json\n"
        "nowcalls-admin: warning: the load removes 1 rule in force: acquires under it answer "
        "NO_RULE_EXISTS, for which Sentinel's clients let calls pass\n");
  CHECK(Print(Format::kJsonl, file).out ==
        R"({"change":"changed","flow_id":1,"resource":"resource-1","field":"count","old":"10",)"
        R"("new":"15","note":"","kind":"flow"})"
        "\n"
        R"({"change":"removed","flow_id":2,"resource":"resource-2","field":null,"old":null,)"
        R"("new":null,"note":"","kind":"flow"})"
        "\n");
  CHECK(Print(Format::kCsv, file).out ==
        "change,flow_id,resource,field,old,new,note,kind\n"
        "changed,1,resource-1,count,10,15,,flow\n"
        "removed,2,resource-2,,,,,flow\n");
}

TEST_CASE("no difference is a line in a table and nothing in jsonl") {
  const core::ParsedRules file = FileOf({GlobalRule(1, 10), GlobalRule(2, 20)});
  const Diff table = Print(Format::kTable, file);
  CHECK(table.same);
  CHECK(table.out == "0 added, 0 removed, 0 changed, 2 unchanged, 0 skipped\n");
  CHECK(Print(Format::kJsonl, file).out.empty());
}

TEST_CASE("rules sources of a ledger on disk counts rules and sessions of each namespace") {
  LedgerBuilder builder = SampleLedger();
  const std::string path = "file:/" + std::string(60, 'p');
  builder.Namespace("shop", path);
  builder.Session(3, "solo", "a");
  store::MemoryStore store = builder.Build();
  Progress progress(false, "namespaces", [](std::string_view) {});
  OfflineSource source(&store, kDiffMachine, &progress);
  StringOutput out;
  Arguments arguments;
  arguments.command = Command::kRulesSources;
  REQUIRE(PrintListing(arguments, Format::kTable, &source, out.get()).ok());
  // A long path sticks out of its column.
  CHECK(
      out.text() ==
      "NAMESPACE  RULES  SESSIONS  ONLINE  SOURCE                                    WARNINGS  "
      "WHY_REFUSED\n"
      "bank           1         1       -  -                                                -  -\n"
      "shop           1         1       -  " +
          path +
          "         -  -\n"
          "solo           0         1       -  -                                                -  "
          "-\n");
}

TEST_CASE("rules sources of one namespace shows no other") {
  LedgerBuilder builder = SampleLedger();
  store::MemoryStore store = builder.Build();
  Progress progress(false, "namespaces", [](std::string_view) {});
  OfflineSource source(&store, kDiffMachine, &progress);
  StringOutput out;
  Arguments arguments;
  arguments.command = Command::kRulesSources;
  arguments.filter.name_space = "bank";
  REQUIRE(PrintListing(arguments, Format::kCsv, &source, out.get()).ok());
  CHECK(out.text() ==
        "namespace,rules,sessions,sessions_online,source,warnings,loaded_ms,refused_ms,"
        "requests_max,refusal\nbank,1,1,,,,,,,\n");
}

}  // namespace
}  // namespace nowcalls::admin
