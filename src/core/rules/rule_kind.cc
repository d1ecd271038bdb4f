#include "core/rules/rule_kind.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "base/near_name.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

struct Evidence {
  std::string_view key;
  RuleKind kind;
};

// The first entry that an object has decides: some keys further down belong to several kinds.
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
    {"threshold", RuleKind::kGoFlow},
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

  RecognisedRule Recognised() const { return {kEvidence[rank].kind, key}; }
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
    case RuleKind::kGoIsolation:
      return "a hot parameter or isolation rule (hotspot.Rule or isolation.Rule of "
             "sentinel-golang)";
    case RuleKind::kGatewayFlow: return "a gateway rule (GatewayFlowRule)";
    case RuleKind::kGatewayApi: return "a group of gateway APIs (ApiDefinition)";
    case RuleKind::kGoCircuitBreaker:
      return "a circuit-breaking rule (circuitbreaker.Rule of sentinel-golang)";
    case RuleKind::kCircuitBreaker: return "a circuit-breaking rule (DegradeRule)";
    case RuleKind::kSystem: return "a system rule (SystemRule)";
    case RuleKind::kGoSystem: return "a system rule (system.Rule of sentinel-golang)";
    case RuleKind::kGoFlow: return "a flow rule of sentinel-golang (flow.Rule)";
    case RuleKind::kAuthority: return "an authority rule (AuthorityRule)";
    case RuleKind::kUnknown: return "no rule of a known kind";
  }
  return "no rule of a known kind";
}

std::vector<std::string> PerParameterKeys() {
  std::vector<std::string> keys;
  for (const Evidence& evidence : kEvidence) {
    if (IsPerParameter(evidence.kind)) keys.emplace_back(evidence.key);
  }
  return keys;
}

RecognisedRule RecogniseRule(const json& object) {
  const Found found = EvidenceIn(object);
  if (found.rank < kTolerated) return found.Recognised();
  if (const json* cluster = ObjectIn(object, "clusterConfig")) {
    const Found inner = EvidenceIn(*cluster);
    if (inner.rank < kTolerated) {
      return {kEvidence[inner.rank].kind, "clusterConfig." + inner.key};
    }
    return {RuleKind::kFlow, {}};  // No other kind has it; other unknown keys are tolerated.
  }
  if (found.rank != kNoEvidence) return found.Recognised();
  if (const auto key = AuthorityKey(object)) return {RuleKind::kAuthority, *key};
  if (LooksLikeFlow(object)) return {RuleKind::kFlow, {}};
  // Sentinel's dashboard wraps some kinds: {"id": 1, "app": "a", "rule": {...}}.
  if (const json* wrapped = ObjectIn(object, "rule")) {
    RecognisedRule inside = RecogniseRule(*wrapped);
    if (!inside.key.empty()) inside.key = "rule." + inside.key;
    if (!IsSupported(inside.kind)) return inside;
  }
  return {};
}

}  // namespace nowcalls::core
