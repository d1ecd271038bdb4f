#include "core/rules/rule_kind.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/near_name.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

struct Evidence {
  std::string_view key;
  RuleKind kind;
};

// The first entry that an object has decides: some keys further down belong to several kinds, such
// as burstCount and durationInSec (see Settled).
// `kTolerated` is the first entry that a FlowRule with a clusterConfig may have as an unknown key.
constexpr Evidence kEvidence[] = {
    {"paramIdx", RuleKind::kHotParameter},
    {"paramFlowItemList", RuleKind::kHotParameter},
    {"paramIndex", RuleKind::kGoHotParameter},
    {"paramKey", RuleKind::kGoHotParameter},
    {"specificItems", RuleKind::kGoHotParameter},
    {"paramsMaxCapacity", RuleKind::kGoHotParameter},
    {"burstCount", RuleKind::kHotParameter},
    {"durationInSec", RuleKind::kHotParameter},
    {"triggerCount", RuleKind::kGoSystem},
    {"metricType", RuleKind::kGoIsolation},
    {"resourceMode", RuleKind::kGatewayFlow},
    {"intervalSec", RuleKind::kGatewayFlow},
    {"paramItem", RuleKind::kGatewayFlow},
    {"maxQueueingTimeoutMs", RuleKind::kGatewayFlow},
    {"apiName", RuleKind::kGatewayApi},
    {"predicateItems", RuleKind::kGatewayApi},
    {"retryTimeoutMs", RuleKind::kGoCircuitBreaker},
    {"maxAllowedRtMs", RuleKind::kGoCircuitBreaker},
    {"statSlidingWindowBucketCount", RuleKind::kGoCircuitBreaker},
    {"timeWindow", RuleKind::kCircuitBreaker},
    {"slowRatioThreshold", RuleKind::kCircuitBreaker},
    {"minRequestAmount", RuleKind::kCircuitBreaker},
    {"statIntervalMs", RuleKind::kCircuitBreaker},
    {"highestSystemLoad", RuleKind::kSystem},
    {"highestCpuUsage", RuleKind::kSystem},
    {"avgRt", RuleKind::kSystem},
    {"maxThread", RuleKind::kSystem},
    {"qps", RuleKind::kSystem},
    {"tokenCalculateStrategy", RuleKind::kGoFlow},
    {"relationStrategy", RuleKind::kGoFlow},
    {"statIntervalInMs", RuleKind::kGoFlow},
    {"warmUpColdFactor", RuleKind::kGoFlow},
    {"threshold", RuleKind::kGoUnclear},
};
constexpr size_t kNoEvidence = std::size(kEvidence);
constexpr size_t kTolerated =
    std::ranges::find(kEvidence, RuleKind::kGatewayFlow, &Evidence::kind) - std::begin(kEvidence);

// Keys that a FlowRule has, or Sentinel's dashboard adds: no evidence of anything else.
constexpr std::string_view kOrdinary[] = {"resource",
                                          "limitApp",
                                          "grade",
                                          "count",
                                          "strategy",
                                          "controlBehavior",
                                          "warmUpPeriodSec",
                                          "clusterMode",
                                          "refResource",
                                          "clusterConfig",
                                          "id",
                                          "maxQueueingTimeMs",
                                          "gmtModified",
                                          "gmtCreate",
                                          "app",
                                          "ip",
                                          "port"};

// The place in kEvidence of a key; kNoEvidence: it tells nothing.
size_t RankOf(const std::string& key) {
  static const absl::flat_hash_map<std::string, size_t> ranks = [] {
    absl::flat_hash_map<std::string, size_t> made;
    for (size_t i = 0; i < kNoEvidence; ++i) made.emplace(PlainName(kEvidence[i].key), i);
    return made;
  }();
  if (std::find(std::begin(kOrdinary), std::end(kOrdinary), key) != std::end(kOrdinary)) {
    return kNoEvidence;
  }
  constexpr size_t kKeyBytesMax = 64;
  if (key.size() > kKeyBytesMax) return kNoEvidence;
  const auto rank = ranks.find(PlainName(key));
  return rank == ranks.end() ? kNoEvidence : rank->second;
}

struct Found {
  size_t rank = kNoEvidence;
  std::string key;  // As the object spells it.

  RuleKind kind() const { return kEvidence[rank].kind; }
  RecognisedRule Recognised() const { return {.kind = kind(), .key = key}; }
};

Found EvidenceIn(const json& object) {
  Found found;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    const size_t rank = RankOf(key);
    if (rank < found.rank) found = {rank, key};
  }
  return found;
}

// The first key, as the object spells it, that is evidence of one of two kinds.
std::optional<std::string> KeyOfKinds(const json& object, RuleKind a, RuleKind b) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    const size_t rank = RankOf(key);
    if (rank == kNoEvidence) continue;
    if (kEvidence[rank].kind == a || kEvidence[rank].kind == b) return key;
  }
  return std::nullopt;
}

// nullptr: the object has no such member of that type.
const json* ObjectIn(const json& object, const char* key) {
  const auto member = object.find(key);
  return member == object.end() || !member->is_object() ? nullptr : &*member;
}

// The spelling of `wanted` that the object has and that is not null.
std::optional<std::string> Spelling(const json& object, std::string_view wanted) {
  const std::string plain = PlainName(wanted);
  for (const auto& [key, value] : object.items()) {
    if (!value.is_null() && PlainName(key) == plain) return key;
  }
  return std::nullopt;
}

// A rule of a parameter whose first evidence is `found`: tells ParamFlowRules from hotspot.Rules.
RecognisedRule Settled(const json& object, const Found& found) {
  RecognisedRule rule = found.Recognised();
  if (rule.kind != RuleKind::kHotParameter) return rule;
  const auto go_key = KeyOfKinds(object, RuleKind::kGoHotParameter, RuleKind::kGoIsolation);
  if (!go_key.has_value()) return rule;
  const std::string plain = PlainName(found.key);
  const bool shared = plain == PlainName("burstCount") || plain == PlainName("durationInSec");
  if (shared) {
    rule.kind = RuleKind::kGoHotParameter;
  } else {
    rule.kind = RuleKind::kMixedParameter;
    rule.other_key = *go_key;
  }
  return rule;
}

bool IsGo(const Found& found) {
  return found.rank != kNoEvidence &&
         (found.kind() == RuleKind::kGoFlow || found.kind() == RuleKind::kGoUnclear);
}

// An AuthorityRule has nothing but a resource, limitApp and a strategy.
std::optional<std::string> AuthorityKey(const json& object) {
  for (const char* key : {"count", "grade", "clusterMode", "clusterConfig", "controlBehavior"}) {
    if (Spelling(object, key).has_value()) return std::nullopt;
  }
  return Spelling(object, "limitApp");
}

bool LooksLikeFlow(const json& object) {
  for (const char* key : {"resource", "count", "grade", "clusterMode", "clusterConfig"}) {
    if (Spelling(object, key).has_value()) return true;
  }
  return false;
}

}  // namespace

std::string_view RuleKindName(RuleKind kind) {
  switch (kind) {
    case RuleKind::kFlow: return "a flow rule (FlowRule)";
    case RuleKind::kHotParameter: return "a hot parameter rule (ParamFlowRule)";
    case RuleKind::kGoHotParameter: return "a hot parameter rule (hotspot.Rule of sentinel-golang)";
    case RuleKind::kGoFlow: return "a flow rule of sentinel-golang (flow.Rule)";
    case RuleKind::kMixedParameter:
      return "a hot parameter rule of two kinds (ParamFlowRule and hotspot.Rule)";
    case RuleKind::kGoIsolation:
      return "a hot parameter or isolation rule (hotspot.Rule or isolation.Rule of "
             "sentinel-golang)";
    case RuleKind::kGoUnclear: return "a rule of sentinel-golang";
    case RuleKind::kGatewayFlow: return "a gateway rule (GatewayFlowRule)";
    case RuleKind::kGatewayApi: return "a group of gateway APIs (ApiDefinition)";
    case RuleKind::kGoCircuitBreaker:
      return "a circuit-breaking rule (circuitbreaker.Rule of sentinel-golang)";
    case RuleKind::kCircuitBreaker: return "a circuit-breaking rule (DegradeRule)";
    case RuleKind::kSystem: return "a system rule (SystemRule)";
    case RuleKind::kGoSystem: return "a system rule (system.Rule of sentinel-golang)";
    case RuleKind::kAuthority: return "an authority rule (AuthorityRule)";
    case RuleKind::kUnknown: return "no rule of a known kind";
  }
  return "no rule of a known kind";
}

std::string_view RuleKindWord(RuleKind kind) {
  switch (kind) {
    case RuleKind::kHotParameter: return "param_flow";
    case RuleKind::kGoHotParameter: return "hotspot";
    case RuleKind::kGoFlow: return "go_flow";
    default: return "flow";
  }
}

std::vector<std::string> PerParameterKeys() {
  std::vector<std::string> keys;
  for (const Evidence& evidence : kEvidence) {
    if (IsPerParameter(evidence.kind)) keys.emplace_back(evidence.key);
  }
  return keys;
}

RecognisedRule RecogniseRule(const json& object) {
  // Sentinel's dashboard wraps some kinds: {"id": 1, "app": "a", "rule": {...}}. What it writes
  // beside the rule may look like a rule itself.
  RecognisedRule inside;
  const json* const wrapped = ObjectIn(object, kWrapper);
  if (wrapped != nullptr) {
    inside = RecogniseRule(*wrapped);
    // One wrapper is all that the dashboard puts around.
    const bool twice = inside.wrapped;
    if (!inside.key.empty()) inside.key = std::string(kWrapper) + "." + inside.key;
    inside.wrapped = inside.kind == RuleKind::kHotParameter;
    if (inside.wrapped && !twice) return inside;
  }
  Found found = EvidenceIn(object);
  // Keys of a flow.Rule, which has no count, are unknown keys of a FlowRule.
  if (IsGo(found) && Spelling(object, "count").has_value()) found = {};
  if (found.rank < kTolerated) return Settled(object, found);
  if (const json* cluster = ObjectIn(object, "clusterConfig")) {
    Found inner = EvidenceIn(*cluster);
    if (inner.rank < kTolerated) {
      inner.key = "clusterConfig." + inner.key;
      return inner.Recognised();
    }
    if (IsGo(found)) return found.Recognised();
    return {.kind = RuleKind::kFlow};  // No other kind has it; other unknown keys are tolerated.
  }
  if (found.rank != kNoEvidence) return found.Recognised();
  if (auto key = AuthorityKey(object))
    return {.kind = RuleKind::kAuthority, .key = *std::move(key)};
  if (LooksLikeFlow(object)) return {.kind = RuleKind::kFlow};
  return wrapped != nullptr && !IsSupported(inside.kind) ? inside : RecognisedRule();
}

std::string KeyBesideWrapped(const json& object) {
  // The dashboard's own, of the entry in its list.
  constexpr std::string_view kOfEntry[] = {"id", "app", "ip", "port", "gmtCreate", "gmtModified"};
  const json& rule = object.at(kWrapper);
  for (const auto& [key, value] : object.items()) {
    if (std::find(std::begin(kOfEntry), std::end(kOfEntry), key) != std::end(kOfEntry)) continue;
    const auto same = rule.find(key);
    if (same == rule.end() || same->is_null() || value.is_null()) continue;
    if (*same != value) return key;
  }
  return {};
}

RuleKind KindOf(const Rule& rule) {
  if (rule.param.has_value()) {
    return rule.param->algorithm == ParamRule::Algorithm::kWindow ? RuleKind::kHotParameter
                                                                  : RuleKind::kGoHotParameter;
  }
  return rule.is_go_flow ? RuleKind::kGoFlow : RuleKind::kFlow;
}

RuleKind KindAsWritten(const json& object) {
  if (object.contains("paramIdx")) return RuleKind::kHotParameter;
  if (object.contains("paramIndex")) return RuleKind::kGoHotParameter;
  if (object.contains("statIntervalInMs")) return RuleKind::kGoFlow;
  return RuleKind::kFlow;
}

}  // namespace nowcalls::core
