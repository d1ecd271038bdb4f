#include "core/loading.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "core/notices.h"
#include "core/rules/rule_json.h"
#include "core/rules/stand_in_rule.h"
#include "ledger/deadline_bound.h"

namespace nowcalls::core {
namespace {

// Ids computed together, so that a processor overlaps them.
constexpr size_t kIdsTogether = 64;

// Tokens whose entries are fetched while one is linked.
constexpr size_t kAhead = 16;

std::string TokenText(TokenId id, FlowId flow) {
  return "token " + std::to_string(id.value) + " (flow " + std::to_string(flow.value) + ")";
}

std::string TokenText(const ledger::Token& token) { return TokenText(token.key.id, token.flow); }

std::string TokenText(const Books& books, TokenSlot slot) {
  const TokenEntry& entry = books.tokens().at(slot);
  return TokenText(books.IdOf(entry), books.flows().at(entry.flow_slot).id);
}

}  // namespace

FirstRecords Loading::first_records() const {
  // Only a ledger of an earlier format has something to record: the format, and rules made here.
  if (found_.version == ledger::kFormatVersion) return {};
  FirstRecords records{found_, stand_ins_, idle_};
  records.format->version = ledger::kFormatVersion;
  return records;
}

void Loading::ExpectSeal(const ledger::Seal& seal) {
  times_.SetSealed(seal.ledger_ms);
  // A damaged count must not ask for more memory than a full server has.
  const uint32_t tokens_max = books_->options().limits.tokens_max;
  const auto bounded = static_cast<uint32_t>(std::min<uint64_t>(seal.live_tokens, tokens_max));
  order_.Reserve(bounded);
  tokens_->Reserve(bounded);
}

ledger::ClockMark Loading::Believed(ledger::ClockMark mark) {
  mark.ledger_ms = times_.Believed(mark.ledger_ms, [] { return "the clock mark is"; });
  return mark;
}

Status Loading::LoadNamespace(const ledger::NamespaceEntry& entry) {
  const std::string name = "namespace " + entry.name_space;
  // A source must be valid: it is compared with those that claim the namespace.
  if (const Status source = CheckRuleSource(entry.source); !source.ok()) {
    return Status::Corruption(name + ": its source " + source.message());
  }
  Namespace& name_space = flows_->name_space(flows_->FindOrAddNamespace(entry.name_space));
  if (!name_space.source.empty()) return Status::Corruption(name + " is in the ledger twice");
  name_space.source = entry.source;
  return {};
}

Status Loading::LoadRule(const ledger::RuleEntry& entry) {
  const std::string where =
      "rule of flow " + std::to_string(entry.flow.value) + " in namespace " + entry.name_space;
  Result<Rule> rule = ParseRule(entry.json);
  if (!rule.ok()) return Status::Corruption(where + ": " + rule.status().message());
  if (rule->flow_id != entry.flow) {
    return Status::Corruption(where + ": holds flowId " + std::to_string(rule->flow_id.value));
  }
  const FlowSlot slot = flows_->FindOrAdd(rule->key());
  Flow& flow = flows_->at(slot);
  // The two kinds of an id are two flows; a second rule of one kind is damage.
  if (flow.rule != nullptr) {
    return Status::Corruption(where + ": another rule of its kind has the flowId too");
  }
  flows_->SetRule(slot, flows_->FindOrAddNamespace(entry.name_space), *rule,
                  books_->options().resource_timeout_factor);
  books_->TrackSessions(&flow);
  // A removed rule stays for its tokens; CheckRemovedRules sees whether it has any.
  if (!ledger::IsInForce(entry.state)) flows_->MarkRemoved(slot);
  flow.draining = entry.state == ledger::RuleState::kDraining;
  return {};
}

Status Loading::LoadSession(const ledger::Session& session) {
  const NamespaceSlot name_space = flows_->FindOrAddNamespace(session.name_space);
  const bool named = session.kind == ledger::SessionKind::kNamed;
  if (sessions_->FindById(session.id) != kNoSession ||
      (named &&
       sessions_->FindNamed(name_space, session.client_id, session.instance) != kNoSession)) {
    const std::string instance =
        session.instance == 0 ? "" : ", instance " + std::to_string(session.instance);
    return Status::Corruption("session " + std::to_string(session.id.value) + " (client " +
                              session.client_id + instance + ") is in the ledger twice");
  }
  const int64_t opened_ms = times_.Believed(session.opened_ms, [&] {
    return "session " + std::to_string(session.id.value) + " was opened";
  });
  // Formats before 4 do not tell Sentinel's connections from others.
  const bool may_be_sentinels = found_.version < kFirstFormatWithKinds && !named;
  const auto kind = may_be_sentinels ? ledger::SessionKind::kSentinel : session.kind;
  const SessionSlot slot =
      sessions_->Add(session.id, kind, name_space, session.client_id, session.instance, opened_ms);
  // Offline since before the restart: Absence::Begin sets the moment.
  sessions_->at(slot).in_ledger = true;
  sessions_->at(slot).from_before_restart = true;
  ++flows_->name_space(name_space).sessions;
  session_slots_.emplace(session.id.value, slot);
  return {};
}

Status Loading::LoadHistory(ledger::HistoryBlock block) {
  for (ledger::HistoryEntry& entry : block) {
    // Ends must not go back, also where a time of the future was bounded.
    const int64_t ended_ms = times_.Believed(entry.ended_ms, [&] {
      return "the end in entry " + std::to_string(entry.sequence) + " of the history is";
    });
    last_end_ms_ = entry.ended_ms = std::max(last_end_ms_, ended_ms);
  }
  return history_->Load(std::move(block));
}

Status Loading::LoadRate(const ledger::RateBucket& bucket) {
  const FlowId flow = bucket.key.flow;
  const FlowSlot slot = flows_->Find({flow, FlowKind::kFlow});
  // Windows are dropped with the rule, so one without a rule is damage.
  if (slot == kNoFlow || flows_->at(slot).rule == nullptr) {
    return Status::Corruption("flow " + std::to_string(flow.value) +
                              " has a window of calls a second, but its rule is missing");
  }
  has_rates_ = true;
  const bool has_come = times_.HasCome(bucket.key.begin_ms, [flow] {
    return "calls a second of flow " + std::to_string(flow.value) + " are";
  });
  rates_->Load(slot, *flows_->at(slot).rule, bucket, has_come);
  return {};
}

Status Loading::LoadToken(const ledger::Token& token) {
  if (token.key.deadline_ms >= ledger::kDeadlineMsEnd) {
    return Status::Corruption(TokenText(token) +
                              ": its deadline is beyond what a rule can make it");
  }
  // Sessions and rules were loaded before: a token without them is damage.
  const auto session = session_slots_.find(token.session.value);
  if (session == session_slots_.end()) {
    return Status::Corruption(TokenText(token) + ": its session " +
                              std::to_string(token.session.value) + " is missing");
  }
  const FlowSlot flow_slot = FlowOf(token);
  if (flow_slot == kNoFlow) {
    return Status::Corruption(FlowText({token.flow, FlowKindIf(token.param.has_value())}) +
                              " has tokens, but its rule is missing");
  }
  const TokenSlot slot = tokens_->InsertLoaded(token.fence.value);
  TokenEntry& entry = tokens_->at(slot);
  entry.deadline_ms = token.key.deadline_ms;
  entry.family = static_cast<uint8_t>(token.key.family);
  entry.issued_ms =
      times_.Believed(token.issued_ms, [&] { return TokenText(token) + " was issued"; });
  entry.count = token.count;
  entry.flow_slot = flow_slot;
  entry.session_slot = session->second;
  // The ledger has only the deadline. If another rule or the expire strategy set it, the begin of
  // the hold is not exact; only late releases are told by it.
  entry.SetHeldSince(entry.deadline_ms - flows_->at(flow_slot).hold_ms);
  if (token.request_id != 0) tokens_->SetLoadedRequest(slot, token.request_id);
  if (token.param.has_value()) {
    tokens_->SetKey(slot, flows_->FindOrAddKey(flow_slot, token.param->view()));
  }
  // Finish compares these sums with the seal, and checks the ids.
  books_->CountIn(slot);
  fence_sum_ += token.fence.value;
  order_.Add(token.fence.value, slot);
  unchecked_ids_.emplace_back(token.key.id, slot);
  return unchecked_ids_.size() < kIdsTogether ? Status::Ok() : CheckIds();
}

// The flow of the token's kind. In formats without kinds the id may have only a rule of the other
// kind; then a stand-in that counts as removed is made. kNoFlow: no rule at all.
FlowSlot Loading::FlowOf(const ledger::Token& token) {
  const FlowKey key{token.flow, FlowKindIf(token.param.has_value())};
  const FlowSlot found = flows_->Find(key);
  if (found != kNoFlow || found_.version >= kFirstFormatWithKinds) return found;
  const FlowSlot other = flows_->Find({key.id, OtherThan(key.kind)});
  if (other == kNoFlow) return kNoFlow;
  const FlowSlot slot = flows_->FindOrAdd(key);
  flows_->SetRule(slot, flows_->at(other).name_space, StandInRule(*flows_->at(other).rule),
                  books_->options().resource_timeout_factor);
  flows_->MarkRemoved(slot);
  stand_ins_.push_back(key);
  return slot;
}

// Damage that the ledger's checksums do not show: an id that is not that of its fence.
Status Loading::CheckIds() {
  for (const auto& [id, slot] : unchecked_ids_) {
    const TokenEntry& entry = tokens_->at(slot);
    if (books_->ids().IsIdOf(id, Fence{entry.fence})) continue;
    return Status::Corruption(TokenText(id, flows_->at(entry.flow_slot).id) +
                              ": its id does not belong to fence " + std::to_string(entry.fence));
  }
  unchecked_ids_.clear();
  return {};
}

Status Loading::Finish(const std::optional<ledger::Seal>& seal) {
  // Order: IndexTokens sorts by fence, for the links and CheckNumbers. The links give flows their
  // tokens, for CheckRemovedRules. CheckHistory looks into the index.
  const ledger::Seal last = seal.value_or(ledger::Seal{});
  NOWCALLS_RETURN_IF_ERROR(CheckIds());
  NOWCALLS_RETURN_IF_ERROR(IndexTokens());
  LinkTokens();
  NOWCALLS_RETURN_IF_ERROR(CheckRemovedRules());
  NOWCALLS_RETURN_IF_ERROR(CheckSums(last));
  NOWCALLS_RETURN_IF_ERROR(CheckNamespacesHaveRules());
  NOWCALLS_RETURN_IF_ERROR(CheckNumbers(last.next_fence));
  NOWCALLS_RETURN_IF_ERROR(CheckHistory(last.next_fence));
  if (has_rates_ && !seal.has_value()) {
    return Status::Corruption("there are windows of calls a second, but no batch was ever sealed");
  }
  books_->Resume(last);
  return {};
}

// Here, with all tokens in order, a fence or request id that two tokens share shows.
Status Loading::IndexTokens() {
  const PopulatedVector<FenceAndSlot>& by_fence = order_.Sort();
  const auto twin = std::adjacent_find(
      by_fence.begin(), by_fence.end(),
      [](const FenceAndSlot& a, const FenceAndSlot& b) { return a.first == b.first; });
  if (twin != by_fence.end()) {
    return Status::Corruption(TokenText(*books_, twin->second) + " is in the ledger twice");
  }
  const TokenSlot repeated = tokens_->IndexLoaded();
  if (repeated == kNoToken) return {};
  return Status::Corruption(TokenText(*books_, repeated) + " has the request id " +
                            std::to_string(tokens_->RequestIdOf(repeated)) +
                            " of another token of its session");
}

// The ledger has tokens by deadline; listings need them by age, which is by fence.
void Loading::LinkTokens() {
  const PopulatedVector<FenceAndSlot>& by_fence = order_.sorted();
  for (size_t i = 0; i < by_fence.size(); ++i) {
    if (i + kAhead < by_fence.size()) tokens_->PrefetchAt(by_fence[i + kAhead].second);
    const TokenSlot slot = by_fence[i].second;
    const TokenEntry& entry = tokens_->at(slot);
    tokens_->Link(slot, &flows_->at(entry.flow_slot).tokens,
                  &sessions_->at(entry.session_slot).tokens);
  }
}

Status Loading::CheckRemovedRules() {
  for (const auto& [key, slot] : flows_->by_key()) {
    if (!flows_->at(slot).removed || flows_->at(slot).tokens.size > 0) continue;
    // In formats without kinds, tokens of the other kind kept the rule: the first batch erases it.
    const FlowKey other{key.id, OtherThan(key.kind)};
    if (std::find(stand_ins_.begin(), stand_ins_.end(), other) != stand_ins_.end()) {
      idle_.push_back(key);
    } else {
      return Status::Corruption(FlowText(key) +
                                " has a rule that was removed, and no tokens to keep it for");
    }
  }
  return {};
}

Status Loading::CheckSums(const ledger::Seal& seal) const {
  const uint64_t tokens = tokens_->size();
  if (tokens == seal.live_tokens && books_->live_count_sum() == seal.live_count_sum &&
      fence_sum_ == seal.live_fence_sum) {
    return {};
  }
  return Status::Corruption(
      "the ledger holds " + std::to_string(tokens) + " tokens with a count of " +
      std::to_string(books_->live_count_sum()) + ", but batch " +
      std::to_string(seal.batch_number) + " was sealed over " + std::to_string(seal.live_tokens) +
      " with a count of " + std::to_string(seal.live_count_sum) + ": records were lost or changed");
}

// A namespace's source is recorded with its rules and forgotten with the last, so without rules
// they were lost.
Status Loading::CheckNamespacesHaveRules() const {
  for (uint32_t i = 0; i < flows_->namespace_slots(); ++i) {
    const Namespace& name_space = flows_->name_space(NamespaceSlot(i));
    if (name_space.source.empty() || !name_space.rule_keys.empty()) continue;
    return Status::Corruption("namespace " + name_space.name + " takes its rules from " +
                              name_space.source + ", but they are missing");
  }
  return {};
}

Status Loading::CheckNumbers(uint64_t next_fence) const {
  const PopulatedVector<FenceAndSlot>& by_fence = order_.sorted();
  const auto& by_id = sessions_->by_id();
  // Sessions take their ids from the fences.
  const uint64_t newest_token = by_fence.empty() ? 0 : by_fence.back().first;
  const uint64_t newest_session = by_id.empty() ? 0 : by_id.rbegin()->first;
  if (std::max(newest_token, newest_session) < next_fence) return {};
  return Status::Corruption("a fence or session number is not below the sealed bound " +
                            std::to_string(next_fence));
}

// Each end of the history has happened: id and fence agree, lie below the bound, and no such token
// lives.
Status Loading::CheckHistory(uint64_t next_fence) const {
  for (const ledger::HistoryBlock& block : history_->blocks()) {
    for (const ledger::HistoryEntry& entry : block) {
      NOWCALLS_RETURN_IF_ERROR(CheckEnded(entry, next_fence));
    }
  }
  return {};
}

Status Loading::CheckEnded(const ledger::HistoryEntry& entry, uint64_t next_fence) const {
  const auto corrupt = [&](const std::string& what) {
    return Status::Corruption("history: entry " + std::to_string(entry.sequence) + " of token " +
                              std::to_string(entry.token_id.value) + " " + what);
  };
  if (books_->ids().ToFence(entry.token_id) != entry.fence) {
    return corrupt("has an id that does not belong to fence " + std::to_string(entry.fence.value));
  }
  if (std::max(entry.fence.value, entry.session.value) >= next_fence) {
    return corrupt("has a fence or session number that is not below the sealed bound " +
                   std::to_string(next_fence));
  }
  if (tokens_->Find(entry.fence.value) != kNoToken) {
    return corrupt("tells of its end, but the token is live");
  }
  return {};
}

}  // namespace nowcalls::core
