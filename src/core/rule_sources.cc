#include "core/rule_sources.h"

#include "base/text.h"
#include "core/rule_limits.h"
#include "core/sight.h"

namespace nowcalls::core {
namespace {

// Bytes of a refusal that the figures keep; rule and field are named at its beginning.
constexpr size_t kRefusalBytesMax = 1024;

std::string Name(std::string_view name_space) { return "namespace " + std::string(name_space); }

// A source without a claim in this run owns nothing, but for the RPC, which needs none: no
// configuration could end its claim.
std::string OwnerOf(const Namespace& name_space) {
  if (!name_space.claimed_by.empty()) return name_space.claimed_by;
  return name_space.source == kRpcRuleSource ? name_space.source : std::string();
}

Status NotYours(std::string_view name_space, const std::string& owner, std::string_view source) {
  const std::string advice =
      owner == kRpcRuleSource
          ? "load them by RPC (nowcalls-admin rules load), or load [] to give it up"
          : "change them there";
  return Status::AlreadyExists(Name(name_space) + " takes its rules from " + owner +
                               " and not from " + std::string(source) + "; " + advice);
}

}  // namespace

Status RuleSources::Claim(const RuleClaim& claim) {
  NOWCALLS_RETURN_IF_ERROR(CheckRuleSource(claim.source).WithContext("rule source"));
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(claim.name_space).WithContext("namespace"));
  const NamespaceSlot known = flows_->FindNamespace(claim.name_space);
  if (known != kNoNamespace) {
    const Namespace& name_space = flows_->name_space(known);
    const std::string owner = OwnerOf(name_space);
    // A takeover needs a namespace that no source has claimed in this run.
    const bool may_take = claim.takeover && name_space.claimed_by.empty();
    if (!owner.empty() && owner != claim.source && !may_take) {
      return NotYours(claim.name_space, owner, claim.source);
    }
  } else if (flows_->namespaces() >= namespaces_max_) {
    return Status::ResourceExhausted("there are " + std::to_string(flows_->namespaces()) +
                                     " namespaces already (namespaces_max)");
  }
  flows_->name_space(flows_->FindOrAddNamespace(claim.name_space)).claimed_by = claim.source;
  return {};
}

Status RuleSources::Check(const RuleSetRefs& sets) const {
  for (const RuleSet* set : sets) {
    NOWCALLS_RETURN_IF_ERROR(CheckRuleSource(set->source).WithContext("rule source"));
    const NamespaceSlot slot = flows_->FindNamespace(set->name_space);
    if (slot == kNoNamespace) continue;
    const std::string owner = OwnerOf(flows_->name_space(slot));
    if (owner.empty() || owner == set->source) continue;
    return NotYours(set->name_space, owner, set->source);
  }
  return {};
}

// A source that may not load the namespace's rules says nothing about them.
void RuleSources::NoteRefused(Instant now, std::string_view source, std::string_view name_space,
                              const Status& why) {
  const NamespaceSlot slot = flows_->FindNamespace(name_space);
  if (slot == kNoNamespace) return;
  Namespace& found = flows_->name_space(slot);
  const std::string owner = OwnerOf(found);
  if (!owner.empty() && owner != source) return;
  found.loads.refused_ms = why.ok() ? 0 : now.ms;
  // All that may see this namespace may read it: only the log names others.
  const Sight none(nullptr, [](const void*, std::string_view) { return false; });
  found.loads.refusal =
      why.ok() ? std::string() : Shortened(WithoutOthers(why.message(), none), kRefusalBytesMax);
}

std::string RuleSources::SourceOf(std::string_view name_space) const {
  const NamespaceSlot slot = flows_->FindNamespace(name_space);
  return slot == kNoNamespace ? std::string() : flows_->name_space(slot).source;
}

bool RuleSources::Record(const Step& step, const RuleSet& set, const std::string& before) {
  const std::string now = set.parsed.rules.empty() ? std::string() : set.source;
  const NamespaceSlot slot = flows_->FindNamespace(set.name_space);
  if (slot != kNoNamespace) flows_->name_space(slot).source = now;
  if (now == before) return false;
  // The record goes with the last rule: a record without rules proves that rules were lost.
  if (now.empty()) {
    step.batch->NamespaceRemoved(set.name_space);
  } else {
    step.batch->NamespaceSet({set.name_space, now});
  }
  if (!before.empty() && !now.empty()) {
    notices_->Add({.topic = LogTopic::kAct,
                   .text = Name(set.name_space) + ": its rules came from " + before +
                           " and come from " + now + " now",
                   .fields = {{"namespace", set.name_space}}});
  }
  return true;
}

}  // namespace nowcalls::core
