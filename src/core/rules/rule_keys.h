// RuleKeys: unknown keys of a rule that look like known ones. They are misspelt, or stand outside
// of clusterConfig and belong in it, or the other way round. Other unknown keys are tolerated
// without a word: Sentinel's dashboard writes some.
//
// Thread: one at a time. One object serves all rules of a set and judges each misspelling once.
#ifndef NOWCALLS_CORE_RULES_RULE_KEYS_H_
#define NOWCALLS_CORE_RULES_RULE_KEYS_H_

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace nowcalls::core {

class RuleKeys {
 public:
  struct Misspelling {
    // As "clusterConfig.maxperclient". Equals `meant` if the author wrote a path as one key.
    std::string key;
    std::string meant;  // As "clusterConfig.maxPerClient".

    std::string Sentence() const;
  };

  RuleKeys();

  // Such keys of `rule`, an object. A key counts only if the key that it looks like is missing or
  // null. Judges at most kJudgedMax different unknown keys: a set may come from any client, and
  // each key takes some microseconds of the loop.
  std::vector<Misspelling> FindIn(const nlohmann::json& rule);

  static constexpr size_t kJudgedMax = 100;

 private:
  enum Level : size_t { kOuter, kCluster, kLevels };
  struct Key {
    Level level = kOuter;
    std::string name;  // Empty: none.
  };

  static const nlohmann::json* ObjectOf(Level level, const nlohmann::json& rule);
  static std::string PathOf(Level level, const std::string& name);
  void FindAt(Level level, const nlohmann::json& rule, std::vector<Misspelling>* found);
  const Key& MeantBy(Level level, const std::string& unknown);

  std::array<std::vector<std::string>, kLevels> known_;
  std::array<std::unordered_map<std::string, Key>, kLevels> judged_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_KEYS_H_
