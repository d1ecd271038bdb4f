#include "core/rule_book.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/text.h"
#include "core/rule_limits.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_warnings.h"

namespace nowcalls::core {

RuleBook::RuleBook(Books* books, FlowTable* flows, RateTable* rates, Waiting* waiting,
                   Absence* absence, Notices* notices)
    : books_(books),
      flows_(flows),
      rates_(rates),
      waiting_(waiting),
      absence_(absence),
      notices_(notices),
      sources_(flows, books->options().limits.namespaces_max, notices) {}

Status RuleBook::Replace(const Step& step, const RuleSetRefs& sets) {
  // All checks come before the first change: a refused call changes nothing.
  for (const RuleSet* set : sets) {
    NOWCALLS_RETURN_IF_ERROR(CheckNamespace(set->name_space).WithContext("namespace"));
  }
  NOWCALLS_RETURN_IF_ERROR(sources_.Check(sets));
  NOWCALLS_RETURN_IF_ERROR(CheckFlowOwners(*flows_, sets));
  const absl::flat_hash_set<FlowKey> wanted = FlowKeysOf(sets);
  NOWCALLS_RETURN_IF_ERROR(CheckRuleLimits(*flows_, books_->options().limits, sets, wanted));
  NOWCALLS_RETURN_IF_ERROR(TakeRoomOnLowDisk(disk_low_ ? BytesToWrite(*flows_, sets) : 0));

  // Removals first, so that there is room for new rules. A flow that another set has is not
  // removed: it moves there with tokens and counters.
  std::vector<std::string> sources;
  for (const RuleSet* set : sets) sources.push_back(sources_.SourceOf(set->name_space));
  std::vector<size_t> removed;
  removed.reserve(sets.size());
  for (const RuleSet* set : sets) removed.push_back(RemoveRulesNotIn(step, *set, wanted));

  // New rules. Absence hears once, of the shortest time for offline clients that any of them set.
  int64_t lowered_ms = kNotScheduled;
  for (size_t i = 0; i < sets.size(); ++i) {
    const RuleSet& set = *sets[i];
    const NamespaceSlot space = flows_->FindOrAddNamespace(set.name_space);
    size_t changed = 0;
    for (const Rule& rule : set.parsed.rules) {
      changed += InstallRule(step, space, rule, &lowered_ms) ? 1 : 0;
    }
    flows_->name_space(space).loads = {.loaded_ms = step.now.ms, .warnings = set.parsed.warnings()};
    flows_->EraseNamespaceIfUnused(space);
    // A set that changes nothing is noted only for a file; an RPC's caller knows.
    const bool moved = sources_.Record(step, set, sources[i]);
    const bool changes = changed > 0 || removed[i] > 0 || moved;
    set_changes_ += changes ? 1 : 0;
    if (changes || set.source != kRpcRuleSource) NoteSet(set, changed, removed[i]);
  }
  if (lowered_ms != kNotScheduled) absence_->LowerOfflineTime(lowered_ms);
  return {};
}

void RuleBook::NoteSet(const RuleSet& set, size_t changed, size_t removed) {
  const size_t rules = set.parsed.rules.size();
  const std::string in = InNamespace(set.name_space);
  const LogFields fields = {{"namespace", set.name_space}};
  Notice notice{.topic = LogTopic::kAct,
                .text = in + std::to_string(rules) + (rules == 1 ? " rule, " : " rules, ") +
                        std::to_string(changed) + " new or changed, " + std::to_string(removed) +
                        " removed, " + std::to_string(set.parsed.skipped.count()) + " skipped",
                .fields = fields};
  if (changed + removed > 0) {
    notices_->Add(std::move(notice));
  } else {
    notices_->AddIfRoom(std::move(notice));
  }
  std::vector<std::string> remarks = set.parsed.Remarks();
  const uint32_t guard = books_->options().guards().Of(set.name_space);
  for (std::string& line : GuardWarnings(set.parsed.rules, guard).Lines()) {
    remarks.push_back(std::move(line));
  }
  for (const std::string& remark : remarks) {
    notices_->AddIfRoom(
        {.warning = true, .topic = LogTopic::kAct, .text = in + remark, .fields = fields});
  }
}

void RuleBook::SetDiskLow(bool low) {
  if (low != disk_low_) bytes_while_low_ = 0;
  disk_low_ = low;
}

// While the disk is nearly full, rules by RPC may take a bounded number of its bytes. Files have as
// many as their operator wrote; removals make room in the end.
Status RuleBook::TakeRoomOnLowDisk(uint64_t bytes) {
  const uint64_t bytes_max = books_->options().limits.rule_bytes_while_disk_low_max;
  if (disk_low_ && bytes > 0 && bytes_while_low_ + bytes > bytes_max) {
    return Status::ResourceExhausted(
        "the disk of the ledger is nearly full (disk_free_low_bytes), and since it is, rules may "
        "take " +
        std::to_string(bytes_max) +
        " bytes of it: until there is room they can be removed, but not be more or change");
  }
  bytes_while_low_ += bytes;
  return {};
}

// Returns the number of rules that leave the namespace, those that move included.
size_t RuleBook::RemoveRulesNotIn(const Step& step, const RuleSet& set,
                                  const absl::flat_hash_set<FlowKey>& wanted) {
  const NamespaceSlot space = flows_->FindNamespace(set.name_space);
  if (space == kNoNamespace) return 0;
  absl::btree_set<FlowKey> removed = flows_->name_space(space).rule_keys;
  for (const Rule& rule : set.parsed.rules) removed.erase(rule.key());
  const bool counts = disk_low_ && set.source == kRpcRuleSource;
  size_t ended = 0;
  bool beside_other = false;
  for (const FlowKey& key : removed) {
    if (wanted.contains(key)) continue;
    const bool has_other = wanted.contains({key.id, OtherThan(key.kind)});
    // The other kind's new rule replaces this one, so the id keeps a limit; no warning then.
    const bool changes_kind = has_other && FindOther(*flows_, key) == kNoFlow;
    ended += changes_kind ? 0 : 1;
    beside_other |= has_other && !changes_kind;
    const FlowSlot slot = flows_->Find(key);
    const Flow& flow = flows_->at(slot);
    // A removed rule with tokens is written once more.
    if (counts && flow.tokens.size > 0) bytes_while_low_ += RuleToJson(*flow.rule).size();
    RemoveRule(step, slot, has_other);
  }
  if (ended > 0) {
    notices_->Add(
        {.warning = true,
         .topic = LogTopic::kAct,
         .text = InNamespace(set.name_space) + Counted(ended, "rule") +
                 " in force removed: acquires under " + (ended == 1 ? "it" : "them") +
                 " answer NO_RULE_EXISTS" +
                 (beside_other ? " or, beside a rule of the other kind, BAD_REQUEST" : "") +
                 ", for which Sentinel's clients let calls pass",
         .fields = {{"namespace", set.name_space}}});
  }
  return removed.size();
}

// Waiters are answered as if they asked now; tokens keep the rule, as removed. `has_other`: the id
// has a rule of the other kind.
void RuleBook::RemoveRule(const Step& step, FlowSlot slot, bool has_other) {
  const Flow& flow = flows_->at(slot);
  if (flow.draining) {
    const std::string& name_space = flows_->name_space(flow.name_space).name;
    notices_->AddIfRoom(
        {.topic = LogTopic::kAct,
         .text = InNamespace(name_space) + "the drain of " + FlowText(flow.key()) +
                 " ended with its rule",
         .fields = {{"namespace", name_space}, {"flow", std::to_string(flow.id.value), true}}});
  }
  if (has_other) {
    waiting_->RefuseAll(step, slot, TokenStatus::kBadRequest, RefusedBy::kParam);
  } else {
    waiting_->RefuseAll(step, slot, TokenStatus::kNoRuleExists, RefusedBy::kNone);
  }
  if (flow.tokens.size == 0) return books_->EraseFlow(step, slot);
  flows_->MarkRemoved(slot);
  books_->RecordRule(step, flow);
}

// Returns whether anything changed. A clientOfflineTime that became shorter, with tokens out,
// lowers *lowered_ms.
bool RuleBook::InstallRule(const Step& step, NamespaceSlot space, const Rule& rule,
                           int64_t* lowered_ms) {
  const FlowSlot slot = flows_->FindOrAdd(rule.key());
  Flow& flow = flows_->at(slot);
  const NamespaceSlot space_before = flow.name_space;
  const bool moves = space_before != kNoNamespace && space_before != space;
  if (flow.active() && !moves && *flow.rule == rule) return false;
  const int64_t offline_time_before_ms = flow.client_offline_time_ms;
  if (moves) {
    // Waiters may not reach the new namespace: to them the rule is removed.
    waiting_->RefuseAll(step, slot, TokenStatus::kNoRuleExists, RefusedBy::kNone);
    books_->RecordRuleRemoved(step, flow);
  }
  // Windows look at the old rule, so they come before SetRule; all below reads the new one.
  if (flow.rule != nullptr) rates_->OnNewRule(slot, *flow.rule, rule, step.batch);
  flows_->SetRule(slot, space, rule, books_->options().resource_timeout_factor);
  books_->TrackSessions(&flow);
  waiting_->OnNewRule(slot);
  books_->RecordRule(step, flow);
  if (space_before != kNoNamespace) flows_->EraseNamespaceIfUnused(space_before);
  // Offline sessions may be due earlier now. With a longer time their checks find out by
  // themselves.
  if (flow.tokens.size > 0 && flow.client_offline_time_ms < offline_time_before_ms) {
    *lowered_ms = std::min(*lowered_ms, flow.client_offline_time_ms);
  }
  return true;
}

Result<DrainAnswer> RuleBook::Drain(const Step& step, const FlowChoice& choice, bool on,
                                    const AdminAct& act) {
  NOWCALLS_RETURN_IF_ERROR(CheckOneNamespace(*flows_, choice));
  DrainAnswer answer;
  std::vector<FlowSlot> changing;
  uint64_t bytes = 0;
  // The sums are of all chosen rules, also of those in that state already.
  for (const FlowSlot slot : FindAll(*flows_, choice)) {
    const Flow& flow = flows_->at(slot);
    if (!flow.active()) continue;
    answer.status = TokenStatus::kOk;
    answer.now_calls += flow.lane.now_calls;
    answer.tokens += flow.tokens.size;
    if (flow.draining == on) continue;
    changing.push_back(slot);
    bytes += RuleToJson(*flow.rule).size();
  }
  if (changing.empty()) return answer;
  NOWCALLS_RETURN_IF_ERROR(TakeRoomOnLowDisk(disk_low_ ? bytes : 0));
  // Both kinds of the id or none.
  for (const FlowSlot slot : changing) SetDrain(step, slot, on, act);
  return answer;
}

void RuleBook::SetDrain(const Step& step, FlowSlot slot, bool on, const AdminAct& act) {
  const Flow& flow = flows_->at(slot);
  SetDraining(step, slot, on);

  const std::string because = act.reason.empty() ? "" : ": " + std::string(act.reason);
  notices_->AddAct(
      act,
      (on ? "began to drain " + FlowText(flow.key()) + ", " + Counted(flow.tokens.size, "token") +
                " with nowCalls " + std::to_string(flow.lane.now_calls) + " are out"
          : "ended the drain of " + FlowText(flow.key())) +
          because,
      {{"flow", std::to_string(flow.id.value), true}});
}

Result<DrainPage> RuleBook::DrainNamespace(const Step& step, const NamespacePiece& piece, bool on,
                                           const AdminAct& act) {
  constexpr size_t kRecordBytesPerPiece = 1024 * 1024;
  constexpr uint64_t kLooksPerPiece = 50'000;  // Waiters are answered.
  const NamespaceSlot space = flows_->FindNamespace(piece.name_space);
  if (space == kNoNamespace) return DrainPage{};
  const auto& keys = flows_->name_space(space).rule_keys;
  if (keys.empty()) return DrainPage{};
  DrainPage page{.status = TokenStatus::kOk};
  uint32_t changed = 0;
  Status refused;
  const size_t bytes_before = step.batch->bytes().size();
  const uint64_t looks_before = books_->looks();
  auto next = keys.lower_bound(FlowKey{FlowId{piece.first_flow}});
  const auto is_full = [&] {
    return page.rules >= piece.limit ||
           step.batch->bytes().size() - bytes_before > kRecordBytesPerPiece ||
           books_->looks() - looks_before > kLooksPerPiece;
  };
  // The next piece begins at a flow id, so both rules of one are in the same piece.
  FlowId last{0};
  for (; next != keys.end() && (next->id == last || !is_full()); ++next, ++page.rules) {
    last = next->id;
    const FlowSlot slot = flows_->Find(*next);
    const Flow& flow = flows_->at(slot);
    page.now_calls += flow.lane.now_calls;
    page.tokens += flow.tokens.size;
    if (flow.draining == on) continue;
    refused = TakeRoomOnLowDisk(disk_low_ ? RuleToJson(*flow.rule).size() : 0);
    // What was drained so far stays, and is noted; the error comes after.
    if (!refused.ok()) break;
    SetDraining(step, slot, on);
    ++changed;
  }
  books_->looks() += page.rules;
  if (next != keys.end()) page.next_flow = next->id.value;
  if (changed > 0) {
    const std::string because = act.reason.empty() ? "" : ": " + std::string(act.reason);
    notices_->AddAct(act,
                     (on ? "began to drain " : "ended the drain of ") + Counted(changed, "rule") +
                         " of namespace " + std::string(piece.name_space) + because,
                     {{"namespace", std::string(piece.name_space)}});
  }
  NOWCALLS_RETURN_IF_ERROR(refused);
  return page;
}

// REQUIRES: the flow is active, and in the other state. The record survives a restart and later
// sets.
void RuleBook::SetDraining(const Step& step, FlowSlot slot, bool on) {
  Flow& flow = flows_->at(slot);
  flow.draining = on;
  books_->RecordRule(step, flow);
  if (on) waiting_->RefuseAll(step, slot, TokenStatus::kBlocked, RefusedBy::kDraining);
}

}  // namespace nowcalls::core
