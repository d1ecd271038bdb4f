#include "core/rule_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/json_shape.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/rule_keys.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

constexpr int64_t kInt32Max = INT32_MAX;

// The value as a message shows it, not longer than a line.
std::string Excerpt(const json& value) {
  constexpr size_t kExcerptBytes = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kExcerptBytes) text = text.substr(0, kExcerptBytes) + "...";
  return text;
}

// Reads fields of one JSON object. The first field that is wrong is remembered; reading goes on
// with defaults, so that a parser is a plain list of fields.
class FieldReader {
 public:
  FieldReader(const json& object, std::string prefix, std::string* error)
      : object_(object), prefix_(std::move(prefix)), error_(error) {}

  // Absent and null both mean the default: Sentinel's dashboard writes null for what is unset.
  const json* Find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  void Fail(const char* key, std::string_view why) {
    if (error_->empty()) *error_ = prefix_ + key + " " + std::string(why);
  }

  void String(const char* key, size_t bytes_max, std::string* out) {
    const json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(key, "must be a string, got " + Excerpt(*value));
    if (value->get_ref<const std::string&>().size() > bytes_max) {
      return Fail(key, "must be at most " + std::to_string(bytes_max) + " bytes long");
    }
    *out = value->get<std::string>();
  }

  void Bool(const char* key, bool* out) {
    const json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Fail(key, "must be true or false, got " + Excerpt(*value));
    *out = value->get<bool>();
  }

  void Number(const char* key, double* out) {
    const json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_number()) return Fail(key, "must be a number, got " + Excerpt(*value));
    *out = value->get<double>();
  }

  template <typename T>
  void Integer(const char* key, int64_t min, int64_t max, T* out) {
    const json* value = Find(key);
    if (value == nullptr) return;
    int64_t v = 0;
    if (!IntegerOf(*value, &v) || v < min || v > max) {
      return Fail(key, "must be an integer " + RangeText(min, max) + ", got " + Excerpt(*value));
    }
    *out = static_cast<T>(v);
  }

 private:
  // Accepts 10.0 for 10, as Sentinel's JSON libraries do.
  static bool IntegerOf(const json& value, int64_t* out) {
    if (value.is_number_unsigned()) {
      const auto v = value.get<uint64_t>();
      *out = static_cast<int64_t>(v);
      return v <= static_cast<uint64_t>(INT64_MAX);
    }
    if (value.is_number_integer()) {
      *out = value.get<int64_t>();
      return true;
    }
    if (!value.is_number_float()) return false;
    const double v = value.get<double>();
    if (std::floor(v) != v || std::abs(v) > 9e15) return false;
    *out = static_cast<int64_t>(v);
    return true;
  }

  static std::string RangeText(int64_t min, int64_t max) {
    return "from " + std::to_string(min) + " to " + std::to_string(max);
  }

  const json& object_;
  std::string prefix_;
  std::string* error_;
};

// The shortest text that ReadMaxPerClient reads as the same share.
std::string PercentText(double percent) { return NumberText(percent) + "%"; }

// A count, 0 for no cap, or a share of the level: "25%".
void ReadMaxPerClient(FieldReader* fields, Rule* rule) {
  constexpr char kKey[] = "maxPerClient";
  const json* value = fields->Find(kKey);
  if (value == nullptr) return;
  if (!value->is_string()) return fields->Integer(kKey, 0, kCountMax, &rule->max_per_client);
  const auto& text = value->get_ref<const std::string&>();
  const char* const end = text.data() + text.size();
  double percent = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  const bool parsed = error == std::errc() && std::string_view(rest, end) == "%";
  if (!parsed || !(percent > 0 && percent <= 100)) {
    return fields->Fail(kKey,
                        "must be a count or a share of the level above 0% and up to 100%, "
                        "such as \"25%\", got " +
                            Excerpt(*value));
  }
  rule->max_per_client_percent = percent;
}

void ReadClusterConfig(const json& object, Rule* rule, std::string* error) {
  FieldReader fields(object, "clusterConfig.", error);
  int32_t threshold_type = 0;
  if (fields.Find("flowId") == nullptr) fields.Fail("flowId", "is missing; it must be > 0");
  fields.Integer("flowId", 1, INT64_MAX, &rule->flow_id.value);
  fields.Integer("thresholdType", 0, 1, &threshold_type);
  fields.Bool("fallbackToLocalWhenFail", &rule->fallback_to_local_when_fail);
  fields.Integer("strategy", 0, kInt32Max, &rule->cluster_strategy);
  fields.Integer("sampleCount", 1, kInt32Max, &rule->sample_count);
  fields.Integer("windowIntervalMs", 1, kInt32Max, &rule->window_interval_ms);
  fields.Integer("resourceTimeout", 1, kRuleTimeMsMax, &rule->resource_timeout_ms);
  fields.Integer("resourceTimeoutStrategy", 0, 2, &rule->resource_timeout_strategy);
  fields.Integer("acquireRefuseStrategy", 0, 3, &rule->acquire_refuse_strategy);
  fields.Integer("clientOfflineTime", 1, kRuleTimeMsMax, &rule->client_offline_time_ms);
  ReadMaxPerClient(&fields, rule);
  fields.Bool("shadow", &rule->shadow);
  rule->threshold_type = static_cast<ThresholdType>(threshold_type);
  if (rule->window_interval_ms % rule->sample_count != 0) {
    fields.Fail("windowIntervalMs", "must be divisible by sampleCount");
  }
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// What is wrong with the rule; empty if nothing is.
std::string ReadRule(const json& object, Rule* rule) {
  std::string error;
  FieldReader fields(object, "", &error);
  if (fields.Find("resource") == nullptr) fields.Fail("resource", "is missing");
  fields.String("resource", kResourceBytesMax, &rule->resource);
  if (IsBlank(rule->resource)) fields.Fail("resource", "must not be blank");
  if (!IsPrintable(rule->resource)) fields.Fail("resource", "must not hold control characters");
  fields.String("limitApp", kResourceBytesMax, &rule->limit_app);
  fields.Integer("grade", 0, 1, &rule->grade);
  if (fields.Find("count") == nullptr) fields.Fail("count", "is missing; it must be >= 0");
  fields.Number("count", &rule->count);
  if (!(rule->count >= 0)) fields.Fail("count", "must be >= 0");
  fields.Integer("strategy", 0, 2, &rule->strategy);
  fields.Integer("controlBehavior", 0, 3, &rule->control_behavior);
  fields.Integer("warmUpPeriodSec", 0, kInt32Max, &rule->warm_up_period_sec);
  fields.Integer("maxQueueingTimeMs", 0, kInt32Max, &rule->max_queueing_time_ms);
  const json* cluster = fields.Find("clusterConfig");
  if (cluster == nullptr) {
    fields.Fail("clusterConfig", "is missing; clusterMode is true");
  } else if (!cluster->is_object()) {
    fields.Fail("clusterConfig", "must be an object");
  } else {
    ReadClusterConfig(*cluster, rule, &error);
  }
  return error;
}

// "rule 3 (resource "orders", flowId 7)", as far as these can be told.
std::string Describe(const json& object, size_t position) {
  std::string text = "rule " + std::to_string(position);
  if (!object.is_object()) return text;
  std::string details;
  const auto resource = object.find("resource");
  if (resource != object.end() && resource->is_string()) {
    details = "resource " + Excerpt(*resource);
  }
  const auto cluster = object.find("clusterConfig");
  if (cluster != object.end() && cluster->is_object()) {
    const auto flow_id = cluster->find("flowId");
    if (flow_id != cluster->end() && flow_id->is_number()) {
      details += (details.empty() ? "flowId " : ", flowId ") + flow_id->dump();
    }
  }
  return details.empty() ? text : text + " (" + details + ")";
}

// "[json.exception.parse_error.101] parse error at line 3, column 5: ..." without the brackets, and
// as a short printable line: the parser quotes what it read, however long and whatever bytes.
std::string ParserMessage(std::string_view what) {
  constexpr size_t kMessageBytes = 200;
  if (const size_t end = what.find("] "); end != std::string_view::npos)
    what.remove_prefix(end + 2);
  const std::string quoted = Quoted(what, kMessageBytes);
  return quoted.substr(1, quoted.size() - 2);
}

// The line of the first number that no double holds: of these alone the parser does not tell it.
size_t LineOfOverflow(const std::string& text) {
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    char* behind = nullptr;
    if (c == '"') {
      i = EndOfJsonString(text, i);
    } else if (c != '-' && (c < '0' || c > '9')) {
      ++i;
    } else if (std::isinf(std::strtod(&text[i], &behind))) {
      break;
    } else {
      i = std::max<size_t>(i + 1, behind - text.data());
    }
  }
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(i);
  return 1 + std::count(text.begin(), end, '\n');
}

// The first byte behind the comment that begins at `i`; `i`: none does; npos: it is not closed.
size_t EndOfComment(std::string_view text, size_t i) {
  const std::string_view opening = text.substr(i, 2);
  if (opening == "//") return std::min(text.find_first_of("\r\n", i), text.size());
  if (opening != "/*") return i;
  const size_t closing = text.find("*/", i + 2);
  return closing == std::string_view::npos ? closing : closing + 2;
}

// The text with blanks for comments, its lines as they were. Comments are taken out by us and
// refused by the parser: if both had a view of where a comment ends, what only the parser sees
// could be built without bounds.
Result<std::string> WithoutComments(std::string_view text) {
  std::string plain(text);
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      i = EndOfJsonString(text, i);
      continue;
    }
    const size_t end = EndOfComment(text, i);
    if (end == std::string_view::npos) {
      const auto line = 1 + std::ranges::count(text.substr(0, i), '\n');
      return Status::InvalidArgument("not valid JSON: a comment is not closed; it begins in line " +
                                     std::to_string(line));
    }
    if (end == i) ++i;
    for (; i < end; ++i) plain[i] = text[i] == '\n' ? '\n' : ' ';
  }
  return plain;
}

// Twice the values of rules_max rules as Sentinel's dashboard writes them.
constexpr JsonShape kShapeMax{.depth = kRuleJsonNestingMax, .values = 10'000'000};

// What makes the text, which has no comments, too much to build documents of, or nullopt. The
// parser recurses nowhere, but what writes a value into a message does, and documents take many
// times the memory of a short text like "{},{}". (The parser's own callback would bound the depth
// too, in quadratic time.)
std::optional<std::string> Excess(std::string_view text) {
  const JsonShape shape = ShapeOfJson(text, kShapeMax);
  if (shape.depth > kShapeMax.depth) {
    return "is nested deeper than " + std::to_string(kShapeMax.depth) + " levels";
  }
  if (shape.values > kShapeMax.values) {
    return "holds more than " + std::to_string(kShapeMax.values) + " values";
  }
  return std::nullopt;
}

Result<json> ParseText(std::string_view text) {
  // The parser takes it for the end of the text.
  if (text.find('\0') != std::string_view::npos) {
    return Status::InvalidArgument("not valid JSON: it contains a NUL byte");
  }
  const Result<std::string> plain = WithoutComments(text);
  if (!plain.ok()) return plain.status();
  if (const auto excess = Excess(*plain)) return Status::InvalidArgument("JSON " + *excess);
  try {
    return json::parse(*plain);
  } catch (const json::out_of_range& e) {
    return Status::InvalidArgument("not valid JSON: line " +
                                   std::to_string(LineOfOverflow(*plain)) + ": " +
                                   ParserMessage(e.what()));
  } catch (const json::exception& e) {
    return Status::InvalidArgument("not valid JSON: " + ParserMessage(e.what()));
  }
}

bool IsClusterMode(const json& object, std::string* error) {
  bool cluster_mode = false;
  FieldReader(object, "", error).Bool("clusterMode", &cluster_mode);
  return cluster_mode;
}

// What the rule has instead of `key`, or of a member of it, as far as a misspelling tells.
std::string HintAt(std::string_view key, RuleKeys* keys, const json& object) {
  for (const RuleKeys::Misspelling& misspelling : keys->FindIn(object)) {
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
  std::vector<std::string> lines = skipped.Lines();
  for (std::string& line : ignored.Lines()) lines.push_back(std::move(line));
  return lines;
}

Result<ParsedRules> ParseRules(std::string_view text) {
  Result<json> document = ParseText(text);
  if (!document.ok()) return document.status();
  if (!document->is_array())
    return Status::InvalidArgument("rules must be a JSON array of objects");
  const uint32_t rules_max = Limits().rules_max;
  ParsedRules parsed;
  RuleKeys keys;
  absl::flat_hash_set<int64_t> seen;
  size_t position = 0;
  for (const json& object : *document) {
    const std::string where = Describe(object, ++position);
    if (!object.is_object()) return Status::InvalidArgument(where + ": must be an object");
    std::string error;
    if (!IsClusterMode(object, &error) && error.empty()) {
      parsed.skipped.Add(where + " is skipped: clusterMode is not true" +
                         HintAt("clusterMode", &keys, object));
      continue;
    }
    Rule rule;
    if (error.empty()) error = ReadRule(object, &rule);
    if (!error.empty()) {
      const std::string key = error.substr(0, error.find(' '));
      return Status::InvalidArgument(where + ": " + error + HintAt(key, &keys, object));
    }
    if (!seen.insert(rule.flow_id.value).second) {
      return Status::InvalidArgument(where + ": clusterConfig.flowId appears twice in this set");
    }
    for (const RuleKeys::Misspelling& misspelling : keys.FindIn(object)) {
      parsed.ignored.Add(where + ": " + misspelling.Sentence());
    }
    parsed.rules.push_back(std::move(rule));
    if (parsed.rules.size() > rules_max) {
      return Status::InvalidArgument("more than " + std::to_string(rules_max) +
                                     " rules, the most that a server takes (rules_max)");
    }
  }
  return parsed;
}

Result<Rule> ParseRule(std::string_view text) {
  Result<json> object = ParseText(text);
  if (!object.ok()) return object.status();
  if (!object->is_object()) return Status::InvalidArgument("a rule must be a JSON object");
  Rule rule;
  const std::string error = ReadRule(*object, &rule);
  if (!error.empty()) return Status::InvalidArgument(error);
  return rule;
}

namespace {

// Writes an object member by member. Rules are written by the hundred thousand on the loop thread,
// where building a document for each would be felt; strings and doubles are the library's.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string* out) : out_(out) { *out_ += '{'; }

  void Member(std::string_view key, int64_t value) {
    Key(key);
    *out_ += std::to_string(value);
  }
  // A whole number is written as one, as far as every reader keeps its digits.
  void Member(std::string_view key, double value) {
    constexpr double kWholeMax = 9007199254740992;  // 2^53
    if (value >= 0 && value < kWholeMax && std::floor(value) == value) {
      return Member(key, static_cast<int64_t>(value));
    }
    Key(key);
    *out_ += json(value).dump();
  }
  void Member(std::string_view key, bool value) {
    Key(key);
    *out_ += value ? "true" : "false";
  }
  void Member(std::string_view key, const std::string& value) {
    Key(key);
    *out_ += json(value).dump();
  }
  // The caller writes the value.
  void Key(std::string_view key) {
    if (out_->back() != '{') *out_ += ',';
    out_->append("\"").append(key).append("\":");
  }
  void Close() { *out_ += '}'; }

 private:
  std::string* const out_;
};

void WriteClusterConfig(const Rule& rule, std::string* out) {
  ObjectWriter cluster(out);
  cluster.Member("flowId", rule.flow_id.value);
  cluster.Member("thresholdType", int64_t{static_cast<uint8_t>(rule.threshold_type)});
  cluster.Member("fallbackToLocalWhenFail", rule.fallback_to_local_when_fail);
  cluster.Member("strategy", int64_t{rule.cluster_strategy});
  cluster.Member("sampleCount", int64_t{rule.sample_count});
  cluster.Member("windowIntervalMs", int64_t{rule.window_interval_ms});
  cluster.Member("resourceTimeout", rule.resource_timeout_ms);
  cluster.Member("resourceTimeoutStrategy", int64_t{rule.resource_timeout_strategy});
  cluster.Member("acquireRefuseStrategy", int64_t{rule.acquire_refuse_strategy});
  cluster.Member("clientOfflineTime", rule.client_offline_time_ms);
  if (rule.max_per_client_percent == 0) {
    cluster.Member("maxPerClient", rule.max_per_client);
  } else {
    cluster.Member("maxPerClient", MaxPerClientText(rule));
  }
  cluster.Member("shadow", rule.shadow);
  cluster.Close();
}

}  // namespace

std::string MaxPerClientText(const Rule& rule) {
  return rule.max_per_client_percent == 0 ? std::to_string(rule.max_per_client)
                                          : PercentText(rule.max_per_client_percent);
}

std::string RuleToJson(const Rule& rule) {
  std::string out;
  ObjectWriter object(&out);
  object.Member("resource", rule.resource);
  object.Member("limitApp", rule.limit_app);
  object.Member("grade", int64_t{rule.grade});
  object.Member("count", rule.count);
  object.Member("strategy", int64_t{rule.strategy});
  object.Member("controlBehavior", int64_t{rule.control_behavior});
  object.Member("warmUpPeriodSec", int64_t{rule.warm_up_period_sec});
  object.Member("maxQueueingTimeMs", int64_t{rule.max_queueing_time_ms});
  object.Member("clusterMode", true);
  object.Key("clusterConfig");
  WriteClusterConfig(rule, &out);
  object.Close();
  return out;
}

}  // namespace nowcalls::core
