#include "core/books.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "core/rules/rule_json.h"

namespace nowcalls::core {
namespace {

ledger::TokenKey KeyOf(const Books& books, const TokenEntry& entry) {
  return {entry.ledger_family(), entry.deadline_ms, books.IdOf(entry)};
}

// All but the parameter: see ParamOf.
ledger::Token LedgerToken(const Books& books, TokenSlot slot) {
  const TokenEntry& entry = books.tokens().at(slot);
  return {.key = KeyOf(books, entry),
          .flow = books.flows().at(entry.flow_slot).id,
          .session = books.sessions().at(entry.session_slot).id,
          .count = entry.count,
          .issued_ms = entry.issued_ms,
          .fence = Fence{entry.fence},
          .request_id = books.tokens().RequestIdOf(slot)};
}

std::optional<Param> ParamOf(const Books& books, TokenSlot slot) {
  const KeySlot key = books.tokens().KeyOf(slot);
  if (key == kNoKey) return std::nullopt;
  return books.flows().keys().at(key).value.view();
}

// Most client ids have one session: the entry names the instance only if there are more.
ledger::HistoryEntry EntryOf(const Books& books, TokenSlot slot, int64_t now_ms,
                             const TokenEnd& how) {
  const TokenEntry& entry = books.tokens().at(slot);
  const SessionState& session = books.sessions().at(entry.session_slot);
  ledger::HistoryEntry end;
  end.ended_ms = now_ms;
  end.reason = how.reason;
  end.outcome = how.outcome;
  end.token_id = books.IdOf(entry);
  end.flow = books.flows().at(entry.flow_slot).id;
  end.session = session.id;
  end.count = entry.count;
  end.fence = Fence{entry.fence};
  end.issued_ms = entry.issued_ms;
  end.name_space = books.flows().name_space(session.name_space).name;
  end.client_id = session.client_id;
  end.note = how.note;
  if (session.instances() > 1) end.instance = session.instance;
  if (const KeySlot key = books.tokens().KeyOf(slot); key != kNoKey) {
    end.param = books.flows().keys().at(key).value;
  }
  return end;
}

ledger::RuleEntry RuleEntryOf(const Books& books, const Flow& flow) {
  auto state = flow.draining ? ledger::RuleState::kDraining : ledger::RuleState::kActive;
  if (flow.removed) state = ledger::RuleState::kRemoved;
  return {.name_space = books.flows().name_space(flow.name_space).name,
          .flow = flow.id,
          .state = state,
          .json = RuleToJson(*flow.rule)};
}

// The flow of the other kind, if its rule shares the record of this one: of the same id and
// namespace.
const Flow* SiblingOf(const Books& books, const Flow& flow) {
  const FlowSlot slot = books.flows().Find({flow.id, OtherThan(flow.key().kind)});
  if (slot == kNoFlow) return nullptr;
  const Flow& other = books.flows().at(slot);
  return other.rule != nullptr && other.name_space == flow.name_space ? &other : nullptr;
}

}  // namespace

Books::Books(const CoreOptions& options)
    : flows_(options.token_id_key),
      tokens_(options.token_id_key),
      history_(options.limits.history_max),
      request_ids_(options.limits.cancels_per_session_max, options.limits.cancels_max),
      wake_list_(&flows_),
      rates_(options.token_id_key, options.limits.param_value_bytes_max),
      options_(options),
      ids_(options.token_id_key) {
  flows_.SetGuards(options.guards());
}

void Books::SetOptions(const CoreOptions& options) {
  // Key and term are the ledger's: the configuration that is read again does not have them.
  const auto token_id_key = options_.token_id_key;
  const uint64_t term = options_.term;
  options_ = options;
  options_.token_id_key = token_id_key;
  options_.term = term;
  flows_.SetGuards(options.guards());
}

// Session ids and fences come from one sequence. The session is recorded with its first token:
// clients that only connect cost no disk write.
SessionSlot Books::OpenSession(const Step& step, const HelloRequest& request) {
  const bool named = request.client_id.has_value();
  const auto kind = named                 ? ledger::SessionKind::kNamed
                    : request.of_sentinel ? ledger::SessionKind::kSentinel
                                          : ledger::SessionKind::kConnection;
  const NamespaceSlot name_space = flows_.FindOrAddNamespace(request.name_space);
  const SessionSlot slot = sessions_.Add(SessionId{next_fence_++}, kind, name_space,
                                         request.client_id.value_or(request.display_id),
                                         named ? request.instance : 0, step.now.ms);
  ++flows_.name_space(name_space).sessions;
  return slot;
}

void Books::CloseSession(const Step& step, SessionSlot slot) {
  const SessionState& session = sessions_.at(slot);
  if (session.in_ledger) step.batch->SessionClosed(session.id);
  const NamespaceSlot space = session.name_space;
  request_ids_.ForgetSession(session.id);
  --flows_.name_space(space).sessions;
  sessions_.Erase(slot);
  flows_.EraseNamespaceIfUnused(space);
}

TokenSlot Books::IssueToken(const Step& step, const NewToken& wanted) {
  SessionState& session = sessions_.at(wanted.session_slot);
  Flow& flow = flows_.at(wanted.lane.flow_slot);
  // The session's record comes before that of its first token, in the same batch.
  if (!session.in_ledger) {
    session.in_ledger = true;
    step.batch->SessionOpened({session.id, session.kind, session.opened_ms,
                               flows_.name_space(session.name_space).name, session.client_id,
                               session.instance});
  }
  // The entry. The deadline is within the longest hold, so the ledger's deadline is the one that
  // holds. A new maxHoldMs moves no deadline of tokens that are out.
  const Fence fence{next_fence_++};
  const TokenSlot slot = tokens_.Insert(fence.value);
  TokenEntry& entry = tokens_.at(slot);
  int64_t hold_ms = wanted.hold_ms == 0 ? flow.hold_ms : std::min(wanted.hold_ms, flow.hold_ms);
  hold_ms = std::min(hold_ms, flow.HoldEndMs(step.now.ms) - step.now.ms);
  entry.deadline_ms = step.now.ms + hold_ms;
  entry.family = static_cast<uint8_t>(ledger::FamilyForHold(hold_ms));
  entry.issued_ms = step.now.ms;
  entry.count = wanted.count;
  entry.flow_slot = wanted.lane.flow_slot;
  entry.session_slot = wanted.session_slot;
  // Indexes and lists, then the sums, then the record.
  if (wanted.request_id != 0) tokens_.SetRequest(slot, wanted.request_id);
  if (wanted.lane.key_slot != kNoKey) tokens_.SetKey(slot, wanted.lane.key_slot);
  tokens_.Link(slot, &flow.tokens, &session.tokens);
  CountIn(slot);
  flows_.Count(&flow, [](TokenCounters* c) { ++c->granted; });
  const std::optional<Param> param = ParamOf(*this, slot);
  step.batch->TokenIssued(LedgerToken(*this, slot), param ? &*param : nullptr);
  return slot;
}

void Books::CountIn(TokenSlot slot) {
  const TokenEntry& entry = tokens_.at(slot);
  Flow& flow = flows_.at(entry.flow_slot);
  SessionState& session = sessions_.at(entry.session_slot);
  flow.lane.now_calls += entry.count;
  session.now_calls += entry.count;
  if (const KeySlot key_slot = tokens_.KeyOf(slot); key_slot != kNoKey) {
    Key& key = flows_.keys().at(key_slot);
    key.lane.now_calls += entry.count;
    ++key.tokens;
  }
  if (flow.held_by_session != nullptr) (*flow.held_by_session)[entry.session_slot] += entry.count;
  // A lower bound, reset only without tokens: a walk that comes too early finds nothing due.
  session.client_offline_ms_min =
      std::min(session.client_offline_ms_min, flow.client_offline_time_ms);
  live_count_sum_ += entry.count;
  live_fence_sum_ += entry.fence;
  deadlines_.Add(entry.deadline_ms);
}

void Books::EndToken(const Step& step, TokenSlot slot, const TokenEnd& end) {
  // A copy: the entry is erased below.
  const TokenEntry entry = tokens_.at(slot);
  const KeySlot key_slot = tokens_.KeyOf(slot);
  Flow& flow = flows_.at(entry.flow_slot);
  SessionState& session = sessions_.at(entry.session_slot);

  // The records of the ledger and the history are of one batch, so a crash keeps both or neither.
  // The history entry is made now, while names and parameter are at hand, and written at the seal.
  step.batch->TokenEnded(KeyOf(*this, entry), end.reason);
  if (ledger::IsKeptInHistory(end.reason, end.outcome) && options_.limits.history_max > 0) {
    history_.Add(EntryOf(*this, slot, step.now.ms, end));
  }
  if (IsReclaim(end.reason) && session.online()) {
    sessions_.AddLoss({entry.session_slot, IdOf(entry), flow.id, end.reason});
  }

  // The sums that CountIn has made.
  deadlines_.Remove(entry.deadline_ms);
  live_count_sum_ -= entry.count;
  live_fence_sum_ -= entry.fence;
  flow.lane.now_calls -= entry.count;
  session.now_calls -= entry.count;
  NOWCALLS_CHECK(flow.lane.now_calls >= 0 && session.now_calls >= 0);
  if (flow.held_by_session != nullptr) {
    const auto held = flow.held_by_session->find(entry.session_slot);
    if ((held->second -= entry.count) == 0) flow.held_by_session->erase(held);
    // The session holds less: its waiters that were set aside at the cap may fit.
    if (flow.lane.waiting() > 0) WaitQueues::LookAt(entry.session_slot, flow.lane.waiters.get());
  }
  if (key_slot != kNoKey) CountOutOfKey(key_slot, entry.count);
  flows_.Count(&flow, [&](TokenCounters* c) { ++c->ended[static_cast<size_t>(end.reason)]; });
  if (end.outcome != CallOutcome::kOk) {
    flows_.Count(&flow, [&](TokenCounters* c) { ++c->of(end.outcome); });
  }
  flow.held_times.Add(step.now.ms - entry.issued_ms);

  // The token itself, and what only tokens keep.
  tokens_.Erase(slot, &flow.tokens, &session.tokens);
  if (flow.tokens.size == 0 && flow.held_by_session != nullptr) TrackSessions(&flow);
  if (session.tokens.size == 0) session.client_offline_ms_min = kNotScheduled;
  if (flow.tokens.size == 0 && !flow.active()) {
    // The removed rule stayed in the ledger only for this last token.
    EraseFlow(step, entry.flow_slot);
  } else {
    wake_list_.Add({entry.flow_slot});
  }
}

// A token of the key has ended. The key ends with its last one, unless somebody waits for it. Its
// lane goes into the wake list first, which takes only lanes with waiters.
void Books::CountOutOfKey(KeySlot slot, uint32_t count) {
  Key& key = flows_.keys().at(slot);
  key.lane.now_calls -= count;
  --key.tokens;
  NOWCALLS_CHECK(key.lane.now_calls >= 0);
  wake_list_.Add({key.flow_slot, slot});
  flows_.EraseKeyIfUnused(slot);
}

void Books::MoveToken(const Step& step, TokenSlot slot, int64_t deadline_ms, int64_t hold_ms) {
  TokenEntry& entry = tokens_.at(slot);
  const ledger::TokenKey before = KeyOf(*this, entry);
  const ledger::Family family = ledger::FamilyForHold(hold_ms);
  // Without a new ledger key there is nothing to record.
  if (before.deadline_ms == deadline_ms && before.family == family) return;
  deadlines_.Remove(entry.deadline_ms);
  deadlines_.Add(deadline_ms);
  entry.deadline_ms = deadline_ms;
  entry.family = static_cast<uint8_t>(family);
  const std::optional<Param> param = ParamOf(*this, slot);
  step.batch->TokenKept(before, LedgerToken(*this, slot), param ? &*param : nullptr);
}

// The record has the rule of the flow first, then the rule by value.
void Books::RecordRule(const Step& step, const Flow& flow) const {
  const ledger::RuleEntry entry = RuleEntryOf(*this, flow);
  const Flow* const sibling = SiblingOf(*this, flow);
  if (sibling == nullptr) return step.batch->RuleSet(entry);
  const ledger::RuleEntry other = RuleEntryOf(*this, *sibling);
  if (flow.keyed) {
    step.batch->RuleSet(other, &entry);
  } else {
    step.batch->RuleSet(entry, &other);
  }
}

void Books::RecordRuleRemoved(const Step& step, const Flow& flow) const {
  // A rule of the other kind stays: its record replaces that of both.
  const Flow* const sibling = SiblingOf(*this, flow);
  if (sibling != nullptr) return step.batch->RuleSet(RuleEntryOf(*this, *sibling));
  step.batch->RuleRemoved(flows_.name_space(flow.name_space).name, flow.id);
}

void Books::EraseFlow(const Step& step, FlowSlot slot) {
  // Records first: they need the flow, and the namespace's name.
  const NamespaceSlot space = flows_.at(slot).name_space;
  RecordRuleRemoved(step, flows_.at(slot));
  rates_.Erase(slot, step.batch);
  flows_.Erase(slot);
  flows_.EraseNamespaceIfUnused(space);
}

// A new cap walks the flow's tokens, once. While tokens are out the counts stay without a cap too:
// loads of rules with and without a cap, in turns, do not walk the tokens again.
void Books::TrackSessions(Flow* flow) {
  if (!flow->rule->capped()) {
    if (flow->tokens.size == 0) flow->held_by_session.reset();
    return;
  }
  if (flow->held_by_session != nullptr) return;
  flow->held_by_session = std::make_unique<absl::flat_hash_map<SessionSlot, int64_t>>();
  looks() += flow->tokens.size;
  for (TokenSlot token = flow->tokens.head; token != kNoToken;
       token = tokens_.at(token).next(TokenOrder::kFlow)) {
    (*flow->held_by_session)[tokens_.at(token).session_slot] += tokens_.at(token).count;
  }
}

void Books::Resume(const ledger::Seal& last) {
  // Fences below first_fence_ are of tokens from before the restart.
  next_fence_ = first_fence_ = last.next_fence;
  batch_number_ = last.batch_number;
}

void Books::SkipFences(uint64_t next) { next_fence_ = first_fence_ = std::max(next_fence_, next); }

ledger::Seal Books::NextSeal(int64_t now_ms) {
  return {.batch_number = ++batch_number_,
          .next_fence = next_fence_,
          .ledger_ms = now_ms,
          .live_tokens = tokens_.size(),
          .live_count_sum = live_count_sum_,
          .live_fence_sum = live_fence_sum_};
}

}  // namespace nowcalls::core
