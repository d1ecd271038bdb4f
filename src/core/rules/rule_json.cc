#include "core/rules/rule_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/limits.h"
#include "base/near_name.h"
#include "base/text.h"
#include "core/rules/rule_fields.h"
#include "core/rules/rule_keys.h"
#include "core/rules/rule_kind.h"
#include "core/rules/rule_text.h"
#include "core/rules/rule_values.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

constexpr char kClusterMode[] = "clusterMode";

// "rule 3 (resource "orders", flowId 7)", as far as the object tells.
std::string Describe(const json& object, size_t position) {
  std::string text = "rule " + std::to_string(position);
  if (!object.is_object()) return text;
  std::string details;
  const auto resource = object.find("resource");
  if (resource != object.end() && resource->is_string()) {
    details = "resource " + ExcerptOf(*resource);
  }
  const auto cluster = object.find("clusterConfig");
  if (cluster != object.end() && cluster->is_object()) {
    const auto flow_id = cluster->find("flowId");
    if (flow_id != cluster->end() && (flow_id->is_number() || flow_id->is_string())) {
      details += (details.empty() ? "flowId " : ", flowId ") + ExcerptOf(*flow_id);
    }
  }
  return details.empty() ? text : text + " (" + details + ")";
}

// Why an object of another kind refuses its set.
std::string NotAFlowRule(const RecognisedRule& recognised) {
  const std::string name(RuleKindName(recognised.kind));
  if (recognised.kind == RuleKind::kUnknown) {
    return "is " + name +
           ": expected a FlowRule with resource, count, clusterMode and clusterConfig";
  }
  return Quoted(recognised.key) + " makes it " + name +
         (IsPerParameter(recognised.kind) ? ", which this version does not support"
                                          : ", which sets no limit here");
}

// What is wrong with a document that is no array.
std::string NotAnArray(const json& document) {
  const std::string must = "rules must be a JSON array of objects";
  if (document.is_null()) return must + ", got null; [] removes all rules";
  if (!document.is_object()) return must + ", got " + ExcerptOf(document);
  for (const auto& [key, value] : document.items()) {
    if (value.is_array()) return must + "; write the array of " + Quoted(key) + " alone";
  }
  if (IsSupported(RecogniseRule(document).kind)) return must + "; put [ ] around the rule";
  return must;
}

// Warns of a level that is 0 although the count is not.
std::optional<std::string> RoundsToZero(const Rule& rule) {
  if (rule.count == 0 || WholeCalls(rule.count) > 0) return std::nullopt;
  const std::string count = "count " + NumberText(rule.count);
  if (rule.threshold_type == ThresholdType::kGlobal) {
    return count + " is rounded down: the level is 0, and every acquire is refused";
  }
  constexpr double kClientsMax = 1e9;
  const auto clients = static_cast<int64_t>(std::min(std::ceil(1 / rule.count), kClientsMax));
  return count + " for each client is rounded down: the level is 0 while fewer than " +
         std::to_string(clients) + " clients are online";
}

// Reads one set, object by object.
class SetReader {
 public:
  explicit SetReader(const std::vector<RepeatedKey>& repeated) : repeated_(repeated) {}

  Status Read(const json& document);
  ParsedRules& parsed() { return parsed_; }

 private:
  Status ReadObject(const json& object);
  std::string ReadMode(const json& object, bool* applies);
  bool IsAmbiguous(const json& object) const;
  bool IsRepeated(const std::string& path) const;
  void Skip(const RecognisedRule& recognised);
  Status Add(const json& object);
  void WarnOf(const Rule& rule);
  std::string HintAt(std::string_view key, const json& object);
  Status Refusal(const std::string& why) const {
    return Status::InvalidArgument(where_ + ": " + why);
  }

  const std::vector<RepeatedKey>& repeated_;
  ParsedRules parsed_;
  RuleKeys keys_;
  absl::flat_hash_set<int64_t> flow_ids_;
  // Of the object that is being read.
  size_t position_ = 0;
  std::string where_;
  size_t repeated_begin_ = 0;  // In repeated_: its keys are [begin, end).
  size_t repeated_end_ = 0;
};

Status SetReader::Read(const json& document) {
  if (!document.is_array()) return Status::InvalidArgument(NotAnArray(document));
  for (const json& object : document) {
    where_ = Describe(object, ++position_);
    repeated_begin_ = repeated_end_;
    while (repeated_end_ < repeated_.size() && repeated_[repeated_end_].position == position_) {
      ++repeated_end_;
    }
    NOWCALLS_RETURN_IF_ERROR(ReadObject(object));
  }
  if (document.empty() || !parsed_.rules.empty()) return {};
  const std::string count = std::to_string(document.size());
  return Status::InvalidArgument("0 of " + count + " rules apply: " + parsed_.skipped.Lines()[0] +
                                 (document.size() > 1 ? ", and so are the others" : "") +
                                 "; to remove all rules, load []");
}

Status SetReader::ReadObject(const json& object) {
  if (!object.is_object()) return Refusal("must be an object");
  const RecognisedRule recognised = RecogniseRule(object);
  const bool supported = IsSupported(recognised.kind);
  if (!supported && !IsPerParameter(recognised.kind)) return Refusal(NotAFlowRule(recognised));
  bool applies = false;
  const std::string wrong = ReadMode(object, &applies);
  // A hot parameter rule that is explicitly local concerns nobody here.
  if (!supported && (applies || !wrong.empty())) return Refusal(NotAFlowRule(recognised));
  if (!wrong.empty()) return Refusal(wrong + HintAt(kClusterMode, object));
  if (applies) return Add(object);
  const auto resource = object.find("resource");
  if (resource == object.end() || resource->is_null()) {
    return Refusal("resource is missing" + HintAt("resource", object));
  }
  Skip(recognised);
  return {};
}

// What is wrong with clusterMode; empty: nothing.
std::string SetReader::ReadMode(const json& object, bool* applies) {
  const auto mode = object.find(kClusterMode);
  if (mode == object.end() || IsUnset(*mode)) {
    return "clusterMode is missing; write \"clusterMode\": true to limit calls here, or false to "
           "leave the rule to clients";
  }
  const std::optional<bool> value = BooleanOf(*mode);
  if (!value.has_value()) return "clusterMode must be true or false, got " + ExcerptOf(*mode);
  *applies = *value;
  return IsAmbiguous(object) ? "clusterMode appears twice" : "";
}

// Whether the object has clusterMode again, in the same or in another spelling that Sentinel's
// parser takes for it.
bool SetReader::IsAmbiguous(const json& object) const {
  if (IsRepeated(kClusterMode)) return true;
  static const std::string plain = PlainName(kClusterMode);
  for (const auto& [key, value] : object.items()) {
    if (key.size() >= plain.size() && key != kClusterMode && PlainName(key) == plain) return true;
  }
  return false;
}

bool SetReader::IsRepeated(const std::string& path) const {
  for (size_t i = repeated_begin_; i < repeated_end_; ++i) {
    if (repeated_[i].path == path) return true;
  }
  return false;
}

void SetReader::Skip(const RecognisedRule& recognised) {
  std::string text = where_ + " is skipped: clusterMode is false";
  if (!IsSupported(recognised.kind)) {
    text += ", and it is " + std::string(RuleKindName(recognised.kind));
  }
  parsed_.skipped.Add(std::move(text));
}

Status SetReader::Add(const json& object) {
  Rule rule;
  if (const std::string wrong = ReadRuleFields(object, &rule); !wrong.empty()) {
    return Refusal(wrong + HintAt(wrong.substr(0, wrong.find(' ')), object));
  }
  if (!flow_ids_.insert(rule.flow_id.value).second) {
    return Refusal("clusterConfig.flowId appears twice in this set");
  }
  for (const RuleKeys::Misspelling& misspelling : keys_.FindIn(object)) {
    parsed_.ignored.Add(where_ + ": " + misspelling.Sentence());
  }
  WarnOf(rule);
  parsed_.rules.push_back(std::move(rule));
  const uint32_t rules_max = Limits().rules_max;
  if (parsed_.rules.size() <= rules_max) return {};
  return Status::InvalidArgument("more than " + std::to_string(rules_max) +
                                 " rules, the most that a server takes (rules_max)");
}

void SetReader::WarnOf(const Rule& rule) {
  if (const auto warning = RoundsToZero(rule)) parsed_.warned.Add(where_ + ": " + *warning);
  for (size_t i = repeated_begin_; i < repeated_end_; ++i) {
    parsed_.warned.Add(where_ + ": " + Quoted(repeated_[i].path) +
                       " appears twice; the last one counts");
  }
}

// What the rule has instead of `key`, or of a member of it, as far as a misspelling tells.
std::string SetReader::HintAt(std::string_view key, const json& object) {
  for (const RuleKeys::Misspelling& misspelling : keys_.FindIn(object)) {
    const std::string& meant = misspelling.meant;
    if (meant == key || meant.starts_with(std::string(key) + ".")) {
      return "; " + misspelling.Sentence();
    }
  }
  return {};
}

}  // namespace

void RuleRemarks::Add(std::string text) {
  if (++count_ <= kTextsMax) texts_.push_back(std::move(text));
}

std::vector<std::string> RuleRemarks::Lines() const {
  std::vector<std::string> lines = texts_;
  const size_t others = count_ - texts_.size();
  if (others > 0) lines.push_back(std::to_string(others) + " " + std::string(more_are_));
  return lines;
}

std::vector<std::string> ParsedRules::Remarks() const {
  std::vector<std::string> lines;
  for (const RuleRemarks* remarks : {&skipped, &ignored, &warned}) {
    for (std::string& line : remarks->Lines()) lines.push_back(std::move(line));
  }
  return lines;
}

Result<ParsedRules> ParseRules(std::string_view text) {
  json document;
  std::vector<RepeatedKey> repeated;
  NOWCALLS_RETURN_IF_ERROR(ReadRuleText(text, &document, &repeated));
  SetReader reader(repeated);
  NOWCALLS_RETURN_IF_ERROR(reader.Read(document));
  return std::move(reader.parsed());
}

Result<Rule> ParseRule(std::string_view text) {
  json object;
  std::vector<RepeatedKey> repeated;
  NOWCALLS_RETURN_IF_ERROR(ReadRuleText(text, &object, &repeated));
  if (!object.is_object()) return Status::InvalidArgument("a rule must be a JSON object");
  Rule rule;
  const std::string error = ReadRuleFields(object, &rule);
  if (!error.empty()) return Status::InvalidArgument(error);
  return rule;
}

}  // namespace nowcalls::core
