#include "core/rules/rule_json.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/counted.h"
#include "base/limits.h"
#include "base/near_name.h"
#include "base/text.h"
#include "core/rules/flow_number.h"
#include "core/rules/json_fields.h"
#include "core/rules/rule_fields.h"
#include "core/rules/rule_keys.h"
#include "core/rules/rule_kind.h"
#include "core/rules/rule_text.h"
#include "core/rules/rule_values.h"
#include "core/rules/rule_warnings.h"

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
std::string NotSupported(const RecognisedRule& recognised) {
  const std::string name(RuleKindName(recognised.kind));
  const std::string makes = Quoted(recognised.key) + " makes it " + name;
  switch (recognised.kind) {
    case RuleKind::kUnknown:
      return "is " + name +
             ": expected a FlowRule with resource, count, clusterMode and clusterConfig";
    case RuleKind::kMixedParameter:
      return Quoted(recognised.key) + " and " + Quoted(recognised.other_key) + " make it " + name +
             "; leave out the keys of one kind";
    case RuleKind::kGoIsolation:
      return makes +
             ", which does not tell which; a hotspot.Rule has paramIndex, and an "
             "isolation.Rule sets no limit here";
    case RuleKind::kGoUnclear:
      return makes +
             ", which does not tell which; a flow.Rule has statIntervalInMs, a "
             "hotspot.Rule has paramIndex";
    default: return makes + ", which sets no limit here";
  }
}

// What is wrong with a document that is no array.
std::string NotAnArray(const json& document) {
  std::string must = "rules must be a JSON array of objects";
  if (document.is_null()) return must + ", got null; [] removes all rules";
  if (!document.is_object()) return must + ", got " + ExcerptOf(document);
  if (IsSupported(RecogniseRule(document).kind)) return must + "; put [ ] around the rule";
  for (const auto& [key, value] : document.items()) {
    if (value.is_array()) return must + "; write the array of " + Quoted(key) + " alone";
  }
  return must;
}

// Reads one set, object by object.
class SetReader {
 public:
  SetReader(std::string_view name_space, const std::vector<RepeatedKey>& repeated)
      : name_space_(name_space), repeated_(repeated) {}

  Status Read(const json& document);
  ParsedRules& parsed() { return parsed_; }

 private:
  Status ReadElement(const json& element);
  Status ReadObject(const json& object);
  std::string ReadMode(const json& object, bool* applies);
  std::string ReadMissingMode(const json& object, bool* applies);
  bool IsAmbiguous(const json& object) const;
  bool IsRepeated(const std::string& path) const;
  void Skip();
  Status Add(const json& object);
  std::string MisspeltFlowId(const json& object);
  std::string WhyTwice(const Rule& rule, bool numbered) const;
  void WarnOf(const json& object, const Rule& rule);
  std::string HintAt(std::string_view key, const json& object);
  std::string KindHint() const;
  Status Refusal(const std::string& why) const {
    return Status::InvalidArgument(where_ + ": " + why);
  }

  const std::string_view name_space_;
  const std::vector<RepeatedKey>& repeated_;
  ParsedRules parsed_;
  RuleKeys keys_;
  absl::flat_hash_map<FlowKey, size_t> flows_;  // By place in parsed_.rules.
  // Of the object that is being read.
  size_t position_ = 0;
  std::string where_;
  RecognisedRule recognised_;
  size_t repeated_begin_ = 0;  // In repeated_: its keys are [begin, end).
  size_t repeated_end_ = 0;
};

Status SetReader::Read(const json& document) {
  if (!document.is_array()) return Status::InvalidArgument(NotAnArray(document));
  for (const json& element : document) {
    ++position_;
    repeated_begin_ = repeated_end_;
    while (repeated_end_ < repeated_.size() && repeated_[repeated_end_].position == position_) {
      ++repeated_end_;
    }
    NOWCALLS_RETURN_IF_ERROR(ReadElement(element));
  }
  if (document.empty() || !parsed_.rules.empty()) return {};
  const std::string count = std::to_string(document.size());
  return Status::InvalidArgument("0 of " + count + " rules apply: " + parsed_.skipped.Lines()[0] +
                                 (document.size() > 1 ? ", and so are the others" : "") +
                                 "; to remove all rules, load []");
}

Status SetReader::ReadElement(const json& element) {
  where_ = Describe(element, position_);
  if (!element.is_object()) return Refusal("must be an object");
  recognised_ = RecogniseRule(element);
  if (!recognised_.wrapped) return ReadObject(element);
  const json& object = element.at(kWrapper);
  where_ = Describe(object, position_);
  const std::string other = KeyBesideWrapped(element);
  if (other.empty()) return ReadObject(object);
  return Refusal(Quoted(other) + " and " + Quoted(std::string(kWrapper) + "." + other) +
                 " differ; the rule is the object " + Quoted(kWrapper) +
                 ", so leave out what is beside it");
}

Status SetReader::ReadObject(const json& object) {
  const RuleKind kind = recognised_.kind;
  const bool supported = IsSupported(kind);
  if (!supported && !IsPerParameter(kind)) return Refusal(NotSupported(recognised_));
  bool applies = false;
  const std::string wrong = ReadMode(object, &applies);
  // A rule of a parameter that is explicitly local concerns nobody here.
  if (!supported && (applies || !wrong.empty())) return Refusal(NotSupported(recognised_));
  if (!wrong.empty()) return Refusal(wrong + HintAt(kClusterMode, object) + KindHint());
  if (applies) return Add(object);
  const auto resource = object.find("resource");
  if (resource == object.end() || resource->is_null()) {
    return Refusal("resource is missing" + HintAt("resource", object));
  }
  Skip();
  return {};
}

// What is wrong with clusterMode; empty: nothing.
std::string SetReader::ReadMode(const json& object, bool* applies) {
  const auto mode = object.find(kClusterMode);
  if (mode == object.end() || IsUnset(*mode)) return ReadMissingMode(object, applies);
  const std::optional<bool> value = BooleanOf(*mode);
  if (!value.has_value()) return "clusterMode must be true or false, got " + ExcerptOf(*mode);
  *applies = *value;
  return IsAmbiguous(object) ? "clusterMode appears twice" : "";
}

std::string SetReader::ReadMissingMode(const json& object, bool* applies) {
  const bool misspelt = IsAmbiguous(object) || !HintAt(kClusterMode, object).empty();
  if (HasClusterMode(recognised_.kind) || misspelt) {
    return "clusterMode is missing; write \"clusterMode\": true to limit calls here, or false to "
           "leave the rule to clients";
  }
  *applies = true;
  return {};
}

// Whether the object has clusterMode again, in the same or in another spelling that Sentinel's
// parser takes for it.
bool SetReader::IsAmbiguous(const json& object) const {
  const std::string prefix = recognised_.wrapped ? std::string(kWrapper) + "." : "";
  if (IsRepeated(prefix + kClusterMode)) return true;
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

void SetReader::Skip() {
  std::string text = where_ + " is skipped: clusterMode is false";
  if (recognised_.kind != RuleKind::kFlow) {
    text += ", and it is " + std::string(RuleKindName(recognised_.kind));
  }
  parsed_.skipped.Add(std::move(text));
}

Status SetReader::Add(const json& object) {
  Rule rule;
  const std::string wrong = ReadRuleFields(recognised_.kind, object, &rule);
  if (!wrong.empty()) {
    const bool missing = wrong.find(" is missing") != std::string::npos;
    return Refusal(wrong + HintAt(wrong.substr(0, wrong.find(' ')), object) +
                   (missing ? KindHint() : ""));
  }
  const bool numbered = rule.flow_id != FlowId{};
  if (!numbered) {
    if (std::string misspelt = MisspeltFlowId(object); !misspelt.empty()) return Refusal(misspelt);
    rule.flow_id = FlowNumberOf(name_space_, rule.resource);
  }
  if (!flows_.emplace(rule.key(), parsed_.rules.size()).second) {
    return Refusal(WhyTwice(rule, numbered));
  }
  if (!numbered && name_space_.empty()) rule.flow_id = FlowId{};
  for (const RuleKeys::Misspelling& misspelling : keys_.FindIn(recognised_.kind, object)) {
    parsed_.ignored.Add(where_ + ": " + misspelling.Sentence());
  }
  WarnOf(object, rule);
  parsed_.rules.push_back(std::move(rule));
  const uint32_t rules_max = Limits().rules_max;
  if (parsed_.rules.size() <= rules_max) return {};
  return Status::InvalidArgument("more than " + std::to_string(rules_max) +
                                 " rules, the most that a server takes (rules_max)");
}

// A slip in the key must not give the rule another number than its author wrote.
std::string SetReader::MisspeltFlowId(const json& object) {
  for (const RuleKeys::Misspelling& misspelling : keys_.FindIn(recognised_.kind, object)) {
    const std::string& meant = misspelling.meant;
    if (meant == "clusterConfig" || meant == "clusterConfig.flowId") {
      return meant + " is missing; " + misspelling.Sentence();
    }
  }
  const std::string stray = keys_.StrayFlowIdOf(recognised_.kind, object);
  if (stray.empty()) return {};
  return "clusterConfig.flowId is missing; " + Quoted(stray) +
         " is not known: name it flowId, in clusterConfig, or leave it out";
}

// `rule` has the flow of an earlier rule of the set.
std::string SetReader::WhyTwice(const Rule& rule, bool numbered) const {
  const Rule& first = parsed_.rules[flows_.at(rule.key())];
  const std::string kind = rule.param.has_value() ? ", in two rules by value" : "";
  if (!IsFlowNumber(rule.flow_id)) {
    return "clusterConfig.flowId appears twice in this set" + kind;
  }
  if (!numbered && first.resource == rule.resource) {
    return "clusterConfig.flowId is missing, and an earlier rule of this resource has the number " +
           ("of its name" + kind) + "; give one of them a flowId, the number that clients ask with";
  }
  return "clusterConfig.flowId " + std::to_string(rule.flow_id.value) + " is also that of " +
         Quoted(first.resource) + kind +
         "; without flowId a rule has the number of its name, so give one of them another flowId";
}

void SetReader::WarnOf(const json& object, const Rule& rule) {
  for (const std::string& warning : RuleWarnings(object, rule)) {
    parsed_.warned.Add(where_ + ": " + warning);
  }
  for (size_t i = repeated_begin_; i < repeated_end_; ++i) {
    parsed_.warned.Add(where_ + ": " + Quoted(repeated_[i].path) +
                       " appears twice; the last one counts");
  }
}

// What the rule has instead of `key`, or of a member of it, as far as a misspelling tells.
std::string SetReader::HintAt(std::string_view key, const json& object) {
  for (const RuleKeys::Misspelling& misspelling : keys_.FindIn(recognised_.kind, object)) {
    const std::string& meant = misspelling.meant;
    if (meant == key || meant.starts_with(std::string(key) + ".")) {
      return "; " + misspelling.Sentence();
    }
  }
  return {};
}

// By which key a rule is none of the most common kind. Its author may not have meant that.
std::string SetReader::KindHint() const {
  if (recognised_.kind == RuleKind::kFlow) return {};
  return "; " + Quoted(recognised_.key) + " makes it " +
         std::string(RuleKindName(recognised_.kind));
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

Status ParsedRules::CheckStrict() const {
  if (warnings() == 0) return {};
  const std::string first = (ignored.count() > 0 ? ignored : warned).Lines().front();
  return Status::InvalidArgument(Counted(warnings(), "warning") +
                                 ", and rules-strict takes none; the first: " + first);
}

std::vector<std::string> ParsedRules::Remarks() const {
  std::vector<std::string> lines;
  for (const RuleRemarks* remarks : {&skipped, &ignored, &warned}) {
    for (std::string& line : remarks->Lines()) lines.push_back(std::move(line));
  }
  return lines;
}

Result<ParsedRules> ParseRules(std::string_view text, std::string_view name_space) {
  json document;
  std::vector<RepeatedKey> repeated;
  NOWCALLS_RETURN_IF_ERROR(ReadRuleText(text, &document, &repeated));
  SetReader reader(name_space, repeated);
  NOWCALLS_RETURN_IF_ERROR(reader.Read(document));
  return std::move(reader.parsed());
}

Result<Rule> ParseRule(std::string_view text) {
  json object;
  std::vector<RepeatedKey> repeated;
  NOWCALLS_RETURN_IF_ERROR(ReadRuleText(text, &object, &repeated));
  if (!object.is_object()) return Status::InvalidArgument("a rule must be a JSON object");
  Rule rule;
  const std::string error = ReadRuleFields(KindAsWritten(object), object, &rule);
  if (!error.empty()) return Status::InvalidArgument(error);
  if (rule.flow_id == FlowId{}) {
    return Status::InvalidArgument("clusterConfig.flowId is missing");
  }
  return rule;
}

}  // namespace nowcalls::core
