// A file of rules of another kind, or with a slip in clusterMode, never switches limits off.
#include "core/rules/rule_kind.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/rules/rule_json.h"
#include "unit/core/rule_parsing.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

// As Sentinel 1.8, its dashboard and sentinel-golang write them.
constexpr char kDegrade[] = R"({"resource":"GET:/pay","limitApp":"default","grade":0,"count":200.0,
  "timeWindow":10,"minRequestAmount":5,"slowRatioThreshold":1.0,"statIntervalMs":1000})";
constexpr char kAuthority[] = R"({"resource":"r","limitApp":"appA,appB","strategy":0})";
constexpr char kSystem[] = R"({"highestSystemLoad":-1.0,"highestCpuUsage":0.8,"qps":-1.0,
  "avgRt":-1,"maxThread":-1})";
constexpr char kHotParameter[] = R"({"resource":"r","grade":1,"paramIdx":0,"count":5.0,
  "controlBehavior":0,"maxQueueingTimeMs":0,"burstCount":0,"durationInSec":1,
  "paramFlowItemList":[],"clusterMode":true,"clusterConfig":{"flowId":7,"thresholdType":1}})";
constexpr char kFlow[] =
    R"({"resource":"r","count":5,"clusterMode":true,"clusterConfig":{"flowId":7}})";

bool Has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

TEST_CASE("a rule of another kind refuses its set, which is told by the kind's name") {
  const struct {
    const char* rule;
    const char* kind;
  } cases[] = {
      {kDegrade, "a circuit-breaking rule (DegradeRule)"},
      {R"({"resource":"r","count":0.5,"grade":1,"timeWindow":"10"})", "(DegradeRule)"},
      {kAuthority, "an authority rule (AuthorityRule)"},
      {kSystem, "a system rule (SystemRule)"},
      {R"({"qps":100})", "a system rule (SystemRule)"},
      {R"({"resource":"route","resourceMode":0,"count":10,"intervalSec":1})", "(GatewayFlowRule)"},
      {R"({"apiName":"some_api","predicateItems":[{"pattern":"/x"}]})", "(ApiDefinition)"},
      {R"({"resource":"r","strategy":0,"retryTimeoutMs":3000,"minRequestAmount":10,
           "statIntervalMs":5000,"maxAllowedRtMs":50,"threshold":0.5})",
       "(circuitbreaker.Rule of sentinel-golang)"},
      {R"({"resource":"r","metricType":0,"threshold":12})", "isolation rule"},
      {R"({"metricType":4,"triggerCount":0.8,"strategy":-1})", "system.Rule"},
      {R"({"id":9,"app":"a","ip":"i","port":1,
           "rule":{"resource":"r","limitApp":"x","strategy":1}})",
       "(AuthorityRule)"},
  };
  for (const auto& other : cases) {
    CAPTURE(other.rule);
    const std::string alone = Outcome("[" + std::string(other.rule) + "]");
    CHECK(alone.starts_with("rule 1"));
    CHECK_MESSAGE(Has(alone, other.kind), alone);
    // Among rules that apply it is not passed over either.
    const std::string among = Outcome("[" + std::string(kFlow) + "," + other.rule + "]");
    CHECK(among.starts_with("rule 2"));
    CHECK_MESSAGE(Has(among, other.kind), among);
  }
  CHECK(Outcome("[" + std::string(kDegrade) + "]") ==
        "rule 1 (resource \"GET:/pay\"): 'timeWindow' makes it a circuit-breaking rule "
        "(DegradeRule), which sets no limit here");
}

TEST_CASE("an object that is no rule at all refuses its set") {
  for (const char* object : {R"({"foo":1})", "{}", R"({"resource":null})", R"({"rule":5})",
                             R"({"id":1,"app":"a","ip":"i","port":1})"}) {
    CAPTURE(object);
    CHECK(Outcome("[" + std::string(object) + "]") ==
          "rule 1: is no rule of a known kind: expected a FlowRule with resource, count, "
          "clusterMode and clusterConfig");
    CHECK(Outcome("[" + std::string(kFlow) + "," + object + "]").starts_with("rule 2: is no rule"));
  }
  CHECK(Outcome(R"([{"clusterMode":false}])") == "rule 1: resource is missing");
  CHECK(Outcome(R"([{"clusterMode":true,"clusterConfig":{"flowId":1}}])") ==
        "rule 1 (flowId 1): resource is missing");
}

// With `member` in the rule, and in its clusterConfig.
std::string RuleWith(const std::string& member) {
  return R"([{"resource":"r","count":5,"clusterMode":true,)" + member +
         R"(,"clusterConfig":{"flowId":7}}])";
}
std::string ClusterWith(const std::string& member) {
  return R"([{"resource":"r","count":5,"clusterMode":true,"clusterConfig":{"flowId":7,)" + member +
         "}}]";
}

TEST_CASE("a key of a hot parameter rule never passes in a flow rule, wherever it stands") {
  for (const std::string key : {"paramFlowItemList", "durationInSec", "burstCount", "paramidx",
                                "param_idx", "BurstCount"}) {
    CAPTURE(key);
    const std::string member = "\"" + key + "\":1";
    const std::string what = "' makes it a hot parameter rule (ParamFlowRule)";
    CHECK(Has(Outcome(RuleWith(member)), "paramIdx is missing"));
    CHECK(Has(Outcome(RuleWith(member)), "; '" + key + what));
    CHECK(Has(Outcome(ClusterWith(member)), "paramIdx is missing"));
    CHECK(Has(Outcome(ClusterWith(member)), "; 'clusterConfig." + key + what));
  }
  for (const std::string member : {R"("paramsMaxCapacity":1)", R"("specificItems":[])",
                                   R"("paramIndex":1)", R"("paramKey":"k")"}) {
    CAPTURE(member);
    const std::string key = member.substr(1, member.find('"', 1) - 1);
    const std::string what = "' makes it a hot parameter rule (hotspot.Rule of sentinel-golang)";
    CHECK(Has(Outcome(RuleWith(member)), "threshold is missing; it must be >= 0; '" + key + what));
    CHECK(Has(Outcome(ClusterWith(member)), "threshold is missing"));
    CHECK(Has(Outcome(ClusterWith(member)), "; 'clusterConfig." + key + what));
  }
  CHECK(Has(Outcome(ClusterWith(R"("paramIdx":0)")),
            "paramIdx is missing; 'clusterConfig.paramIdx' is not known and is ignored; did you "
            "mean paramIdx?; 'clusterConfig.paramIdx' makes it a hot parameter rule"));
  CHECK(Outcome(R"([{"resource":"r","count":5,"clusterMode":true,"paramIdx":null,
                     "clusterConfig":{"flowId":7,"specificItems":null}}])") == "loaded 1");
}

TEST_CASE("a rule that two kinds of sentinel-golang may be is refused with what tells them apart") {
  CHECK(Outcome(RuleWith(R"("metricType":0)")) ==
        "rule 1 (resource \"r\", flowId 7): 'metricType' makes it a hot parameter or isolation "
        "rule (hotspot.Rule or isolation.Rule of sentinel-golang), which does not tell which; a "
        "hotspot.Rule has paramIndex, and an isolation.Rule sets no limit here");
  CHECK(Outcome(R"([{"resource":"r","threshold":5,"clusterConfig":{"flowId":7}}])") ==
        "rule 1 (resource \"r\", flowId 7): 'threshold' makes it a rule of sentinel-golang, which "
        "does not tell which; a flow.Rule has statIntervalInMs, a hotspot.Rule has paramIndex");
}

TEST_CASE("a rule with the keys of two kinds is refused") {
  for (const std::string key : {"specificItems", "paramIndex", "paramKey", "paramsMaxCapacity",
                                "metricType", "param_index"}) {
    CAPTURE(key);
    const std::string error = Outcome(RuleWith("\"paramIdx\":0,\"" + key + "\":1"));
    CHECK(Has(error, "'paramIdx' and '" + key +
                         "' make it a hot parameter rule of two kinds (ParamFlowRule and "
                         "hotspot.Rule); leave out the keys of one kind"));
  }
}

TEST_CASE("each kind is recognised by what only it has") {
  const auto kind = [](const char* object) { return RecogniseRule(json::parse(object)).kind; };
  CHECK(kind(kFlow) == RuleKind::kFlow);
  CHECK(kind(kHotParameter) == RuleKind::kHotParameter);
  CHECK(kind(R"({"resource":"r","metricType":1,"burstCount":2,"threshold":5})") ==
        RuleKind::kGoHotParameter);
  CHECK(kind(R"({"resource":"r","paramIndex":1,"threshold":5,"clusterConfig":{}})") ==
        RuleKind::kGoHotParameter);
  for (const char* key :
       {"tokenCalculateStrategy", "relationStrategy", "statIntervalInMs", "warmUpColdFactor"}) {
    json rule = {{"resource", "r"}, {key, 0}, {"threshold", 5}};
    CHECK(RecogniseRule(rule).kind == RuleKind::kGoFlow);
    rule["clusterConfig"] = {{"flowId", 7}};
    CHECK(RecogniseRule(rule).kind == RuleKind::kGoFlow);
    // A FlowRule has a count, and unknown keys are nothing to it.
    rule["count"] = 5;
    CHECK(RecogniseRule(rule).kind == RuleKind::kFlow);
  }
}

TEST_CASE("a hot parameter rule that is left to clients is skipped beside rules that apply") {
  json local = json::parse(kHotParameter);
  local["clusterMode"] = false;
  const auto parsed = ParseRules("[" + std::string(kFlow) + "," + local.dump() + "]");
  REQUIRE(parsed.status().ToString() == "ok");
  CHECK(parsed->Remarks() ==
        std::vector<std::string>{"rule 2 (resource \"r\", flowId 7) is skipped: clusterMode is "
                                 "false, and it is a hot parameter rule (ParamFlowRule)"});
  CHECK(Has(Outcome("[" + local.dump() + "]"), "0 of 1 rules apply"));
  local.erase("clusterMode");
  CHECK(
      Has(Outcome("[" + std::string(kFlow) + "," + local.dump() + "]"), "clusterMode is missing"));
}

TEST_CASE("a key of another kind is an unknown key of a flow rule that has its clusterConfig") {
  for (const char* key : {"timeWindow", "qps", "threshold", "burst", "apiName", "rule"}) {
    json rule = json::parse(kFlow);
    rule[key] = 1;
    CHECK(Outcome("[" + rule.dump() + "]") == "loaded 1");
  }
}

TEST_CASE("a rule without clusterMode refuses its set and is told what to write") {
  const std::string missing =
      "clusterMode is missing; write \"clusterMode\": true to limit calls here, or false to leave "
      "the rule to clients";
  for (const char* mode :
       {"", R"("clusterMode":null,)", R"("clusterMode":"",)", R"("clusterMode":"null",)"}) {
    CAPTURE(mode);
    const std::string rule =
        R"({"resource":"r","count":1,)" + std::string(mode) + R"("clusterConfig":{"flowId":8}})";
    CHECK(Outcome("[" + rule + "]") == "rule 1 (resource \"r\", flowId 8): " + missing);
    CHECK(Outcome("[" + std::string(kFlow) + "," + rule + "]") ==
          "rule 2 (resource \"r\", flowId 8): " + missing);
  }
  CHECK(Outcome(R"([{"resource":"local"}])") == "rule 1 (resource \"local\"): " + missing);
}

TEST_CASE("a misspelt clusterMode refuses its set and is told as that") {
  for (const std::string key :
       {"clustermode", "ClusterMode", "CLUSTERMODE", "cluster_mode", "cluster-mode", "clusterMod",
        "clusterModes", "isClusterMode", "clusterMode "}) {
    CAPTURE(key);
    for (const char* value : {"true", "false"}) {
      const std::string error =
          Outcome("[" + std::string(kFlow) + R"(,{"resource":"b","count":1,")" + key +
                  "\":" + value + R"(,"clusterConfig":{"flowId":8}}])");
      CHECK(error.starts_with("rule 2 (resource \"b\", flowId 8): clusterMode is missing; "));
      CHECK(error.ends_with("; '" + key +
                            "' is not known and is ignored; did you mean clusterMode?"));
    }
  }
  const std::string inside =
      Outcome(R"([{"resource":"b","count":1,"clusterConfig":{"flowId":8,"clusterMode":true}}])");
  CHECK(
      inside.ends_with("'clusterConfig.clusterMode' is not known and is ignored; did you mean "
                       "clusterMode?"));
}

TEST_CASE("clusterMode in two spellings, or twice, refuses its set whatever the values say") {
  for (const char* modes :
       {R"("clusterMode":true,"clusterMode":false)", R"("clusterMode":true,"clusterMode":true)",
        R"("ClusterMode":true,"clusterMode":false)", R"("cluster_mode":true,"clusterMode":true)"}) {
    CAPTURE(modes);
    CHECK(Outcome(R"([{"resource":"b","count":1,)" + std::string(modes) +
                  R"(,"clusterConfig":{"flowId":8}}])") ==
          "rule 1 (resource \"b\", flowId 8): clusterMode appears twice");
  }
}

TEST_CASE("clusterMode as a string or a number is read as Sentinel's parser reads it") {
  const auto with = [](const std::string& mode) {
    return Outcome("[" + std::string(kFlow) +
                   R"(,{"resource":"b","count":1,"clusterConfig":{"flowId":8},"clusterMode":)" +
                   mode + "}]");
  };
  for (const char* mode : {"true", "\"true\"", "\"TRUE\"", "1", "\"1\"", "\"Y\"", "\"T\""}) {
    CHECK(with(mode) == "loaded 2");
  }
  for (const char* mode : {"false", "\"false\"", "\"False\"", "0", "\"0\"", "\"N\"", "\"F\""}) {
    CHECK(with(mode) == "loaded 1");
  }
  for (const char* mode : {"2", "-1", "\"yes\"", "\"on\"", "\"flase\"", "[]", "{}", "0.5"}) {
    CHECK(with(mode).starts_with(
        "rule 2 (resource \"b\", flowId 8): clusterMode must be true or false, got "));
  }
}

TEST_CASE("a set of which no rule applies is refused, and [] is told as the way to remove all") {
  CHECK(Outcome(R"([{"resource":"a","clusterMode":false}])") ==
        "0 of 1 rules apply: rule 1 (resource \"a\") is skipped: clusterMode is false; to remove "
        "all rules, load []");
  CHECK(Outcome(R"([{"resource":"a","clusterMode":false},{"resource":"b","clusterMode":"0"},
                    {"resource":"c","clusterMode":0}])")
            .starts_with("0 of 3 rules apply: "));
  CHECK(Outcome("[]") == "loaded 0");
}

TEST_CASE("a file that was cut off at any byte is refused") {
  const std::string whole = "[" + std::string(kFlow) + "]";
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(Outcome(whole.substr(0, size)).starts_with("not valid JSON: "));
  }
  CHECK(Outcome(whole) == "loaded 1");
}

}  // namespace
}  // namespace nowcalls::core
