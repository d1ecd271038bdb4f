// SparedTokens: the tokens of one offline session that were due and may stay for now.
//
// Thread: loop. Most wait for a moment that the expire strategy has named. When a rule has become
// more patient meanwhile, its tokens are not due at that moment after all; from then on they wait
// for the rule. Another change of the rule may bring that forward. Tokens are listed by fence, also
// when they have ended meanwhile: TakeDue's caller does not find those. Memory: some 10 bytes a
// token.
#ifndef NOWCALLS_CORE_SPARED_TOKENS_H_
#define NOWCALLS_CORE_SPARED_TOKENS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "core/token_table.h"

namespace nowcalls::core {

class SparedTokens {
 public:
  void WaitForStrategy(FlowSlot flow, uint64_t fence, int64_t ask_ms);
  // `due_ms` is the same for all tokens that the session has of the flow.
  void WaitForRule(FlowSlot flow, uint64_t fence, int64_t due_ms);

  // Whether tokens of the flow wait here. If one does, all that the session has of the flow do:
  // they are due at the same moment.
  bool Has(FlowSlot flow) const { return flows_.contains(flow); }
  // The first moment that a token waits for; INT64_MAX without tokens.
  int64_t next_ms() const;
  // Takes out some of the fences that wait for a moment up to `now_ms`; empty only if there are
  // none.
  std::vector<uint64_t> TakeDue(int64_t now_ms);

  // Rules have become less patient: due_ms(flow) is when a flow's tokens are due now.
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

#endif  // NOWCALLS_CORE_SPARED_TOKENS_H_
