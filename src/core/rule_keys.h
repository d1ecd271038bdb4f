// RuleKeys: keys of a rule that nobody reads, though they were probably meant to be some that are
// read: misspelt ones, and those that stand outside of clusterConfig and belong in it, or the other
// way round. Other unknown keys are tolerated without a word: Sentinel's dashboard writes some.
//
// Thread: one at a time. One for all rules of a set: the same misspelling is looked for once.
#ifndef NOWCALLS_CORE_RULE_KEYS_H_
#define NOWCALLS_CORE_RULE_KEYS_H_

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
    // As "clusterConfig.maxperclient"; the same as `meant` where a path was written as one key.
    std::string key;
    std::string meant;  // As "clusterConfig.maxPerClient".

    std::string Sentence() const;
  };

  RuleKeys();

  // Such keys of `rule`, an object. A key counts only where the one it was meant to be is missing,
  // or null. Of a set at most kJudgedMax different unknown keys are looked at: it may come from any
  // client, and each takes some microseconds of the loop.
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

#endif  // NOWCALLS_CORE_RULE_KEYS_H_
