// RulesDiff: what a load of a rule file would change.
//
// Thread: any; pure. Fields have Sentinel's names; a value's own limit is a field.
#ifndef NOWCALLS_ADMIN_RULES_DIFF_H_
#define NOWCALLS_ADMIN_RULES_DIFF_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admin/columns.h"
#include "core/rules/rule_json.h"

namespace nowcalls::admin {

// "added", "removed", "changed", "conflict" (another namespace has the flowId), "skipped" (not for
// this server), "ignored" (a misspelt key), "warning" (a level rounded to 0, a key that comes
// twice).
struct RuleChange {
  std::string_view change;
  std::optional<int64_t> flow_id;
  std::optional<FlowKind> kind;
  std::string resource;
  std::optional<std::string> field;  // Of a changed rule; one row for each.
  std::optional<std::string> before;
  std::optional<std::string> after;
  std::string note;
};
template <>
std::span<const Column<RuleChange>> ColumnsOf();

struct RulesDiff {
  std::vector<RuleChange> changes;  // By flow id; then the others.
  size_t added = 0;
  size_t removed = 0;
  size_t changed = 0;
  size_t unchanged = 0;
  size_t conflicts = 0;
  size_t skipped = 0;

  bool same() const { return added + removed + changed + conflicts == 0; }
  // "1 added, 0 removed, 2 changed, 3 unchanged, 1 skipped"; conflicts if any.
  std::string Summary() const;
};

// `in_force`: of all namespaces.
RulesDiff DiffRules(std::string_view name_space, const std::vector<RuleRow>& in_force,
                    const core::ParsedRules& file);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_RULES_DIFF_H_
