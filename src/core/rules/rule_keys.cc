#include "core/rules/rule_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/near_name.h"
#include "base/text.h"
#include "core/rules/rule.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_kind.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

constexpr char kClusterConfig[] = "clusterConfig";
constexpr std::string_view kClusterPrefix = "clusterConfig.";

std::vector<std::string> KeysOf(const json& object) {
  std::vector<std::string> keys;
  for (const auto& entry : object.items()) keys.push_back(entry.key());
  return keys;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool Lacks(const json* object, const std::string& key) {
  if (object == nullptr) return true;
  const auto found = object->find(key);
  return found == object->end() || found->is_null();
}

}  // namespace

RuleKeys::RuleKeys() {
  const json full = json::parse(RuleToJson(Rule()));  // Has every field.
  known_ = {KeysOf(full), KeysOf(full.at(kClusterConfig))};
}

std::string RuleKeys::Misspelling::Sentence() const {
  if (key == meant)
    return Quoted(key) + " is one key and is ignored; write it inside of clusterConfig";
  return Quoted(key) + " is not known and is ignored; did you mean " + meant + "?";
}

std::vector<RuleKeys::Misspelling> RuleKeys::FindIn(const json& rule) {
  std::vector<Misspelling> found;
  FindAt(kOuter, rule, &found);
  FindAt(kCluster, rule, &found);
  return found;
}

// nullptr: the rule has none.
const json* RuleKeys::ObjectOf(Level level, const json& rule) {
  if (level == kOuter) return &rule;
  const auto cluster = rule.find(kClusterConfig);
  return cluster == rule.end() || !cluster->is_object() ? nullptr : &*cluster;
}

std::string RuleKeys::PathOf(Level level, const std::string& name) {
  return level == kOuter ? name : std::string(kClusterPrefix) + name;
}

void RuleKeys::FindAt(Level level, const json& rule, std::vector<Misspelling>* found) {
  const json* object = ObjectOf(level, rule);
  if (object == nullptr) return;
  for (const auto& entry : object->items()) {
    const std::string& key = entry.key();
    if (Contains(known_[level], key)) continue;
    // The author may have taken a path from a message for a key.
    const bool is_path = level == kOuter && key.starts_with(kClusterPrefix);
    const Key& meant =
        is_path ? MeantBy(kCluster, key.substr(kClusterPrefix.size())) : MeantBy(level, key);
    if (meant.name.empty() || !Lacks(ObjectOf(meant.level, rule), meant.name)) continue;
    found->push_back({PathOf(level, key), PathOf(meant.level, meant.name)});
  }
}

const RuleKeys::Key& RuleKeys::MeantBy(Level level, const std::string& unknown) {
  static const Key none;
  auto& judged = judged_[level];
  if (const auto found = judged.find(unknown); found != judged.end()) return found->second;
  if (judged_[kOuter].size() + judged_[kCluster].size() >= kJudgedMax) return none;
  // The first of the nearest names counts: one of the same level.
  const Level other = level == kOuter ? kCluster : kOuter;
  std::vector<std::string> names = known_[level];
  names.insert(names.end(), known_[other].begin(), known_[other].end());
  for (std::string& key : PerParameterKeys()) names.push_back(std::move(key));
  Key meant;
  meant.name = NearName(unknown, names);
  meant.level =
      Contains(known_[other], meant.name) && !Contains(known_[level], meant.name) ? other : level;
  return judged.emplace(unknown, std::move(meant)).first->second;
}

}  // namespace nowcalls::core
