#include "core/rule_keys.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/rule.h"
#include "core/rule_json.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;
using Sentences = std::vector<std::string>;

json FullRule() { return json::parse(RuleToJson(Rule())); }

std::string Ignored(const std::string& unknown, const std::string& meant) {
  return "'" + unknown + "' is not known and is ignored; did you mean " + meant + "?";
}

// Every key written as `misspell` does.
template <typename Misspell>
void CheckEveryKey(Misspell misspell) {
  const json full = FullRule();
  for (const char* level : {"", "clusterConfig"}) {
    const bool outer = *level == '\0';
    for (const auto& entry : (outer ? full : full[level]).items()) {
      if (entry.key() == "clusterConfig") continue;
      json rule = full;
      json& object = outer ? rule : rule[level];
      object.erase(entry.key());
      const std::string unknown = misspell(entry.key());
      object[unknown] = 1;
      const std::string prefix = outer ? "" : "clusterConfig.";
      const Sentences found = RuleKeys().Misspelt(rule);
      REQUIRE_MESSAGE(found.size() == 1, unknown);
      CHECK(found[0] == Ignored(prefix + unknown, prefix + entry.key()));
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

TEST_CASE("a key at the wrong level is told where it belongs") {
  RuleKeys keys;
  CHECK(keys.Misspelt(json::parse(R"({"resourceTimeout":100,"clusterConfig":{}})")) ==
        Sentences{Ignored("resourceTimeout", "clusterConfig.resourceTimeout")});
  CHECK(keys.Misspelt(json::parse(R"({"clusterConfig":{"maxQueueingTimeMs":100}})")) ==
        Sentences{Ignored("clusterConfig.maxQueueingTimeMs", "maxQueueingTimeMs")});
  CHECK(keys.Misspelt(json::parse(R"({"max_per_client":5,"clusterConfig":{}})")) ==
        Sentences{Ignored("max_per_client", "clusterConfig.maxPerClient")});
}

TEST_CASE("a key is misspelt only where the right one is missing or null") {
  RuleKeys keys;
  CHECK(keys.Misspelt(json::parse(R"({"counts":1,"count":2,"clusterConfig":{}})")).empty());
  CHECK(keys.Misspelt(json::parse(R"({"counts":1,"count":null,"clusterConfig":{}})")) ==
        Sentences{Ignored("counts", "count")});
  CHECK(keys.Misspelt(json::parse(R"({"resourceTimeout":1,"clusterConfig":{"resourceTimeout":2}})"))
            .empty());
}

TEST_CASE("what Sentinel's dashboard writes is not misspelt") {
  json rule = FullRule();
  for (const char* key :
       {"id", "app", "ip", "port", "refResource", "gmtCreate", "gmtModified", "regex"}) {
    rule[key] = nullptr;
  }
  CHECK(RuleKeys().Misspelt(rule).empty());
  CHECK(RuleKeys()
            .Misspelt(json::parse(R"({"id":1,"app":"a","ip":"b","port":1,"refResource":"x",
    "gmtCreate":1,"gmtModified":2,"regex":false,"clusterConfig":{}})"))
            .empty());
}

TEST_CASE("of very many unknown keys a thousand are looked at") {
  json rule = json::parse(R"({"clusterConfig":{}})");
  for (size_t i = 0; i < RuleKeys::kJudgedMax; ++i) {
    rule[std::string("a key of somebody else ") + std::to_string(i)] = 1;
  }
  RuleKeys keys;
  CHECK(keys.Misspelt(rule).empty());
  const json misspelt = json::parse(R"({"Count":1,"clusterConfig":{}})");
  CHECK(keys.Misspelt(misspelt).empty());
  CHECK(RuleKeys().Misspelt(misspelt) == Sentences{Ignored("Count", "count")});
}

}  // namespace
}  // namespace nowcalls::core
