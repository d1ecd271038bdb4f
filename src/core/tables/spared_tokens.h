// SparedTokens: due tokens of one offline session that may stay for now.
//
// Thread: loop. Listed by fence, also after their end. Some 10 bytes a token.
#ifndef NOWCALLS_CORE_TABLES_SPARED_TOKENS_H_
#define NOWCALLS_CORE_TABLES_SPARED_TOKENS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "core/tables/token_table.h"

namespace nowcalls::core {

class SparedTokens {
 public:
  void WaitForStrategy(FlowSlot flow, uint64_t fence, int64_t ask_ms);
  // `due_ms`: of all tokens of the flow.
  void WaitForRule(FlowSlot flow, uint64_t fence, int64_t due_ms);

  // All tokens of a flow wait here, or none.
  bool Has(FlowSlot flow) const { return flows_.contains(flow); }
  int64_t next_ms() const;  // INT64_MAX without tokens.
  // Takes some of the fences due up to `now_ms`; empty: none are.
  std::vector<uint64_t> TakeDue(int64_t now_ms);

  // due_ms(flow): the new moment.
  template <typename DueMs>
  void BringForward(DueMs due_ms) {
    for (auto& [flow, waiting] : for_rule_) MoveForward(flow, &waiting, due_ms(flow));
  }

 private:
  struct ForRule {
    int64_t due_ms = INT64_MAX;
    std::vector<uint64_t> fences;
  };

  void MoveForward(FlowSlot flow, ForRule* waiting, int64_t due_ms);

  absl::flat_hash_set<FlowSlot> flows_;
  absl::btree_map<int64_t, std::vector<uint64_t>> for_strategy_;  // Fences by when to ask.
  absl::btree_map<FlowSlot, ForRule> for_rule_;
  absl::btree_set<std::pair<int64_t, FlowSlot>> rules_due_;  // Of each of these.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_SPARED_TOKENS_H_
