// RuleKeys: unknown keys of a rule that look like known ones: misspelt, or on the wrong side of
// clusterConfig.
//
// Thread: one at a time. One object serves all rules of a set.
#ifndef NOWCALLS_CORE_RULES_RULE_KEYS_H_
#define NOWCALLS_CORE_RULES_RULE_KEYS_H_

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/rules/rule_kind.h"

namespace nowcalls::core {

class RuleKeys {
 public:
  struct Misspelling {
    // As "clusterConfig.maxperclient". Equals `meant` if the author wrote a path as one key.
    std::string key;
    std::string meant;  // As "clusterConfig.maxPerClient".

    std::string Sentence() const;
  };

  // `rule`: an object. A key counts only if the key that it looks like is missing or null. Judges
  // kJudgedMax unknown keys at most, each some microseconds. Names a key of several items once. An
  // unsupported kind counts as a FlowRule.
  std::vector<Misspelling> FindIn(RuleKind kind, const nlohmann::json& rule);

  static constexpr size_t kJudgedMax = 100;

  // Where a rule without flowId may have its number: a number under a key of clusterConfig that is
  // not known, or a flowId elsewhere. As "clusterConfig.id"; empty: nowhere.
  std::string StrayFlowIdOf(RuleKind kind, const nlohmann::json& rule);

 private:
  enum Level : size_t { kOuter, kCluster, kItem, kLevels };
  struct Key {
    Level level = kOuter;
    std::string name;  // Empty: none.
  };
  struct KindKeys {
    std::array<std::vector<std::string>, kLevels> known;  // Empty: not looked up yet.
    std::array<std::unordered_map<std::string, Key>, kLevels> judged;
    std::string items;                // The key of the list of values; empty: the kind has none.
    std::vector<std::string> others;  // Keys of other kinds that this one is easily mistaken for.
  };

  static KindKeys KeysOf(RuleKind kind);
  void Choose(RuleKind kind);  // Sets kind_.
  bool IsKnownToAny(Level level, const std::string& key);
  std::string PathOf(Level level, const std::string& name) const;
  void FindAt(Level level, const nlohmann::json& object, const nlohmann::json& rule,
              std::vector<Misspelling>* found);
  const Key& MeantBy(Level level, const std::string& unknown);

  std::array<KindKeys, kSupportedKinds> kinds_;
  KindKeys* kind_ = nullptr;  // Of the rule that is being read.
  size_t judged_ = 0;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_KEYS_H_
