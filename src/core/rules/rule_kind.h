// RecogniseRule: which kind of rule a JSON object is, by the keys that only one kind has.
//
// Thread: any.
#ifndef NOWCALLS_CORE_RULES_RULE_KIND_H_
#define NOWCALLS_CORE_RULES_RULE_KIND_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/rules/rule.h"

namespace nowcalls::core {

enum class RuleKind : uint8_t {
  // Supported.
  kFlow,            // Sentinel's FlowRule.
  kHotParameter,    // Sentinel's ParamFlowRule.
  kGoHotParameter,  // sentinel-golang's hotspot.Rule.
  kGoFlow,          // sentinel-golang's flow.Rule.
  // Others.
  kMixedParameter,  // Keys of a ParamFlowRule and of a hotspot.Rule.
  kGoIsolation,     // Or a hotspot.Rule.
  kGoUnclear,
  kGatewayFlow,
  kGatewayApi,
  kGoCircuitBreaker,
  kCircuitBreaker,
  kSystem,
  kGoSystem,
  kAuthority,
  kUnknown,
};

// "a circuit-breaking rule (DegradeRule)"
std::string_view RuleKindName(RuleKind kind);
// "flow", "param_flow", "hotspot" or "go_flow", of a supported kind.
std::string_view RuleKindWord(RuleKind kind);

inline constexpr size_t kSupportedKinds = 4;  // The first ones.
constexpr bool IsSupported(RuleKind kind) { return static_cast<size_t>(kind) < kSupportedKinds; }

// They limit each value of a parameter.
constexpr bool IsPerParameter(RuleKind kind) {
  return kind == RuleKind::kHotParameter || kind == RuleKind::kGoHotParameter ||
         kind == RuleKind::kMixedParameter || kind == RuleKind::kGoIsolation;
}

// Kinds that say by clusterMode whether they are for a token server; sentinel-golang's say it by
// clusterConfig.
constexpr bool HasClusterMode(RuleKind kind) {
  return kind == RuleKind::kFlow || kind == RuleKind::kHotParameter;
}

struct RecognisedRule {
  RuleKind kind = RuleKind::kUnknown;
  std::string key = {};        // The key that tells the kind; empty for kFlow and kUnknown.
  std::string other_key = {};  // Of kMixedParameter: the one of a hotspot.Rule.
  bool wrapped = false;        // The rule is the member kWrapper, as Sentinel's dashboard has it.
};
inline constexpr char kWrapper[] = "rule";

// Of kinds that are IsPerParameter.
std::vector<std::string> PerParameterKeys();

// Keys count in any case, and with "-" and "_", as in Sentinel's parser. null counts as absent.
RecognisedRule RecogniseRule(const nlohmann::json& object);

// A key beside a wrapped rule with another value than the rule's; empty: none.
std::string KeyBesideWrapped(const nlohmann::json& object);

// As which RuleToJson writes the rule.
RuleKind KindOf(const Rule& rule);
RuleKind KindAsWritten(const nlohmann::json& object);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_KIND_H_
