#include "admin/effective_rules.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "admin/columns.h"
#include "admin/output.h"
#include "base/counted.h"
#include "base/duration.h"
#include "base/param_text.h"
#include "base/text.h"
#include "core/rules/rule_amount.h"
#include "core/rules/rule_kind.h"

namespace nowcalls::admin {

// The cells of one rule.
struct EffectiveRule {
  int64_t flow_id = 0;  // 0: the number of its name, in a namespace that is not known.
  std::string resource;
  std::string level;
  std::string may_last;
  std::string offline;
  std::string when_full;
};

namespace {

using core::ParamRule;
using core::Rule;
using core::ThresholdType;

// The server's default; resource-timeout-factor may say up to 3.
constexpr int64_t kResourceTimeoutFactor = 2;

constexpr Column<EffectiveRule> kEffectiveColumns[] = {
    {{"flow_id", "FLOW_ID", Kind::kNumber},
     [](const EffectiveRule& r) { return r.flow_id != 0 ? Cell(r.flow_id) : Cell(); }},
    {{"resource", "RESOURCE", Kind::kText},
     [](const EffectiveRule& r) { return Text(r.resource); }},
    {{"level", "LEVEL", Kind::kText}, [](const EffectiveRule& r) { return Text(r.level); }},
    {{"may_last", "MAY_LAST", Kind::kText},
     [](const EffectiveRule& r) { return Text(r.may_last); }},
    {{"offline", "OFFLINE", Kind::kText}, [](const EffectiveRule& r) { return Text(r.offline); }},
    {{"when_full", "WHEN_FULL", Kind::kText},
     [](const EffectiveRule& r) { return Text(r.when_full); }},
};

std::string Marked(const std::string& text, bool is_default) {
  return text + (is_default ? "*" : "");
}

bool IsPerClient(const Rule& rule) { return rule.threshold_type == ThresholdType::kAvgLocal; }
bool IsPerValue(const Rule& rule) { return rule.param.has_value(); }

std::string LevelText(const Rule& rule) {
  std::string text = core::AmountText(rule, rule.count);
  if (IsPerValue(rule)) text += " a value";
  if (IsPerClient(rule)) {
    return Marked(text + " per client", Rule().threshold_type == rule.threshold_type);
  }
  return IsPerValue(rule) || rule.says_rate() ? text : text + " in all";
}

std::string WhenFullText(const Rule& rule) {
  // Shadow mode grants whatever the strategy says.
  if (rule.shadow) return "grant (shadow)";
  switch (rule.acquire_refuse_strategy) {
    case 1: return "retry once";
    case 2: return "retry";
    case 3: return "wait " + HumanDuration(rule.max_queueing_time_ms);
    default: return Marked("refuse", true);
  }
}

// What a rule's resourceTimeoutStrategy does with a token at its resourceTimeout.
enum class AtTimeout : int32_t {
  kTakenBack = 0,  // By the server, at resourceTimeout x its factor.
  kReleased = 1,   // By the client.
  kKept = 2,       // By the client, for as long as the call lasts.
};

AtTimeout AtTimeoutOf(const Rule& rule) {
  return static_cast<AtTimeout>(rule.resource_timeout_strategy);
}

// How long a call may hold its token: "1m00s", "30s, released", "kept, max 1h00m".
std::string MayLastText(const Rule& rule) {
  if (rule.says_rate()) return "-";
  // A rule's longest hold ends a token even if its client keeps it.
  const auto bounded = [&](int64_t ms) {
    return HumanDuration(rule.max_hold_ms > 0 ? std::min(ms, rule.max_hold_ms) : ms);
  };
  switch (AtTimeoutOf(rule)) {
    case AtTimeout::kReleased: return bounded(rule.resource_timeout_ms) + ", released";
    case AtTimeout::kKept:
      return rule.max_hold_ms > 0 ? "kept, max " + HumanDuration(rule.max_hold_ms) : "kept";
    case AtTimeout::kTakenBack: break;
  }
  return Marked(bounded(kResourceTimeoutFactor * rule.resource_timeout_ms),
                rule.resource_timeout_ms == Rule().resource_timeout_ms);
}

// "7", or the resource, whose number depends on the namespace.
std::string FlowWord(const Rule& rule) {
  constexpr size_t kResourceBytes = 24;
  return rule.flow_id != FlowId{} ? std::to_string(rule.flow_id.value)
                                  : TerminalText(Shortened(rule.resource, kResourceBytes));
}

std::string OfflineText(const Rule& rule) {
  if (rule.says_rate()) return "-";
  return Marked(HumanDuration(rule.client_offline_time_ms),
                rule.client_offline_time_ms == Rule().client_offline_time_ms);
}

EffectiveRule EffectOf(const Rule& rule) {
  return {
      .flow_id = rule.flow_id.value,
      .resource = rule.resource,
      .level = LevelText(rule),
      .may_last = MayLastText(rule),
      .offline = OfflineText(rule),
      .when_full = WhenFullText(rule),
  };
}

// Shortens resources so that a line fits the terminal that everybody has.
void FitResources(std::vector<EffectiveRule>* rules) {
  constexpr size_t kLineWidth = 80;
  constexpr size_t kGaps = 5 * 2;
  constexpr size_t kResourceMin = 7;
  // The other columns are as wide as their widest cell; the resource gets what is left of the line.
  size_t id = std::string_view("FLOW_ID").size();
  size_t level = std::string_view("LEVEL").size();
  size_t may_last = std::string_view("MAY_LAST").size();
  size_t offline = std::string_view("OFFLINE").size();
  size_t when_full = std::string_view("WHEN_FULL").size();
  for (const EffectiveRule& rule : *rules) {
    id = std::max(id, std::to_string(rule.flow_id).size());
    level = std::max(level, rule.level.size());
    may_last = std::max(may_last, rule.may_last.size());
    offline = std::max(offline, rule.offline.size());
    when_full = std::max(when_full, rule.when_full.size());
  }
  const size_t others = id + level + may_last + offline + when_full + kGaps;
  const size_t width = std::max(kResourceMin, kLineWidth - std::min(kLineWidth, others));
  for (EffectiveRule& rule : *rules) rule.resource = Shortened(rule.resource, width);
}

// An example with the rule's own numbers: many take a count for the level of all clients.
std::string PerClientLegend(const Rule& rule) {
  constexpr int kClients = 6;
  Rule global = rule;
  // The same number with the other meaning, so that both can be compared.
  global.threshold_type = ThresholdType::kGlobal;
  return "per client: the level grows with the clients online: with " + std::to_string(kClients) +
         " it is " + core::AmountText(global, rule.count * kClients) +
         ".\n  \"thresholdType\": 1 in clusterConfig makes it " + LevelText(global) + ".\n";
}

// The first values that have limits of their own: their types are easily mistaken.
std::string OwnLimits(const std::vector<Rule>& rules) {
  constexpr size_t kShownMax = 10;
  constexpr size_t kValueBytes = 24;
  size_t count = 0;
  std::string text;
  for (const Rule& rule : rules) {
    if (!IsPerValue(rule)) continue;
    for (const ParamRule::Item& item : rule.param->items) {
      // All are counted, the first few are shown.
      if (++count > kShownMax) continue;
      const Param value = item.value.view();
      text += "  flow " + FlowWord(rule) + ", " + std::string(ParamTypeName(value.type)) + " " +
              TerminalText(Shortened(ParamText(value), kValueBytes)) + ": " +
              core::AmountText(rule, item.count) + "\n";
    }
  }
  if (count == 0) return {};
  if (count > kShownMax) text += "  and " + std::to_string(count - kShownMax) + " more\n";
  return "Values with limits of their own:\n" + text;
}

// How calls in progress lose their tokens, for what the rules say.
std::string TokensLegend(const std::vector<Rule>& rules) {
  const auto any = [&](AtTimeout then) {
    return std::any_of(rules.begin(), rules.end(), [then](const Rule& rule) {
      return !rule.says_rate() && AtTimeoutOf(rule) == then;
    });
  };
  std::string legend;
  if (any(AtTimeout::kTakenBack)) {
    legend +=
        "MAY_LAST: a call may last so long, then the server takes its token back\n"
        "  (resourceTimeout x " +
        std::to_string(kResourceTimeoutFactor) +
        ", the server's resource-timeout-factor).\n"
        "  \"resourceTimeoutStrategy\": 2 in clusterConfig lets clients keep it.\n";
  }
  if (any(AtTimeout::kReleased)) {
    legend += "released: a call may last so long, then its client releases the token.\n";
  }
  if (any(AtTimeout::kKept)) {
    legend += "kept: a call may last as long as its client lives and keeps the token.\n";
  }
  if (legend.empty()) return {};
  return legend + "OFFLINE: so long after a client is gone its tokens are taken back.\n";
}

// The first flows that nothing limits while the server is gone.
std::string WithoutServer(const std::vector<Rule>& rules) {
  constexpr size_t kShownMax = 10;
  size_t count = 0;
  std::string flows;
  for (const Rule& rule : rules) {
    if (rule.fallback_to_local_when_fail || ++count > kShownMax) continue;
    flows += (count == 1 ? " " : ", ") + FlowWord(rule);
  }
  if (count == 0) return {};
  if (count > kShownMax) flows += " and " + std::to_string(count - kShownMax) + " more";
  return "Without a server clients let every call pass of flow" + flows +
         ".\n"
         "  \"fallbackToLocalWhenFail\" is false, the default of a ParamFlowRule; true limits.\n";
}

std::string Legend(const std::vector<Rule>& rules) {
  std::string legend = "*: as by default.\n";
  const bool by_name_alone = std::any_of(rules.begin(), rules.end(),
                                         [](const Rule& rule) { return rule.flow_id == FlowId{}; });
  if (by_name_alone) {
    legend += "FLOW_ID -: clients ask by the resource's name; --namespace NS shows the number.\n";
  }
  const auto per_client = std::find_if(rules.begin(), rules.end(), IsPerClient);
  if (per_client != rules.end()) legend += PerClientLegend(*per_client);
  if (std::any_of(rules.begin(), rules.end(), IsPerValue)) {
    legend += "a value: each value of the rule's parameter has the limit to itself.\n";
  }
  const auto rate = std::find_if(rules.begin(), rules.end(), [](const Rule& rule) {
    return rule.says_rate() && core::HasClusterMode(core::KindOf(rule));
  });
  if (rate != rules.end()) {
    legend += "in " + core::IntervalText(rate->rate_interval_ms()) +
              ": calls that begin within it. \"grade\": 0 makes them calls at once.\n";
  }
  return legend + TokensLegend(rules) +
         "WHEN_FULL: what comes of a prioritized acquire without room.\n" + WithoutServer(rules) +
         OwnLimits(rules);
}

}  // namespace

template <>
std::span<const Column<EffectiveRule>> ColumnsOf() {
  return kEffectiveColumns;
}

std::string EffectiveRulesText(const std::vector<Rule>& rules) {
  if (rules.empty()) return {};
  std::vector<EffectiveRule> effects;
  effects.reserve(rules.size());
  for (const Rule& rule : rules) effects.push_back(EffectOf(rule));
  // The text is for a message, so it is made in memory, and to a width of its own.
  FitResources(&effects);
  std::string text;
  Output out([&text](std::string_view bytes) {
    text += bytes;
    return 0;
  });
  Listing<EffectiveRule> listing(Format::kTable, /*now_ms=*/0, &out);
  for (const EffectiveRule& effect : effects) {
    if (!listing.Add(effect).ok()) break;
  }
  listing.Finish();
  out.Flush();
  return text + Legend(rules);
}

std::string RemovalWarning(size_t removed) {
  if (removed == 0) return {};
  return "nowcalls-admin: warning: the load removes " + Counted(removed, "rule") +
         " in force: acquires under " + (removed == 1 ? "it" : "them") +
         " answer NO_RULE_EXISTS, for which Sentinel's clients let calls pass\n";
}

}  // namespace nowcalls::admin
