// What is wrong with a rule set is said with the rule, the field and the reason.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/utf8.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_text.h"

namespace nowcalls::core {
namespace {

std::string ErrorOf(const std::string& json) {
  const auto parsed = ParseRules(json);
  REQUIRE_FALSE(parsed.ok());
  CHECK(StatusCodeName(parsed.status().code()) == "invalid_argument");
  return parsed.status().message();
}

// A rule that is valid but for `top`, members put in front, and `cluster`, put into clusterConfig.
std::string ErrorWith(const std::string& top, const std::string& cluster = "") {
  return ErrorOf(R"([{"resource":"r","count":1,"clusterMode":true)" +
                 (top.empty() ? "" : "," + top) + R"(,"clusterConfig":{"flowId":7)" +
                 (cluster.empty() ? "" : "," + cluster) + "}}]");
}

constexpr char kWhere[] = R"(rule 1 (resource "r", flowId 7): )";

TEST_CASE("resource must be a string that is not blank and not too long") {
  const auto with = [](const std::string& resource) {
    return ErrorOf(R"([{"resource":)" + resource +
                   R"(,"count":1,"clusterMode":true,"clusterConfig":{"flowId":7}}])");
  };
  CHECK(with(R"("")") == R"(rule 1 (resource "", flowId 7): resource must not be blank)");
  CHECK(with(R"(" \t\n ")").ends_with("resource must not be blank"));
  CHECK(with("null").ends_with("resource is missing"));
  CHECK(with("5").ends_with("resource must be a string, got 5"));
  const std::string long_name = "\"" + std::string(kResourceBytesMax + 1, 'x') + "\"";
  CHECK(with(long_name).ends_with("resource must be at most 1024 bytes long"));
  CHECK(with(long_name).size() < 200);
  for (const char* text : {R"("a\nb")", R"("a\u001b[2J")", R"("\u0085")"}) {
    CHECK(with(text).ends_with("resource must not hold control characters"));
  }
}

TEST_CASE("a key that is missing is told with the one that looks like it") {
  const auto with = [](const std::string& resource, const std::string& count,
                       const std::string& cluster) {
    return ErrorOf("[{" + resource + R"(:"r",)" + count + R"(:1,"clusterMode":true,)" + cluster +
                   "}]");
  };
  constexpr const char* kCluster = R"("clusterConfig":{"flowId":7})";
  CHECK(with(R"("Resource")", R"("count")", kCluster)
            .ends_with("resource is missing; 'Resource' is not known and is ignored; did you mean "
                       "resource?"));
  CHECK(with(R"("resource")", R"("Count")", kCluster).ends_with("did you mean count?"));
  CHECK(with(R"("resource")", R"("count")", R"("clusterconfig":{"flowId":7})")
            .ends_with("clusterConfig is missing; 'clusterconfig' is not known and is ignored; did "
                       "you mean clusterConfig?"));
  CHECK(with(R"("resource")", R"("count")", R"("flowId":7)")
            .ends_with("did you mean clusterConfig.flowId?"));
  CHECK(with(R"("resource")", R"("count")", R"("clusterConfig":{"flowid":7})")
            .ends_with("'clusterConfig.flowid' is not known and is ignored; did you mean "
                       "clusterConfig.flowId?"));
}

TEST_CASE("nesting is bounded whatever strings and comments look like") {
  const std::string rule =
      R"({"resource":"[[[[[[[[[[[[[[[[[[[[\"[[","count":1,"clusterMode":true,/*[[[[[[[[[[[[[[[[[[*/
          "clusterConfig":{"flowId":7}} //{{{{{{{{{{{{{{{{{{{{{{{{
      )";
  CHECK(ParseRules("[" + rule + "]").status().ToString() == "ok");
  CHECK(ErrorOf("[" + rule + "," + std::string(16, '[')) == "JSON is nested deeper than 16 levels");
  CHECK(ErrorOf("[" + std::string(1'000'000, '[')) == "JSON is nested deeper than 16 levels");
  // A comment ends where it ends, and a string may begin there.
  const Result<ParsedRules> parsed = ParseRules(
      R"(/**/[/*"*/{/* *//**/"resource":/**/"a//b/*c"/**/,"count"://"
         1,"clusterMode":true,"clusterConfig":{"flowId":7/**/}}])");
  REQUIRE(parsed.status().ToString() == "ok");
  CHECK(parsed->rules.at(0).resource == "a//b/*c");
  CHECK(ErrorOf("[\"open").starts_with("not valid JSON: "));
  const std::string deep =
      R"([{"clusterMode":)" + std::string(20, '[') + std::string(20, ']') + "}]";
  for (const char* before : {"/**//**/", "/* a *//* b */", "/***/ //", "//\r", "// a /*\r\n",
                             "/*/*/", "/*//*/", "/*\"*/", "//\"\n"}) {
    CAPTURE(before);
    const bool in_line = std::string(before).ends_with(" //");
    CHECK(ErrorOf(before + (in_line ? "\n" + deep : deep)) ==
          "JSON is nested deeper than 16 levels");
  }
  CHECK(ErrorOf("[\n\"//\", /*\n*/ /*/ open") ==
        "not valid JSON: a comment is not closed; it begins in line 3");
  CHECK(ErrorOf(std::string("[]\0 rest", 8)) == "not valid JSON: it contains a NUL byte");
}

TEST_CASE("count must be there and not negative") {
  const auto with = [](const std::string& count) {
    return ErrorOf(R"([{"resource":"r",)" + count +
                   R"("clusterMode":true,"clusterConfig":{"flowId":7}}])");
  };
  CHECK(with("") == std::string(kWhere) + "count is missing; it must be >= 0");
  CHECK(with(R"("count":-0.5,)") == std::string(kWhere) + "count must be >= 0");
  CHECK(with(R"("count":"",)") == std::string(kWhere) + "count is missing; it must be >= 0");
  for (const char* count : {R"("ten")", R"("1,5")", R"("NaN")", R"("0x10")", R"("10d")", "true"}) {
    CHECK(with("\"count\":" + std::string(count) + ",") ==
          std::string(kWhere) + "count must be a number, got " + count);
  }
}

TEST_CASE("each number has its range") {
  const std::string where = kWhere;
  const std::string must = " must be an integer ";
  CHECK(ErrorWith(R"("grade":2)") == where + "grade" + must + "from 0 to 1, got 2");
  CHECK(ErrorWith(R"("grade":0.5)") == where + "grade" + must + "from 0 to 1, got 0.5");
  CHECK(ErrorWith(R"("strategy":3)") == where + "strategy" + must + "from 0 to 2, got 3");
  CHECK(ErrorWith(R"("controlBehavior":-1)") ==
        where + "controlBehavior" + must + "from 0 to 3, got -1");
  CHECK(ErrorWith(R"("warmUpPeriodSec":-1)") ==
        where + "warmUpPeriodSec" + must + "from 0 to 2147483647, got -1");
  CHECK(ErrorWith(R"("maxQueueingTimeMs":"5s")") ==
        where + "maxQueueingTimeMs" + must + R"(from 0 to 2147483647, got "5s")");
  CHECK(ErrorWith(R"("limitApp":1)") == where + "limitApp must be a string, got 1");
  CHECK(ErrorWith("", R"("thresholdType":2)") ==
        where + "clusterConfig.thresholdType" + must + "from 0 to 1, got 2");
  CHECK(ErrorWith("", R"("fallbackToLocalWhenFail":2)") ==
        where + "clusterConfig.fallbackToLocalWhenFail must be true or false, got 2");
  CHECK(ErrorWith("", R"("strategy":-1)") ==
        where + "clusterConfig.strategy" + must + "from 0 to 2147483647, got -1");
  CHECK(ErrorWith("", R"("sampleCount":0)") ==
        where + "clusterConfig.sampleCount" + must + "from 1 to 2147483647, got 0");
  CHECK(ErrorWith("", R"("windowIntervalMs":0)") ==
        where + "clusterConfig.windowIntervalMs" + must + "from 1 to 2147483647, got 0");
  CHECK(ErrorWith("", R"("resourceTimeoutStrategy":3)") ==
        where + "clusterConfig.resourceTimeoutStrategy" + must + "from 0 to 2, got 3");
  CHECK(ErrorWith("", R"("acquireRefuseStrategy":4)") ==
        where + "clusterConfig.acquireRefuseStrategy" + must + "from 0 to 3, got 4");
}

TEST_CASE("times are at least a millisecond and at most thirty days") {
  const std::string where = kWhere;
  for (const std::string field : {"resourceTimeout", "clientOfflineTime"}) {
    const std::string must =
        where + "clusterConfig." + field + " must be an integer from 1 to 2592000000, got ";
    for (const std::string value : {"0", "-1", "2592000001", "1e300", "true", "[]"}) {
      const std::string error = ErrorWith("", "\"" + field + "\":" + value);
      CHECK(error.starts_with(must));
    }
  }
}

TEST_CASE("windowIntervalMs must be divisible by sampleCount") {
  CHECK(ErrorWith("", R"("sampleCount":3)") ==
        std::string(kWhere) + "clusterConfig.windowIntervalMs must be divisible by sampleCount");
}

TEST_CASE("flowId must be positive and a whole number of 63 bits") {
  const auto with = [](const std::string& config) {
    return ErrorOf(R"([{"resource":"r","count":1,"clusterMode":true,"clusterConfig":)" + config +
                   "}]");
  };
  for (const std::string id :
       {"0", "-1", "1.5", "9223372036854775808", "1e18", "\"7x\"", "\"0\""}) {
    const std::string error = with(R"({"flowId":)" + id + "}");
    CAPTURE(error);
    CHECK(
        error.find("clusterConfig.flowId must be an integer from 1 to 9223372036854775807, got ") !=
        std::string::npos);
  }
}

TEST_CASE("clusterMode must be a boolean, and clusterConfig an object") {
  CHECK(ErrorOf(R"([{"resource":"r","count":1,"clusterMode":"yes"}])") ==
        R"(rule 1 (resource "r"): clusterMode must be true or false, got "yes")");
  CHECK(ErrorOf(R"([{"resource":"r","count":1,"clusterMode":true,"clusterConfig":[]}])") ==
        R"(rule 1 (resource "r"): clusterConfig must be an object)");
}

TEST_CASE("maxHoldMs is 0 to 30 days, for rules of every kind") {
  CHECK(ErrorWith("", R"("maxHoldMs":-1)")
            .find("maxHoldMs must be an integer from 0 to "
                  "2592000000, got -1") != std::string::npos);
  CHECK(ErrorWith("", R"("maxHoldMs":2592000001)").find("maxHoldMs must be") != std::string::npos);
  for (const char* const kind :
       {R"("count":1,)", R"("count":1,"paramIdx":0,)", R"("threshold":1,"paramIndex":0,)",
        R"("threshold":1,"statIntervalInMs":1000,)"}) {
    CAPTURE(kind);
    const auto parsed =
        ParseRules(R"([{"resource":"r",)" + std::string(kind) +
                   R"("clusterMode":true,"clusterConfig":{"flowId":1,"maxHoldMs":"2592000000"}}])");
    REQUIRE(parsed.ok());
    CHECK(parsed->rules.at(0).max_hold_ms == 2'592'000'000);
    const std::string written = RuleToJson(parsed->rules[0]);
    CHECK(written.find(R"("maxHoldMs":2592000000,)") != std::string::npos);
    CHECK(ParseRules("[" + written + "]")->rules.at(0) == parsed->rules[0]);
  }
}

TEST_CASE("maxPerClient is a count or a share of the level, shadow a boolean") {
  const std::string where = kWhere;
  CHECK(ErrorWith("", R"("maxPerClient":-1)") ==
        where + "clusterConfig.maxPerClient must be an integer from 0 to 2147483647, got -1");
  for (const char* value : {R"("0%")", R"("101%")", R"("-5%")", R"("25")", R"("%")", R"("25 %")",
                            R"("")", R"("nan%")", R"("25%x")"}) {
    CHECK(ErrorWith("", std::string(R"("maxPerClient":)") + value) ==
          where +
              "clusterConfig.maxPerClient must be a count or a share of the level above 0% and " +
              R"(up to 100%, such as "25%", got )" + value);
  }
  CHECK(ErrorWith("", R"("maxPerClient":true)").find("must be an integer") != std::string::npos);
  CHECK(ErrorWith("", R"("shadow":"yes")") ==
        where + R"(clusterConfig.shadow must be true or false, got "yes")");
}

TEST_CASE("the rule that is wrong is told by its position, counting skipped ones") {
  const std::string error = ErrorOf(R"([
    {"resource":"a","clusterMode":false},
    {"resource":"b","count":1,"clusterMode":true,"clusterConfig":{"flowId":2}},
    {"resource":"c","count":-1,"clusterMode":true,"clusterConfig":{"flowId":3}}])");
  CHECK(error == R"(rule 3 (resource "c", flowId 3): count must be >= 0)");
}

TEST_CASE("a flowId that comes twice in a set is refused") {
  const std::string error = ErrorOf(R"([
    {"resource":"a","count":1,"clusterMode":true,"clusterConfig":{"flowId":2}},
    {"resource":"b","count":1,"clusterMode":true,"clusterConfig":{"flowId":2.0}}])");
  CHECK(error.ends_with("clusterConfig.flowId appears twice in this set"));
  CHECK(error.starts_with(R"(rule 2 (resource "b")"));
}

TEST_CASE("what is not an array of objects is refused") {
  const std::string must = "rules must be a JSON array of objects";
  CHECK(ErrorOf("{}") == must);
  CHECK(ErrorOf("null") == must + ", got null; [] removes all rules");
  CHECK(ErrorOf("7") == must + ", got 7");
  CHECK(ErrorOf(R"("[]")") == must + R"(, got "[]")");
  CHECK(ErrorOf(R"({"success":true,"data":[{"resource":"r"}]})") ==
        must + "; write the array of 'data' alone");
  CHECK(ErrorOf(R"({"resource":"r","count":1,"clusterMode":true,"clusterConfig":{"flowId":7}})") ==
        must + "; put [ ] around the rule");
  CHECK(ErrorOf("[[]]") == "rule 1: must be an object");
  CHECK(ErrorOf("[7]") == "rule 1: must be an object");
}

TEST_CASE("text that is not JSON is refused with its place") {
  for (const char* text : {"[", "[{]", "[]x", "nul", "[{\"a\":}]", "/ open", "\xff"}) {
    const std::string error = ErrorOf(text);
    CAPTURE(text);
    CHECK(error.starts_with("not valid JSON: parse error at line 1, column "));
  }
  CHECK(ErrorOf("[\n\n  }").starts_with("not valid JSON: parse error at line 3, column 3"));
}

TEST_CASE("a text without JSON is no set, and is told how to remove all rules") {
  for (const char* text : {"", "\n", "// nothing\n", "\xef\xbb\xbf", "/* gone */ "}) {
    CAPTURE(text);
    CHECK(ErrorOf(text) == "not valid JSON: the text is empty; [] stands for a set without rules");
  }
}

TEST_CASE("a text in UTF-16 is told as that") {
  CHECK(ErrorOf(std::string("\xff\xfe[\0]\0", 6)) ==
        "not valid JSON: the text is UTF-16; save it as UTF-8");
  CHECK(ErrorOf(std::string("\xfe\xff\0[\0]", 6)).find("UTF-16") != std::string::npos);
}

TEST_CASE("a text of more values than any set has is refused before documents are built of it") {
  std::string text = "[";
  for (int i = 0; i < 5'000'000; ++i) text += "{},";
  CHECK(ErrorOf(text) == "JSON holds more than 10000000 values");
  // What is in a string is one value.
  const std::string commas = std::string(6'000'000, ',') + std::string(6'000'000, ',');
  CHECK(ErrorOf("[\"" + commas + "\"]") == "rule 1: must be an object");
}

TEST_CASE("a set of more rules than a server takes is refused, whatever is skipped beside them") {
  const auto rules = [](uint32_t count) {
    std::string text = R"([{"resource":"local","count":1,"clusterMode":false})";
    for (uint32_t i = 1; i <= count; ++i) {
      text += R"(,{"resource":"r","count":1,"clusterMode":true,"clusterConfig":{"flowId":)" +
              std::to_string(i) + "}}";
    }
    return text + "]";
  };
  const auto most = ParseRules(rules(Limits().rules_max));
  REQUIRE(most.ok());
  CHECK(most->rules.size() == Limits().rules_max);
  CHECK(ErrorOf(rules(Limits().rules_max + 1)) ==
        "more than 200000 rules, the most that a server takes (rules_max)");
}

TEST_CASE("numbers too large for any type are refused") {
  CHECK(ErrorWith(R"("warmUpPeriodSec":2147483648)").find("warmUpPeriodSec") != std::string::npos);
  CHECK(ErrorOf(R"([{"resource":"r","count":1e400,"clusterMode":true}])") ==
        "not valid JSON: line 1: number overflow parsing '1e400'");
  // In its line, whatever numbers, strings and comments are before it.
  CHECK(ErrorOf("[{\"resource\":\"1e500\",\n\"grade\":-1.5e-400, // 1e600\n\n"
                "\"count\":-2e400,\n\"grade\":1e700}]") ==
        "not valid JSON: line 4: number overflow parsing '-2e400'");
}

TEST_CASE("text that is not UTF-8 is refused, in words that are UTF-8") {
  const std::string error = ErrorOf("[{\"resource\":\"caf\xe9\",\"count\":1}]");
  CHECK(error.starts_with("not valid JSON: "));
  CHECK(IsUtf8(error));
}

TEST_CASE("an error is a line, however long what is wrong is") {
  const std::string endless(60'000, 'x');
  CHECK(ErrorOf("[{\"resource\":\"" + endless).size() < 400);
  CHECK(ErrorOf("[{\"count\":" + std::string(60'000, '9') + "e" + std::string(500, '9') + "}]")
            .size() < 400);
  CHECK(ErrorWith("\"grade\":\"" + endless + "\"").size() < 400);
  CHECK(ErrorOf("[{\"resource\":\"" + endless +
                R"(","count":-1,"clusterMode":true,"clusterConfig":{"flowId":1}}])")
            .size() < 400);
}

TEST_CASE("a key that encloses repeated keys is told by its beginning, however long it is") {
  std::string endless;
  while (endless.size() < 30'000) endless += "\xc3\xa9";
  std::string inner = R"("a":0)";
  for (int i = 0; i < 3'000; ++i) inner += R"(,"a":0)";
  nlohmann::json document;
  std::vector<RepeatedKey> repeated;
  REQUIRE(ReadRuleText("[{\"" + endless + "\":{" + inner + "}}]", &document, &repeated).ok());
  REQUIRE(repeated.size() == 3'000);
  for (const RepeatedKey& key : repeated) REQUIRE(key.path.size() < 100);
  const auto parsed = ParseRules("[{\"resource\":\"r\",\"count\":1,\"clusterMode\":true,\"" +
                                 endless + "\":{" + inner + "},\"clusterConfig\":{\"flowId\":1}}]");
  REQUIRE(parsed.ok());
  for (const std::string& remark : parsed->Remarks()) {
    CHECK(remark.size() < 400);
    CHECK(IsUtf8(remark));
  }
}

TEST_CASE("a single rule is checked like one of a set") {
  CHECK(ParseRule("[]").status().message() == "a rule must be a JSON object");
  CHECK(
      ParseRule(R"({"resource":"r","count":-1,"clusterConfig":{"flowId":7}})").status().message() ==
      "count must be >= 0");
  CHECK(ParseRule("{").status().code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace nowcalls::core
