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
constexpr char kFlowId[] = "flowId";
constexpr std::string_view kClusterPrefix = "clusterConfig.";

std::vector<std::string> NamesIn(const json& object) {
  std::vector<std::string> names;
  for (const auto& entry : object.items()) names.push_back(entry.key());
  return names;
}

// A rule that is written with every key of its kind.
Rule SampleOf(RuleKind kind) {
  Rule rule;
  rule.count_per_interval = true;
  rule.is_go_flow = kind == RuleKind::kGoFlow;
  const bool is_go = kind == RuleKind::kGoHotParameter;
  if (is_go || kind == RuleKind::kHotParameter) {
    rule.param.emplace();
    rule.param->items.push_back({{ParamType::kString, "any"}, 1});
    if (is_go) rule.param->algorithm = ParamRule::Algorithm::kTokenBucket;
  }
  return rule;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool Lacks(const json* object, const std::string& key) {
  if (object == nullptr) return true;
  const auto found = object->find(key);
  return found == object->end() || found->is_null();
}

// nullptr: the rule has none.
const json* ClusterConfigOf(const json& rule) {
  const auto cluster = rule.find(kClusterConfig);
  return cluster == rule.end() || !cluster->is_object() ? nullptr : &*cluster;
}

}  // namespace

std::string RuleKeys::Misspelling::Sentence() const {
  if (key == meant)
    return Quoted(key) + " is one key and is ignored; write it inside of clusterConfig";
  return Quoted(key) + " is not known and is ignored; did you mean " + meant + "?";
}

RuleKeys::KindKeys RuleKeys::KeysOf(RuleKind kind) {
  const json full = json::parse(RuleToJson(SampleOf(kind)));
  KindKeys keys;
  keys.known = {NamesIn(full), NamesIn(full.at(kClusterConfig))};
  if (!IsPerParameter(kind)) {
    keys.others = PerParameterKeys();
    return keys;
  }
  for (const auto& [name, value] : full.items()) {
    if (!value.is_array()) continue;
    keys.items = name;
    keys.known[kItem] = NamesIn(value[0]);
  }
  return keys;
}

void RuleKeys::Choose(RuleKind kind) {
  if (!IsSupported(kind)) kind = RuleKind::kFlow;
  kind_ = &kinds_[static_cast<size_t>(kind)];
  if (kind_->known[kOuter].empty()) *kind_ = KeysOf(kind);
}

bool RuleKeys::IsKnownToAny(Level level, const std::string& key) {
  for (size_t kind = 0; kind < kSupportedKinds; ++kind) {
    Choose(static_cast<RuleKind>(kind));
    if (Contains(kind_->known[level], key)) return true;
  }
  return false;
}

std::string RuleKeys::StrayFlowIdOf(RuleKind kind, const json& rule) {
  if (const json* cluster = ClusterConfigOf(rule)) {
    for (const auto& entry : cluster->items()) {
      if (!entry.value().is_number_integer() || IsKnownToAny(kCluster, entry.key())) continue;
      Choose(kind);
      // Of a number that is meant for another key, a warning tells.
      if (MeantBy(kCluster, entry.key()).name.empty()) return PathOf(kCluster, entry.key());
    }
  }
  for (const auto& entry : rule.items()) {
    if (entry.key() == kFlowId) return kFlowId;
    const bool is_stray = entry.key() != kClusterConfig && entry.value().is_object();
    if (is_stray && entry.value().contains(kFlowId)) return entry.key() + "." + kFlowId;
  }
  return {};
}

std::vector<RuleKeys::Misspelling> RuleKeys::FindIn(RuleKind kind, const json& rule) {
  Choose(kind);
  std::vector<Misspelling> found;
  FindAt(kOuter, rule, rule, &found);
  if (const json* cluster = ClusterConfigOf(rule)) FindAt(kCluster, *cluster, rule, &found);
  const auto items = rule.find(kind_->items);
  if (items == rule.end() || !items->is_array()) return found;
  for (const json& item : *items) {
    if (item.is_object()) FindAt(kItem, item, rule, &found);
  }
  return found;
}

std::string RuleKeys::PathOf(Level level, const std::string& name) const {
  switch (level) {
    case kCluster: return std::string(kClusterPrefix) + name;
    case kItem: return kind_->items + "." + name;
    default: return name;
  }
}

// `object` is the rule itself, its clusterConfig or an item of it.
void RuleKeys::FindAt(Level level, const json& object, const json& rule,
                      std::vector<Misspelling>* found) {
  for (const auto& entry : object.items()) {
    const std::string& key = entry.key();
    if (Contains(kind_->known[level], key)) continue;
    // The author may have taken a path from a message for a key.
    const bool is_path = level == kOuter && key.starts_with(kClusterPrefix);
    const Key& meant =
        is_path ? MeantBy(kCluster, key.substr(kClusterPrefix.size())) : MeantBy(level, key);
    if (meant.name.empty()) continue;
    const json* place = &object;
    if (meant.level != level) place = meant.level == kOuter ? &rule : ClusterConfigOf(rule);
    if (!Lacks(place, meant.name)) continue;
    Misspelling misspelling{PathOf(level, key), PathOf(meant.level, meant.name)};
    const bool known = std::any_of(found->begin(), found->end(), [&](const Misspelling& other) {
      return other.key == misspelling.key;
    });
    if (!known) found->push_back(std::move(misspelling));
  }
}

const RuleKeys::Key& RuleKeys::MeantBy(Level level, const std::string& unknown) {
  static const Key none;
  auto& judged = kind_->judged[level];
  if (const auto found = judged.find(unknown); found != judged.end()) return found->second;
  if (judged_ == kJudgedMax) return none;
  ++judged_;
  // The first of the nearest names counts: one of the same level.
  const auto& known = kind_->known;
  std::vector<std::string> names = known[level];
  Level other = level;
  if (level != kItem) {
    other = level == kOuter ? kCluster : kOuter;
    names.insert(names.end(), known[other].begin(), known[other].end());
    names.insert(names.end(), kind_->others.begin(), kind_->others.end());
  }
  Key meant;
  meant.name = NearName(unknown, names);
  meant.level =
      Contains(known[other], meant.name) && !Contains(known[level], meant.name) ? other : level;
  return judged.emplace(unknown, std::move(meant)).first->second;
}

}  // namespace nowcalls::core
