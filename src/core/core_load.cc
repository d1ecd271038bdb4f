// Recovery: the ledger's entities become the core's tables, and are proved to be all of them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/core.h"
#include "core/rule_json.h"
#include "ledger/deadline_bound.h"

namespace nowcalls::core {
namespace {

// Listings between two batches that get cursors of their own.
constexpr int kCursorBits = 24;

// Ids that are computed one behind the other, so that a processor has several in hand.
constexpr size_t kIdsTogether = 64;

// Tokens whose entries are on their way from memory while one is linked.
constexpr size_t kAhead = 16;

std::string TokenText(TokenId id, FlowId flow) {
  return "token " + std::to_string(id.value) + " (flow " + std::to_string(flow.value) + ")";
}

std::string TokenText(const ledger::Token& token) { return TokenText(token.key.id, token.flow); }

}  // namespace

Status Core::LoadRule(const ledger::RuleEntry& entry) {
  const std::string where =
      "rule of flow " + std::to_string(entry.flow.value) + " in namespace " + entry.name_space;
  Result<Rule> rule = ParseRule(entry.json);
  if (!rule.ok()) return Status::Corruption(where + ": " + rule.status().message());
  if (rule->flow_id != entry.flow) {
    return Status::Corruption(where + ": holds flowId " + std::to_string(rule->flow_id.value));
  }
  const FlowSlot slot = flows_.FindOrAdd(entry.flow);
  if (flows_.at(slot).rule != nullptr) {
    return Status::Corruption(where + ": another namespace owns the flowId too");
  }
  flows_.SetRule(slot, flows_.FindOrAddNamespace(entry.name_space), *rule,
                 options_.resource_timeout_factor);
  TrackSessions(&flows_.at(slot));
  if (!ledger::IsInForce(entry.state)) flows_.MarkRemoved(slot);
  flows_.at(slot).draining = entry.state == ledger::RuleState::kDraining;
  return {};
}

Status Core::LoadSession(const ledger::Session& session) {
  const NamespaceSlot name_space = flows_.FindOrAddNamespace(session.name_space);
  const bool named = session.kind == ledger::SessionKind::kNamed;
  if (sessions_.FindById(session.id) != kNoSession ||
      (named && sessions_.FindNamed(name_space, session.client_id) != kNoSession)) {
    return Status::Corruption("session " + std::to_string(session.id.value) + " (client " +
                              session.client_id + ") is in the ledger twice");
  }
  const SessionSlot slot =
      sessions_.Add(session.id, session.kind, name_space, session.client_id, session.opened_ms);
  sessions_.at(slot).in_ledger = true;
  sessions_.at(slot).from_before_restart = true;
  ++flows_.name_space(name_space).sessions;
  loaded_sessions_.emplace(session.id.value, slot);
  return {};
}

void Core::ExpectTokens(uint64_t tokens) {
  const auto bounded =
      static_cast<uint32_t>(std::min<uint64_t>(tokens, options_.limits.tokens_max));
  loaded_->Reserve(bounded);
  tokens_.Reserve(bounded);
}

Status Core::LoadToken(const ledger::Token& token) {
  if (token.key.deadline_ms >= ledger::kDeadlineMsEnd) {
    return Status::Corruption(TokenText(token) +
                              ": its deadline is beyond what a rule can make it");
  }
  const auto session = loaded_sessions_.find(token.session.value);
  if (session == loaded_sessions_.end()) {
    return Status::Corruption(TokenText(token) + ": its session " +
                              std::to_string(token.session.value) + " is missing");
  }
  const FlowSlot flow = flows_.Find(token.flow);
  if (flow == kNoFlow || flows_.at(flow).rule == nullptr) {
    return Status::Corruption("flow " + std::to_string(token.flow.value) +
                              " has tokens, but its rule is missing");
  }
  const TokenSlot slot = tokens_.InsertLoaded(token.fence.value);
  TokenEntry& entry = tokens_.at(slot);
  entry.deadline_ms = token.key.deadline_ms;
  entry.family = static_cast<uint8_t>(token.key.family);
  entry.issued_ms = token.issued_ms;
  entry.count = token.count;
  entry.flow = flow;
  entry.session = session->second;
  // The ledger has the deadline. If it was set under another rule or by the expire strategy, this
  // is not quite when the hold began; it matters only for telling late releases.
  entry.SetHeldSince(entry.deadline_ms - flows_.at(entry.flow).hold_ms);
  if (token.request_id != 0) tokens_.SetLoadedRequest(slot, token.request_id);
  CountIn(entry);
  loaded_->Add(token.fence.value, slot);
  loaded_ids_.emplace_back(token.key.id, slot);
  return loaded_ids_.size() < kIdsTogether ? Status::Ok() : CheckLoadedIds();
}

// What has passed as a token may have been changed where nothing else shows it.
Status Core::CheckLoadedIds() {
  for (const auto& [id, slot] : loaded_ids_) {
    const TokenEntry& entry = tokens_.at(slot);
    if (ids_.IsIdOf(id, Fence{entry.fence})) continue;
    return Status::Corruption(TokenText(id, flows_.at(entry.flow).id) +
                              ": its id does not belong to fence " + std::to_string(entry.fence));
  }
  loaded_ids_.clear();
  return {};
}

// What no two tokens may share shows here, where all of them can be looked at in order.
Status Core::IndexLoaded(const PopulatedVector<FenceAndSlot>& by_fence) {
  loaded_sessions_ = {};
  const auto twin = std::adjacent_find(
      by_fence.begin(), by_fence.end(),
      [](const FenceAndSlot& a, const FenceAndSlot& b) { return a.first == b.first; });
  const auto text = [this](TokenSlot slot) {
    const TokenEntry& entry = tokens_.at(slot);
    return TokenText(ids_.FromFence(Fence{entry.fence}), flows_.at(entry.flow).id);
  };
  if (twin != by_fence.end()) {
    return Status::Corruption(text(twin->second) + " is in the ledger twice");
  }
  const TokenSlot repeated = tokens_.IndexLoaded();
  if (repeated == kNoToken) return {};
  return Status::Corruption(text(repeated) + " has the request id " +
                            std::to_string(tokens_.RequestIdOf(repeated)) +
                            " of another token of its session");
}

Status Core::FinishLoad(const std::optional<ledger::Seal>& seal) {
  NOWCALLS_RETURN_IF_ERROR(CheckLoadedIds());
  // The ledger keeps tokens by deadline; listings want them by age.
  const PopulatedVector<FenceAndSlot>& by_fence = loaded_->Sort();
  NOWCALLS_RETURN_IF_ERROR(IndexLoaded(by_fence));
  for (size_t i = 0; i < by_fence.size(); ++i) {
    if (i + kAhead < by_fence.size()) tokens_.PrefetchAt(by_fence[i + kAhead].second);
    const TokenSlot slot = by_fence[i].second;
    const TokenEntry& entry = tokens_.at(slot);
    tokens_.Link(slot, &flows_.at(entry.flow).tokens, &sessions_.at(entry.session).tokens);
  }
  for (const auto& [id, slot] : flows_.by_id()) {
    if (flows_.at(slot).removed && flows_.at(slot).tokens.size == 0) {
      return Status::Corruption("flow " + std::to_string(id) +
                                " has a rule that was removed, and no tokens to keep it for");
    }
  }
  const uint64_t newest = by_fence.empty() ? 0 : by_fence.back().first;
  loaded_.reset();

  const ledger::Seal expected = seal.value_or(ledger::Seal{});
  if (tokens_.size() != expected.live_tokens || live_count_sum_ != expected.live_count_sum ||
      live_fence_sum_ != expected.live_fence_sum) {
    return Status::Corruption(
        "the ledger holds " + std::to_string(tokens_.size()) + " tokens with a count of " +
        std::to_string(live_count_sum_) + ", but batch " + std::to_string(expected.batch_number) +
        " was sealed over " + std::to_string(expected.live_tokens) + " with a count of " +
        std::to_string(expected.live_count_sum) + ": records were lost or changed");
  }
  NOWCALLS_RETURN_IF_ERROR(CheckNamespacesHaveRules());
  const uint64_t newest_session = sessions_.by_id().empty() ? 0 : sessions_.by_id().rbegin()->first;
  if (std::max(newest, newest_session) >= expected.next_fence) {
    return Status::Corruption("a fence or session number is not below the sealed bound " +
                              std::to_string(expected.next_fence));
  }
  NOWCALLS_RETURN_IF_ERROR(CheckHistory(expected.next_fence));

  next_fence_ = first_fence_ = expected.next_fence;
  batch_number_ = expected.batch_number;
  // Every start commits a batch before it answers anything, so no cursor of an earlier one is met.
  next_listing_ = (batch_number_ << kCursorBits) + 1;
  return {};
}

void Core::Begin(Instant now) {
  ready_ = now;
  for (const auto& [id, slot] : sessions_.by_id()) SetOffline(slot, now.ms);
}

}  // namespace nowcalls::core
