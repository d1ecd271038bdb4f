// RuleBook: the rules in force.
//
// Thread: loop. It wakes or refuses waiters of changed rules.
#ifndef NOWCALLS_CORE_RULE_BOOK_H_
#define NOWCALLS_CORE_RULE_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "base/time.h"
#include "core/answers.h"
#include "core/books.h"
#include "core/expiry/absence.h"
#include "core/grants/waiting.h"
#include "core/notices.h"
#include "core/rule_sources.h"
#include "core/rules/rule_set.h"
#include "core/step.h"
#include "core/tables/slot.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

class RuleBook {
 public:
  RuleBook(Books* books, FlowTable* flows, RateTable* rates, Waiting* waiting, Absence* absence,
           Notices* notices);

  // See Core.
  Status Replace(const Step& step, const RuleSetRefs& sets);
  Status Claim(const RuleClaim& claim) { return sources_.Claim(claim); }
  void NoteRefused(Instant now, std::string_view source, std::string_view name_space,
                   const Status& why) {
    sources_.NoteRefused(now, source, name_space, why);
  }
  Result<DrainAnswer> Drain(const Step& step, const FlowChoice& choice, bool on,
                            const AdminAct& act);
  Result<DrainPage> DrainNamespace(const Step& step, const NamespacePiece& piece, bool on,
                                   const AdminAct& act);
  void SetDiskLow(bool low);

  uint64_t set_changes() const { return set_changes_; }  // Sets that changed something.

 private:
  void SetDraining(const Step& step, FlowSlot slot, bool on);
  Status TakeRoomOnLowDisk(uint64_t bytes);
  size_t RemoveRulesNotIn(const Step& step, const RuleSet& set,
                          const absl::flat_hash_set<FlowKey>& wanted);
  void RemoveRule(const Step& step, FlowSlot slot, bool has_other);
  bool InstallRule(const Step& step, NamespaceSlot space, const Rule& rule, int64_t* lowered_ms);
  void SetDrain(const Step& step, FlowSlot slot, bool on, const AdminAct& act);
  void NoteSet(const RuleSet& set, size_t changed, size_t removed);

  Books* const books_;
  FlowTable* const flows_;
  RateTable* const rates_;
  Waiting* const waiting_;
  Absence* const absence_;
  Notices* const notices_;
  RuleSources sources_;
  bool disk_low_ = false;
  uint64_t bytes_while_low_ = 0;  // JSON of rules by RPC, and of drains, since the disk is low.
  uint64_t set_changes_ = 0;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULE_BOOK_H_
