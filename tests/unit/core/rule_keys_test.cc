#include "core/rules/rule_keys.h"

#include <doctest/doctest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/rules/rule.h"
#include "core/rules/rule_json.h"
#include "unit/core/rule_parsing.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;
using Sentences = std::vector<std::string>;

Sentences SentencesOf(RuleKeys* keys, const json& rule, RuleKind kind = RuleKind::kFlow) {
  Sentences sentences;
  for (const auto& misspelling : keys->FindIn(kind, rule))
    sentences.push_back(misspelling.Sentence());
  return sentences;
}

Sentences SentencesOf(const char* rule, RuleKind kind = RuleKind::kFlow) {
  RuleKeys keys;
  return SentencesOf(&keys, json::parse(rule), kind);
}

std::string Ignored(const std::string& unknown, const std::string& meant) {
  return "'" + unknown + "' is not known and is ignored; did you mean " + meant + "?";
}

constexpr char kParamFlow[] = R"({"resource":"r","paramIdx":0,"count":1,
  "paramFlowItemList":[{"object":"a","classType":"String","count":1}],
  "clusterMode":true,"clusterConfig":{"flowId":1,"countPerWindow":true}})";
constexpr char kHotspot[] = R"({"resource":"r","paramIndex":0,"threshold":1,
  "specificItems":[{"valKind":1,"valStr":"a","threshold":1}],"clusterConfig":{"flowId":1}})";
constexpr char kGoFlow[] = R"({"resource":"r","statIntervalInMs":1000,"threshold":1,
  "clusterConfig":{"flowId":1}})";
constexpr char kPlainFlow[] =
    R"({"resource":"r","count":1,"clusterMode":true,
        "clusterConfig":{"flowId":1,"countPerWindow":true}})";

// Every key of every kind written as `misspell` does.
template <typename Misspell>
void CheckEveryKey(Misspell misspell) {
  for (const char* written : {kPlainFlow, kParamFlow, kHotspot, kGoFlow}) {
    const RuleKind kind = RecogniseRule(json::parse(written)).kind;
    const json full = json::parse(RuleToJson(RuleOf(written)));
    const std::string items =
        kind == RuleKind::kHotParameter ? "paramFlowItemList" : "specificItems";
    for (const std::string& level : {std::string(), std::string("clusterConfig"), items}) {
      if (!level.empty() && !full.contains(level)) continue;
      const auto object_in = [&](json* rule) -> json& {
        if (level.empty()) return *rule;
        return level == items ? rule->at(level)[0] : rule->at(level);
      };
      json copy = full;
      const json original = object_in(&copy);
      for (const auto& entry : original.items()) {
        if (entry.key() == "clusterConfig") continue;
        json rule = full;
        json& object = object_in(&rule);
        object.erase(entry.key());
        const std::string unknown = misspell(entry.key());
        object[unknown] = 1;
        const std::string prefix = level.empty() ? "" : level + ".";
        RuleKeys keys;
        const Sentences found = SentencesOf(&keys, rule, kind);
        REQUIRE_MESSAGE(found.size() == 1, unknown);
        CHECK(found[0] == Ignored(prefix + unknown, prefix + entry.key()));
      }
    }
  }
}

TEST_CASE("every key of a rule is recognized with another case, a letter more, less or changed") {
  CheckEveryKey([](std::string key) {
    key[0] = static_cast<char>(key[0] - 'a' + 'A');
    return key;
  });
  CheckEveryKey([](const std::string& key) { return key + "s"; });
  CheckEveryKey([](const std::string& key) { return key.substr(1); });
  CheckEveryKey([](std::string key) {
    key[2] = '9';
    return key;
  });
}

TEST_CASE("every key of a rule is recognized with underscores or hyphens between its words") {
  for (const char separator : {'_', '-'}) {
    CheckEveryKey([separator](const std::string& key) {
      std::string words;
      for (const char c : key) {
        if (std::isupper(c) != 0) words += separator;
        words += static_cast<char>(std::tolower(c));
      }
      return words == key ? key + separator : words;
    });
  }
}

TEST_CASE("a key at the wrong level is told where it belongs, and so is the path of one") {
  CHECK(SentencesOf(R"({"resourceTimeout":100,"clusterConfig":{}})") ==
        Sentences{Ignored("resourceTimeout", "clusterConfig.resourceTimeout")});
  CHECK(SentencesOf(R"({"clusterConfig":{"maxQueueingTimeMs":100}})") ==
        Sentences{Ignored("clusterConfig.maxQueueingTimeMs", "maxQueueingTimeMs")});
  CHECK(SentencesOf(R"({"max_per_client":5,"clusterConfig":{}})") ==
        Sentences{Ignored("max_per_client", "clusterConfig.maxPerClient")});
  CHECK(SentencesOf(R"({"clusterConfig.strategy":5,"strategy":1,"clusterConfig":{}})") ==
        Sentences{"'clusterConfig.strategy' is one key and is ignored; write it inside of "
                  "clusterConfig"});
}

TEST_CASE("a key is misspelt only where the right one is missing or null") {
  CHECK(SentencesOf(R"({"counts":1,"count":2,"clusterConfig":{}})").empty());
  CHECK(SentencesOf(R"({"counts":1,"count":null,"clusterConfig":{}})") ==
        Sentences{Ignored("counts", "count")});
  CHECK(SentencesOf(R"({"resourceTimeout":1,"clusterConfig":{"resourceTimeout":2}})").empty());
}

TEST_CASE("a misspelt key of a hot parameter rule is not passed over in silence") {
  CHECK(SentencesOf(R"({"paramIndx":0,"clusterConfig":{"durationInSecs":1}})") ==
        Sentences{Ignored("paramIndx", "paramIdx"),
                  Ignored("clusterConfig.durationInSecs", "clusterConfig.durationInSec")});
}

TEST_CASE("a key that many items misspell is named once") {
  CHECK(SentencesOf(R"({"paramFlowItemList":[{"object":"1","classtype":"int"},
                                             {"object":"2","classtype":"int"},
                                             {"object":"3","Count":1}]})",
                    RuleKind::kHotParameter) ==
        Sentences{Ignored("paramFlowItemList.classtype", "paramFlowItemList.classType"),
                  Ignored("paramFlowItemList.Count", "paramFlowItemList.count")});
}

TEST_CASE("keys are looked for in a rule that has no clusterConfig") {
  for (const char* rule : {R"({"Shadow":1})", R"({"Shadow":1,"clusterConfig":[]})"}) {
    CHECK(SentencesOf(rule) == Sentences{Ignored("Shadow", "clusterConfig.shadow")});
  }
}

TEST_CASE("what Sentinel's dashboard writes is not misspelt") {
  CHECK(SentencesOf(R"({"id":1,"app":"a","ip":"b","port":1,"refResource":"x",
    "gmtCreate":1,"gmtModified":2,"regex":false,"clusterConfig":{}})")
            .empty());
}

TEST_CASE("of very many different unknown keys the first are looked at") {
  json rule = json::object();
  for (size_t i = 0; i < RuleKeys::kJudgedMax; ++i) {
    rule["a key of somebody else " + std::to_string(i)] = 1;
  }
  RuleKeys keys;
  CHECK(SentencesOf(&keys, rule).empty());
  CHECK(SentencesOf(&keys, json::parse(R"({"Count":1})")).empty());
  CHECK(SentencesOf(R"({"Count":1})") == Sentences{Ignored("Count", "count")});
}

}  // namespace
}  // namespace nowcalls::core
