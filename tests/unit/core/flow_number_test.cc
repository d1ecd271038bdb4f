// Rules without flowId: their numbers, and sets that would give a number twice.
#include "core/rules/flow_number.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "core/rules/rule_check.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_keys.h"
#include "core/rules/rule_set.h"
#include "unit/core/rule_parsing.h"

namespace nowcalls::core {
namespace {

// Of namespace shop: the error, or "loaded N".
std::string LoadedInShop(const std::string& set) {
  const auto checked = CheckRuleSet("rpc", "shop", set);
  if (!checked.ok()) return checked.status().message();
  return "loaded " + std::to_string((*checked)->parsed.rules.size());
}

std::string PlainRule(const std::string& resource, const std::string& cluster) {
  return R"({"resource":")" + resource + R"(","count":1,"clusterMode":true)" +
         (cluster.empty() ? "" : R"(,"clusterConfig":)" + cluster) + "}";
}

// Of the documents, from another implementation of SipHash. Ledgers and clients keep these numbers:
// they never change.
TEST_CASE("the number of a name is the same for ever") {
  CHECK(FlowNumberOf("default", "checkout") == FlowId{7808647224493747});
  CHECK(FlowNumberOf("shop", "checkout") == FlowId{7119573550062657});
  CHECK(FlowNumberOf("shop",
                     "Kaffee & S\xc3\xbc\xc3\x9f"
                     "es") == FlowId{7523903709085084});
  CHECK(FlowNumberOf("a", "bc") == FlowId{8710286951859367});
  CHECK(FlowNumberOf("ab", "c") == FlowId{6878413982356561});
}

TEST_CASE("numbers of names are in their range, which doubles keep exactly") {
  CHECK(kFlowNumbersBegin == 4503599627370496);
  CHECK(kFlowNumbersEnd == 9007199254740992);
  for (int i = 0; i < 1000; ++i) {
    const FlowId id = FlowNumberOf("shop", "r" + std::to_string(i));
    REQUIRE(IsFlowNumber(id));
    REQUIRE(static_cast<int64_t>(static_cast<double>(id.value)) == id.value);
  }
  CHECK_FALSE(IsFlowNumber(FlowId{kFlowNumbersBegin - 1}));
  CHECK_FALSE(IsFlowNumber(FlowId{kFlowNumbersEnd}));
}

TEST_CASE("a rule of any kind without flowId gets the number of its name") {
  const std::string by_value = R"("resource":"checkout","count":1,"paramIdx":0,"clusterMode":true)";
  const std::string go = R"("resource":"checkout","threshold":1,"statIntervalInMs":1000)";
  const std::string hotspot =
      R"("resource":"checkout","threshold":1,"metricType":0,"paramIndex":0,"durationInSec":1)";
  for (const std::string& set :
       {PlainRule("checkout", ""), PlainRule("checkout", "null"), PlainRule("checkout", "{}"),
        PlainRule("checkout", R"({"flowId":null,"thresholdType":1})"),
        "{" + by_value + R"(,"clusterConfig":null})", "{" + by_value + "}",
        "{" + by_value + R"(,"clusterConfig":{"flowId":""}})", "{" + go + R"(,"clusterMode":true})",
        "{" + go + R"(,"clusterConfig":{}})", "{" + hotspot + R"(,"clusterMode":true})",
        "{" + hotspot + R"(,"clusterConfig":{"thresholdType":1}})"}) {
    CAPTURE(set);
    const auto parsed = ParseRules("[" + set + "]", "shop");
    REQUIRE(parsed.status().ToString() == "ok");
    REQUIRE(parsed->rules.size() == 1);
    const Rule& rule = parsed->rules[0];
    CHECK(rule.flow_id == FlowId{7119573550062657});
    // What the ledger and a listing have is a rule with a number.
    CHECK(ParseRule(RuleToJson(rule)).value() == rule);
    CHECK(LoadedInShop("[" + RuleToJson(rule) + "]") == "loaded 1");
  }
}

TEST_CASE("a rule without clusterConfig has the defaults of an empty one") {
  const auto both = [](const std::string& begin) {
    Rule without = RuleOf("{" + begin + R"(,"clusterMode":true})");
    const Rule empty = RuleOf("{" + begin + R"(,"clusterMode":true,"clusterConfig":{}})");
    CHECK(without == empty);
    return without;
  };
  CHECK(both(R"("resource":"r","count":1)").fallback_to_local_when_fail);
  CHECK_FALSE(both(R"("resource":"r","count":1,"paramIdx":0)").fallback_to_local_when_fail);
  CHECK(both(R"("resource":"r","threshold":1,"statIntervalInMs":1500)").window_interval_ms == 1500);
}

TEST_CASE("without a namespace a rule without flowId has no number, and is one of its name") {
  const auto parsed = ParseRules("[" + PlainRule("a", "") + "," + PlainRule("b", "{}") + "]");
  REQUIRE(parsed.ok());
  CHECK(parsed->rules[0].flow_id == FlowId{});
  CHECK(parsed->rules[1].flow_id == FlowId{});
  CHECK(Outcome("[" + PlainRule("a", "") + "," + PlainRule("a", "{}") + "]") ==
        "rule 2 (resource \"a\"): clusterConfig.flowId is missing, and an earlier rule of this "
        "resource has the number of its name; give one of them a flowId, the number that clients "
        "ask with");
}

TEST_CASE("two rules of one kind and resource need numbers, two of two kinds do not") {
  const std::string plain = PlainRule("checkout", "");
  const std::string by_value =
      R"({"resource":"checkout","count":1,"paramIdx":0,"clusterMode":true})";
  CHECK(LoadedInShop("[" + plain + "," + by_value + "]") == "loaded 2");
  CHECK(LoadedInShop("[" + plain + "," + PlainRule("checkout", R"({"flowId":8})") + "]") ==
        "loaded 2");
  CHECK(LoadedInShop("[" + by_value + "," + plain + "," + by_value + "]") ==
        "rule 3 (resource \"checkout\"): clusterConfig.flowId is missing, and an earlier rule of "
        "this resource has the number of its name, in two rules by value; give one of them a "
        "flowId, the number that clients ask with");
}

TEST_CASE("a number of a name that another rule has refuses the set, with both resources") {
  const std::string taken = PlainRule("other", R"({"flowId":7119573550062657})");
  const std::string why =
      "; without flowId a rule has the number of its name, so give one of them another flowId";
  CHECK(LoadedInShop("[" + taken + "," + PlainRule("checkout", "") + "]") ==
        "rule 2 (resource \"checkout\"): clusterConfig.flowId 7119573550062657 is also that of "
        "'other'" +
            why);
  CHECK(LoadedInShop("[" + PlainRule("checkout", "") + "," + taken + "]") ==
        "rule 2 (resource \"other\", flowId 7119573550062657): clusterConfig.flowId "
        "7119573550062657 is also that of 'checkout'" +
            why);
}

TEST_CASE("a slip in the key of a flowId does not give the rule another number") {
  CHECK(LoadedInShop("[" + PlainRule("a", R"({"flowid":7})") + "]") ==
        "rule 1 (resource \"a\"): clusterConfig.flowId is missing; 'clusterConfig.flowid' is not "
        "known and is ignored; did you mean clusterConfig.flowId?");
  CHECK(LoadedInShop(R"([{"resource":"a","count":1,"clusterMode":true,"flowId":7}])")
            .ends_with("did you mean clusterConfig.flowId?"));
  CHECK(LoadedInShop(
            R"([{"resource":"a","count":1,"clusterMode":true,"clusterconfig":{"flowId":7}}])")
            .ends_with("clusterConfig is missing; 'clusterconfig' is not known and is ignored; did "
                       "you mean clusterConfig?"));
}

TEST_CASE("a number under another key is not taken for a rule without flowId") {
  const std::string begin = R"([{"resource":"a","count":1,"clusterMode":true,)";
  const auto refused = [&](const std::string& rest, const std::string& stray) {
    CAPTURE(rest);
    CHECK(LoadedInShop(begin + rest + "}]") ==
          "rule 1 (resource \"a\"): clusterConfig.flowId is missing; '" + stray +
              "' is not known: name it flowId, in clusterConfig, or leave it out");
  };
  for (const std::string key : {"id", "ruleId", "fid", "clusterFlowId"}) {
    refused("\"clusterConfig\":{\"" + key + "\":7}", "clusterConfig." + key);
  }
  for (const std::string key : {"config", "cluster", "clusterCfg"}) {
    refused("\"" + key + "\":{\"flowId\":7}", key + ".flowId");
  }
  // However many other keys were judged before.
  std::string many = "[";
  for (size_t i = 0; i < RuleKeys::kJudgedMax; ++i) {
    many += PlainRule("r" + std::to_string(i), R"({"note)" + std::to_string(i) + R"(":"x"})") + ",";
  }
  CHECK(LoadedInShop(many + PlainRule("a", R"({"flow_id":7})") + "]").find("flow_id") !=
        std::string::npos);
  for (const std::string note : {R"("labels":{"team":7})", R"("clusterConfig":{"note":"7"})",
                                 R"("clusterConfig":{"maxQueueingTimeMs":7})",
                                 R"("paramIdx":0,"clusterConfig":{"strategy":0})"}) {
    CHECK(LoadedInShop(begin + note + "}]") == "loaded 1");
  }
}

TEST_CASE("a rule without flowId needs a resource, and one of the ledger a flowId") {
  CHECK(LoadedInShop(R"([{"count":1,"clusterMode":true}])") == "rule 1: resource is missing");
  CHECK(ParseRule(PlainRule("a", "{}")).status().message() == "clusterConfig.flowId is missing");
}

}  // namespace
}  // namespace nowcalls::core
