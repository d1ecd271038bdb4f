// RuleSources: which source may replace a namespace's rules (nowcalls/rule_source.h).
//
// Thread: loop. It may touch: `source` and `claimed_by` of namespaces.
#ifndef NOWCALLS_CORE_RULE_SOURCES_H_
#define NOWCALLS_CORE_RULE_SOURCES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "core/notices.h"
#include "core/rules/rule_set.h"
#include "core/step.h"
#include "core/tables/flow_table.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

class RuleSources {
 public:
  RuleSources(FlowTable* flows, uint32_t namespaces_max, Notices* notices)
      : flows_(flows), namespaces_max_(namespaces_max), notices_(notices) {}

  Status Claim(const RuleClaim& claim);  // RuleSink::Claim.
  // kAlreadyExists: another source owns a set's namespace.
  Status Check(const RuleSetRefs& sets) const;
  // RuleSink::NoteRefused.
  void NoteRefused(Instant now, std::string_view source, std::string_view name_space,
                   const Status& why);
  std::string SourceOf(std::string_view name_space) const;  // Empty: none.
  // Records the set's source; true if the ledger had another (`before`). REQUIRES: the set is in
  // force.
  bool Record(const Step& step, const RuleSet& set, const std::string& before);

 private:
  FlowTable* const flows_;
  const uint32_t namespaces_max_;
  Notices* const notices_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULE_SOURCES_H_
