// RecogniseRule: which kind of rule a JSON object is, by the keys that only one kind has.
//
// Thread: any; pure. A file of another kind must never pass for a set without limits, so every
// object has a kind, and all but the supported ones refuse their set. To support another kind
// (ParamFlowRule, sentinel-golang's hotspot rule), give it a parser and make IsSupported true.
#ifndef NOWCALLS_CORE_RULES_RULE_KIND_H_
#define NOWCALLS_CORE_RULES_RULE_KIND_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::core {

enum class RuleKind : uint8_t {
  kFlow,  // Sentinel's FlowRule.
  kHotParameter,
  kGoHotParameter,
  kGoIsolation,
  kGatewayFlow,
  kGatewayApi,
  kGoCircuitBreaker,
  kCircuitBreaker,
  kSystem,
  kGoSystem,
  kGoFlow,
  kAuthority,
  kUnknown,
};

// "a circuit-breaking rule (DegradeRule)"
std::string_view RuleKindName(RuleKind kind);

constexpr bool IsSupported(RuleKind kind) { return kind == RuleKind::kFlow; }

// Kinds that limit each value of a parameter. They share clusterMode and clusterConfig with
// FlowRule, and would otherwise pass as a limit for all values together.
constexpr bool IsPerParameter(RuleKind kind) {
  return kind == RuleKind::kHotParameter || kind == RuleKind::kGoHotParameter ||
         kind == RuleKind::kGoIsolation;
}

struct RecognisedRule {
  RuleKind kind = RuleKind::kUnknown;
  std::string key;  // The key that tells the kind; empty for kFlow and kUnknown.
};

// The keys that make a rule a limit for each value of a parameter.
std::vector<std::string> PerParameterKeys();

// Keys count in any case, and with "-" and "_" in them, as Sentinel's parser reads them. A key with
// the value null counts as absent.
RecognisedRule RecogniseRule(const nlohmann::json& object);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_KIND_H_
