// What `rules check` and `rules load` say that rules come to.
#include "admin/effective_rules.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/rules/rule_json.h"

namespace nowcalls::admin {
namespace {

std::string TextOf(const std::string& json) {
  const auto parsed = core::ParseRules(json);
  REQUIRE(parsed.status().ToString() == "ok");
  return EffectiveRulesText(parsed->rules);
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("a minimal rule shows that its level grows with clients, and what is by default") {
  CHECK(TextOf(R"([{"resource":"db","count":3,"clusterMode":true,
                    "clusterConfig":{"flowId":1}}])") ==
        "FLOW_ID  RESOURCE  LEVEL                MAY_LAST  OFFLINE  WHEN_FULL\n"
        "      1  db        3 in 1s per client*  -         -        refuse*\n"
        "*: as by default.\n"
        "per client: the level grows with the clients online: with 6 it is 18 in 1s.\n"
        "  \"thresholdType\": 1 in clusterConfig makes it 3 in 1s.\n"
        "in 1s: calls that begin within it. \"grade\": 0 makes them calls at once.\n"
        "WHEN_FULL: what comes of a prioritized acquire without room.\n");
}

TEST_CASE("a rule with the five keys that matter shows no default but the refusal") {
  const auto lines =
      LinesOf(TextOf(R"([{"resource":"order-db","grade":0,"count":20,"clusterMode":true,
    "clusterConfig":{"flowId":1001,"thresholdType":1,"resourceTimeout":30000,
                     "clientOfflineTime":10000}}])"));
  CHECK(lines.at(1) == "   1001  order-db  20 in all  1m00s     10s      refuse*");
  CHECK(lines.at(3).starts_with("MAY_LAST"));  // Nothing about clients.
}

std::string CallsInProgress(const std::string& more) {
  return R"([{"resource":"r","grade":0,"count":1,"clusterMode":true,
              "clusterConfig":{"flowId":1,"thresholdType":1,"clientOfflineTime":1000)" +
         more + "}}]";
}

std::string MayLast(const std::string& more) {
  const auto lines = LinesOf(TextOf(CallsInProgress(more)));
  const size_t at = lines.at(0).find("MAY_LAST");
  return lines.at(1).substr(at, lines.at(1).find("  ", at) - at);
}

TEST_CASE("how long a call may last follows the rule's resourceTimeoutStrategy") {
  CHECK(MayLast("") == "4.0s*");
  CHECK(MayLast(R"(,"resourceTimeout":30000)") == "1m00s");
  CHECK(MayLast(R"(,"resourceTimeout":30000,"resourceTimeoutStrategy":0)") == "1m00s");
  CHECK(MayLast(R"(,"resourceTimeout":30000,"resourceTimeoutStrategy":1)") == "30s, released");
  CHECK(MayLast(R"(,"resourceTimeout":30000,"resourceTimeoutStrategy":2)") == "kept");
}

TEST_CASE("a rule that bounds how long a token is held lets no call last longer") {
  CHECK(MayLast(R"(,"resourceTimeout":30000,"maxHoldMs":3600000)") == "1m00s");
  CHECK(MayLast(R"(,"resourceTimeout":30000,"maxHoldMs":10000)") == "10s");
  CHECK(MayLast(R"(,"resourceTimeout":30000,"maxHoldMs":0)") == "1m00s");
  CHECK(MayLast(R"(,"resourceTimeoutStrategy":1,"maxHoldMs":1500)") == "1.5s, released");
  CHECK(MayLast(R"(,"resourceTimeoutStrategy":2,"maxHoldMs":3600000)") == "kept, max 1h00m");
}

TEST_CASE("the end of a call is told in words, of the strategies that the rules have") {
  const auto told = [](const std::string& more) {
    const auto lines = LinesOf(TextOf(CallsInProgress(more)));
    return lines.at(3) + (lines.at(4).starts_with("  (") ? " " + lines.at(4).substr(2) : "");
  };
  CHECK(told("") ==
        "MAY_LAST: a call may last so long, then the server takes its token back "
        "(resourceTimeout x 2, the server's resource-timeout-factor).");
  CHECK(told(R"(,"resourceTimeoutStrategy":1)") ==
        "released: a call may last so long, then its client releases the token.");
  CHECK(told(R"(,"resourceTimeoutStrategy":2)") ==
        "kept: a call may last as long as its client lives and keeps the token.");
}

TEST_CASE("rules that nothing limits without a server are named, and those by value by default") {
  const auto unlimited = [](const std::string& rules) {
    const std::string text = TextOf(rules);
    const size_t at = text.find("Without a server");
    return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
  };
  const auto by_value = [](int flow, const std::string& more) {
    return R"({"resource":"r","paramIdx":0,"count":1,"clusterMode":true,
               "clusterConfig":{"thresholdType":1,"flowId":)" +
           std::to_string(flow) + more + "}}";
  };
  CHECK(unlimited(CallsInProgress("")).empty());
  CHECK(unlimited(CallsInProgress(R"(,"fallbackToLocalWhenFail":false)")) ==
        "Without a server clients let every call pass of flow 1.");
  CHECK(unlimited("[" + by_value(7, R"(,"fallbackToLocalWhenFail":true)") + "]").empty());
  std::string many = by_value(7, "");
  for (int flow = 8; flow < 19; ++flow) many += "," + by_value(flow, "");
  CHECK(unlimited("[" + many + "]") ==
        "Without a server clients let every call pass of flow 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 "
        "and 2 more.");
  CHECK(unlimited(R"([{"resource":"r","paramIndex":0,"threshold":5,
                       "clusterConfig":{"flowId":1,"thresholdType":1}}])")
            .empty());
}

TEST_CASE("each way of refusing is told, and a rule that only counts") {
  const auto when_full = [](const std::string& more) {
    const auto lines =
        LinesOf(TextOf(R"([{"resource":"r","count":1,"maxQueueingTimeMs":1500,"clusterMode":true,
                    "clusterConfig":{"flowId":1,"thresholdType":1,)" +
                       more + "}}]"));
    return lines.at(1).substr(lines.at(0).find("WHEN_FULL"));
  };
  CHECK(when_full(R"("acquireRefuseStrategy":0)") == "refuse*");
  CHECK(when_full(R"("acquireRefuseStrategy":1)") == "retry once");
  CHECK(when_full(R"("acquireRefuseStrategy":2)") == "retry");
  CHECK(when_full(R"("acquireRefuseStrategy":3)") == "wait 1.5s");
  CHECK(when_full(R"("shadow":true)") == "grant (shadow)");
}

TEST_CASE("a level is shown as it counts, rounded down") {
  const auto level = [](const std::string& count) {
    return LinesOf(TextOf(R"([{"resource":"r","grade":0,"clusterMode":true,"count":)" + count +
                          R"(,"clusterConfig":{"flowId":1,"thresholdType":1}}])"))
        .at(1);
  };
  CHECK(level("2.9").find(" 2 in all ") != std::string::npos);
  CHECK(level("0.5").find(" 0 in all ") != std::string::npos);
  CHECK(level("0").find(" 0 in all ") != std::string::npos);
}

// The cell of LEVEL of a rule with `fields`, one that the resource of goes before.
std::string LevelOf(const std::string& fields) {
  const auto lines = LinesOf(TextOf(R"([{"resource":"r",)" + fields + "}]"));
  const size_t begin = lines.at(0).find("LEVEL");
  const size_t width = lines.at(0).find("MAY_LAST") - begin;
  const std::string cell = lines.at(1).substr(begin, width);
  return cell.substr(0, cell.find_last_not_of(' ') + 1);
}

TEST_CASE("a rule of a parameter shows what each value may, and over which time") {
  const std::string global =
      R"(,"clusterMode":true,"clusterConfig":{"flowId":1,"thresholdType":1})";
  const std::string local = R"(,"clusterMode":true,"clusterConfig":{"flowId":1})";
  CHECK(LevelOf(R"("paramIdx":0,"count":5,"durationInSec":9)" + global) == "5 in 1s a value");
  CHECK(LevelOf(R"("paramIdx":0,"count":0.5)" + local) == "0.5 in 1s a value per client*");
  CHECK(LevelOf(R"("paramIdx":0,"grade":0,"count":5.5)" + global) == "5 a value");
  CHECK(LevelOf(R"("paramIndex":0,"threshold":5)" + local) == "5 a value per client*");
  CHECK(LevelOf(R"("paramIndex":0,"metricType":1,"threshold":5,"durationInSec":1)" + global) ==
        "5 in 1s a value");
  CHECK(LevelOf(R"("paramIndex":0,"metricType":1,"threshold":5,"durationInSec":90)" + global) ==
        "5 in 90s a value");
  CHECK(LevelOf(R"("statIntervalInMs":1000,"threshold":5)" + global) == "5 in 1s");
  CHECK(LevelOf(R"("statIntervalInMs":500,"threshold":5)" + local) == "5 in 500ms per client*");
}

TEST_CASE("values with limits of their own are told with their types, the first ten") {
  std::string items;
  for (int i = 0; i < 12; ++i) {
    items += (i == 0 ? "" : ",") + (R"({"object":")" + std::to_string(i)) +
             R"(","classType":"int","count":)" + std::to_string(10 * i) + "}";
  }
  const std::string rules = R"([
      {"resource":"a","paramIdx":0,"count":5,"clusterMode":true,
       "paramFlowItemList":[{"object":"a\u001bb","count":7}],
       "clusterConfig":{"flowId":1,"thresholdType":1}},
      {"resource":"b","grade":0,"paramIdx":0,"count":5,"clusterMode":true,
       "paramFlowItemList":[)" +
                            items + R"(],
       "clusterConfig":{"flowId":2,"thresholdType":1}}])";
  const std::string text = TextOf(rules);
  CHECK(text.find("a value: each value of the rule's parameter has the limit to itself.\n") !=
        std::string::npos);
  const std::string own = text.substr(text.find("Values with"));
  CHECK(
      own.starts_with("Values with limits of their own:\n"
                      "  flow 1, string a\\x1bb: 7 in 1s\n"
                      "  flow 2, int 0: 0\n"
                      "  flow 2, int 1: 10\n"));
  CHECK(own.ends_with("  flow 2, int 8: 80\n  and 3 more\n"));
}

TEST_CASE("the growth with clients is told for a value and for a time") {
  const std::string text = TextOf(R"([{"resource":"r","statIntervalInMs":2000,"threshold":5,
                                       "clusterConfig":{"flowId":1}}])");
  CHECK(
      text.find(
          "with 6 it is 30 in 2s.\n  \"thresholdType\": 1 in clusterConfig makes it 5 in 2s.\n") !=
      std::string::npos);
}

TEST_CASE("lines fit 80 columns, however long resources are") {
  std::string rules;
  for (const std::string id : {"7", "1000000000000000001"}) {
    rules += (rules.empty() ? "" : ",") + (R"({"resource":")" + std::string(300, 'x')) +
             R"(","grade":0,"count":10000,"clusterMode":true,"clusterConfig":{"flowId":)" + id +
             R"(,"acquireRefuseStrategy":1}})";
  }
  for (const std::string& line : LinesOf(TextOf("[" + rules + "]"))) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
}

TEST_CASE("a set without rules shows nothing") { CHECK(EffectiveRulesText({}).empty()); }

TEST_CASE("a load that removes rules is warned of, in words for one and for many") {
  CHECK(RemovalWarning(0).empty());
  CHECK(RemovalWarning(1) ==
        "nowcalls-admin: warning: the load removes 1 rule in force: acquires under it answer "
        "NO_RULE_EXISTS, for which Sentinel's clients let calls pass\n");
  CHECK(RemovalWarning(12).find("removes 12 rules in force: acquires under them answer") !=
        std::string::npos);
}

}  // namespace
}  // namespace nowcalls::admin
