#include "core/rule_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/near_name.h"
#include "base/text.h"
#include "core/rule.h"
#include "core/rule_json.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

constexpr char kClusterConfig[] = "clusterConfig";

std::vector<std::string> KeysOf(const json& object) {
  std::vector<std::string> keys;
  for (const auto& entry : object.items()) keys.push_back(entry.key());
  return keys;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool Lacks(const json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null();
}

}  // namespace

RuleKeys::RuleKeys() {
  const json full = json::parse(RuleToJson(Rule()));  // Has every field.
  known_ = {KeysOf(full), KeysOf(full.at(kClusterConfig))};
}

std::vector<std::string> RuleKeys::Misspelt(const json& rule) {
  std::vector<std::string> sentences;
  AddMisspelt(kOuter, rule, &sentences);
  AddMisspelt(kCluster, rule, &sentences);
  return sentences;
}

void RuleKeys::AddMisspelt(Level level, const json& rule, std::vector<std::string>* sentences) {
  const auto object_of = [&](Level of) -> const json& {
    return of == kOuter ? rule : rule.at(kClusterConfig);
  };
  const auto path = [](Level of, const std::string& key) {
    return of == kOuter ? key : std::string(kClusterConfig) + "." + key;
  };
  for (const auto& entry : object_of(level).items()) {
    if (Contains(known_[level], entry.key())) continue;
    const Key& meant = MeantBy(level, entry.key());
    if (meant.name.empty() || !Lacks(object_of(meant.level), meant.name)) continue;
    sentences->push_back(Quoted(path(level, entry.key())) +
                         " is not known and is ignored; did you mean " +
                         path(meant.level, meant.name) + "?");
  }
}

const RuleKeys::Key& RuleKeys::MeantBy(Level level, const std::string& unknown) {
  static const Key none;
  auto& judged = judged_[level];
  if (const auto found = judged.find(unknown); found != judged.end()) return found->second;
  if (judged_[kOuter].size() + judged_[kCluster].size() >= kJudgedMax) return none;
  // Of names that are as near as each other the first is taken: one of the same level.
  const Level other = level == kOuter ? kCluster : kOuter;
  std::vector<std::string> names = known_[level];
  names.insert(names.end(), known_[other].begin(), known_[other].end());
  Key meant;
  meant.name = NearName(unknown, names);
  meant.level = Contains(known_[level], meant.name) ? level : other;
  return judged.emplace(unknown, std::move(meant)).first->second;
}

}  // namespace nowcalls::core
