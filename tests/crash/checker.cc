#include "crash/checker.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "crash/checker_times.h"

namespace nowcalls::crash {
namespace {

std::string InCycle(int cycle) { return " in cycle " + std::to_string(cycle); }

// Whether the level that a grant names was in force at some moment of the request.
bool MayHaveBeen(const std::vector<LevelChange>& changes, const Operation& granted) {
  bool possible = false;
  for (const auto& change : changes) {
    if (change.since_us <= granted.asked_us) possible = false;
    if (change.level == granted.level && change.from_us <= granted.answered_us) possible = true;
  }
  return possible;
}

}  // namespace

int64_t Checker::Token::MayEndUs() const { return std::min({deadline_us, offline_us, release_us}); }

Checker::Checker(const std::vector<FlowFacts>& flows, int64_t restart_grace_ms)
    : restart_grace_ms_(restart_grace_ms) {
  for (const auto& flow : flows) flows_[flow.flow_id] = flow;
}

void Checker::Report(const std::string& what, uint64_t token_id) {
  std::string text = what + InCycle(cycle_);
  const auto token = tokens_.find(token_id);
  if (token != tokens_.end()) {
    for (const auto& line : token->second.trail) text += "\n    " + line;
  }
  const auto ended = ended_.find(token_id);
  if (ended != ended_.end()) text += "\n    " + ended->second;
  violations_.push_back(text);
}

Violations Checker::CheckCycle(const Cycle& cycle) {
  ++cycle_;
  violations_.clear();
  AskedByToken adopted;
  BeginCycle(cycle.started_us);
  AddGrants(cycle.history);
  AddOfflineGaps(cycle);
  ApplyRequests(cycle.history);
  CheckLost(cycle.history);
  CheckRequestIds(cycle);
  CheckLevels(cycle.started_us);
  CheckMovingLevels(cycle);
  CheckDump(cycle, &adopted);
  CheckFenceOrder(cycle.history, adopted);
  last_sums_ = CheckSums(cycle.ledger, "the ledger");
  if (cycle.backup) CheckBackup(cycle, adopted);
  EndCycle(cycle.ledger);
  return violations_;
}

// A restart spares what it finds: no deadline before min(resourceTimeout, grace), no session gone
// before max(clientOfflineTime, grace), counted from the moment it serves. What is in the ledger
// was not released, whatever was asked before the kill.
void Checker::BeginCycle(int64_t started_us) {
  for (auto& [id, token] : tokens_) {
    const FlowFacts& flow = flows_[token.flow_id];
    const int64_t spared_ms = std::min(flow.resource_timeout_ms, restart_grace_ms_);
    const int64_t offline_ms = std::max(flow.client_offline_ms, restart_grace_ms_);
    int64_t spared_us = DueUs(started_us, spared_ms);
    if (flow.max_hold_ms > 0) {
      spared_us = std::min(spared_us, DueUs(token.issued_from_us, flow.max_hold_ms));
    }
    token.deadline_us = std::max(token.deadline_us, spared_us);
    token.offline_us = DueUs(started_us, offline_ms);
    token.release_us = kNeverUs;
  }
}

void Checker::AddGrants(const History& history) {
  first_asked_.clear();
  for (size_t i = 0; i < history.operations.size(); i += history.operations[i].items) {
    ++(history.operations[i].outcome == Outcome::kUnknown ? counts_.unknown : counts_.acknowledged);
  }
  for (const auto& operation : history.operations) {
    if (operation.action != Action::kAcquire || operation.request_id == 0) continue;
    const auto [first, is_first] =
        first_asked_.try_emplace({operation.client, operation.request_id}, operation.asked_us);
    first->second = std::min(first->second, operation.asked_us);
  }
  for (const Items items : history.Acquires()) {
    if (items.front().outcome == Outcome::kGranted) AddAnswer(items);
  }
}

// The tokens of a group are known together, or new together.
void Checker::AddAnswer(Items items) {
  size_t known = 0;
  for (const Operation& operation : items) {
    if (IsKnownGrant(operation)) {
      ++known;
    } else {
      AddGrant(operation);
    }
  }
  const bool is_group = items.size() > 1;
  if (known == items.size()) ++(is_group ? counts_.groups_asked_again : counts_.asked_again);
  if (known == 0 || known == items.size()) return;
  Report("I10 a group that was asked again got other tokens: " + Describe(items.front()),
         items.front().token_id);
}

// What was asked again may have been granted when it was asked first, also by another level.
void Checker::AddGrant(const Operation& operation) {
  const uint64_t id = operation.token_id;
  if (tokens_.contains(id) || ended_.contains(id)) {
    return Report("I6 token id " + std::to_string(id) + " was given twice", id);
  }
  if (operation.fence != 0 && !fences_.insert(operation.fence).second) {
    Report("I6 fence given twice: " + Describe(operation), id);
  }
  const auto first = first_asked_.find({operation.client, operation.request_id});
  const int64_t asked_us = first == first_asked_.end() ? operation.asked_us : first->second;
  if (operation.now_calls > operation.level && asked_us == operation.asked_us) {
    Report("I5 granted above the level: " + Describe(operation), id);
  }
  CheckToldHold(operation);
  Token token;
  token.client = operation.client;
  token.flow_id = operation.flow_id;
  token.count = operation.count;
  token.fence = operation.fence;
  token.asked_us = token.issued_from_us = asked_us;
  token.held_from_us = operation.answered_us;
  token.deadline_us = DueUs(operation.asked_us, operation.hold_ms);
  token.offline_us = kNeverUs;
  token.release_us = kNeverUs;
  token.request_id = operation.request_id;
  token.grant = operation.grant;
  token.trail.push_back(Describe(operation));
  tokens_.emplace(id, std::move(token));
}

void Checker::AddOfflineGaps(const Cycle& cycle) {
  const Gaps gaps = OfflineGaps(cycle);
  for (auto& [id, token] : tokens_) {
    const auto found = gaps.find(token.client);
    const bool carried = token.held_from_us < cycle.started_us;
    if (found == gaps.end()) continue;  // A carried token's gap is as BeginCycle left it.
    if (carried) token.offline_us = kNeverUs;
    token.offline_us = std::min(token.offline_us,
                                OfflineUs(found->second, flows_[token.flow_id], restart_grace_ms_,
                                          carried ? INT64_MIN : token.asked_us));
  }
}

void Checker::CheckLevels(int64_t started_us) {
  using Change = std::tuple<int64_t, int64_t, uint64_t>;  // When, by how much, which token.
  std::map<int64_t, std::vector<Change>> changes;
  for (const auto& [id, token] : tokens_) {
    const int64_t from_us = std::max(token.held_from_us, started_us);
    if (token.MayEndUs() <= from_us) continue;
    changes[token.flow_id].emplace_back(from_us, token.count, id);
    changes[token.flow_id].emplace_back(token.MayEndUs(), -token.count, id);
  }
  for (auto& [flow_id, list] : changes) {
    const int64_t level = flows_[flow_id].level;
    if (level == 0) continue;
    std::sort(list.begin(), list.end());  // At one instant, ends come before beginnings.
    int64_t held = 0;
    for (const auto& [at_us, delta, id] : list) {
      held += delta;
      if (held <= level) continue;
      Report("I5 flow " + std::to_string(flow_id) + " holds " + std::to_string(held) +
                 ", more than its level " + std::to_string(level) + ", with token " +
                 std::to_string(id),
             id);
      break;
    }
  }
}

// Tokens may be held above a level that was lowered, so each grant is judged by itself: the server
// must have counted what was definitely held all the while that it was asked.
void Checker::CheckMovingLevels(const Cycle& cycle) {
  std::map<int64_t, std::vector<LevelChange>> levels;
  for (const auto& change : cycle.levels) levels[change.flow_id].push_back(change);
  std::map<int64_t, std::map<int64_t, int64_t>> begun;  // Sums of counts, by flow and time.
  std::map<int64_t, std::map<int64_t, int64_t>> ended;
  for (const auto& [id, token] : tokens_) {
    if (!levels.contains(token.flow_id) || token.MayEndUs() <= token.held_from_us) continue;
    begun[token.flow_id][token.held_from_us] += token.count;
    ended[token.flow_id][token.MayEndUs()] += token.count;
  }
  for (auto* sums : {&begun, &ended}) {
    for (auto& [flow_id, by_time] : *sums) {
      int64_t sum = 0;
      for (auto& [at_us, count] : by_time) count = sum += count;
    }
  }
  const auto up_to = [](const std::map<int64_t, int64_t>& sums, int64_t at_us) {
    const auto after = sums.upper_bound(at_us);
    return after == sums.begin() ? 0 : std::prev(after)->second;
  };
  for (const auto& operation : cycle.history.operations) {
    if (operation.outcome != Outcome::kGranted || !levels.contains(operation.flow_id)) continue;
    if (operation.items > 1) continue;  // Groups are told neither level nor nowCalls.
    if (!MayHaveBeen(levels[operation.flow_id], operation)) {
      Report("I5 granted by a level that was not in force: " + Describe(operation),
             operation.token_id);
    }
    int64_t held = up_to(begun[operation.flow_id], operation.asked_us - 1) -
                   up_to(ended[operation.flow_id], operation.answered_us);
    // One that was asked again is one of those held.
    const auto token = tokens_.find(operation.token_id);
    const bool counted = token != tokens_.end() &&
                         token->second.held_from_us < operation.asked_us &&
                         token->second.MayEndUs() > operation.answered_us;
    if (counted) held -= operation.count;
    if (operation.now_calls >= held + operation.count) continue;
    Report("I5 granted while " + std::to_string(held) + " were held: " + Describe(operation),
           operation.token_id);
  }
}

void Checker::CheckDump(const Cycle& cycle, AskedByToken* adopted) {
  std::set<uint64_t> dumped;
  std::vector<DumpedToken> strangers;
  for (const auto& row : cycle.ledger.tokens) {
    const uint64_t id = row.token_id;
    if (!dumped.insert(id).second) {
      Report("I6 the dump shows token " + std::to_string(id) + " twice", id);
      continue;
    }
    const auto known = tokens_.find(id);
    if (known == tokens_.end()) {
      strangers.push_back(row);
    } else if (known->second.gone) {
      Report("I2 token " + std::to_string(id) + " is gone, and in the ledger", id);
    } else {
      CheckPresent(row, &known->second);
    }
  }
  for (auto& [id, token] : tokens_) {
    if (dumped.contains(id)) continue;
    if (!token.gone && token.MayEndUs() > cycle.dead_us) {
      Report("I1 token " + std::to_string(id) + " is lost", id);
    }
    token.gone = true;
  }
  Adopt(cycle, std::move(strangers), adopted);
}

void Checker::CheckPresent(const DumpedToken& dumped, Token* known) {
  if (known->fence == 0) {
    known->fence = dumped.fence;
    if (!fences_.insert(dumped.fence).second) {
      Report("I6 token " + std::to_string(dumped.token_id) + " has a fence given before",
             dumped.token_id);
    }
  }
  const Token& token = *known;
  const bool same = dumped.client_id == token.client && dumped.flow_id == token.flow_id &&
                    dumped.count == token.count && dumped.fence == token.fence;
  if (same) return;
  Report("I3 token " + std::to_string(dumped.token_id) + " differs: the ledger has client " +
             dumped.client_id + " flow " + std::to_string(dumped.flow_id) + " count " +
             std::to_string(dumped.count) + " fence " + std::to_string(dumped.fence),
         dumped.token_id);
}

// What was acknowledged before another grant was asked for has the lower fence.
void Checker::CheckFenceOrder(const History& history, const AskedByToken& adopted) {
  std::vector<std::pair<int64_t, uint64_t>> asked;         // With the fence it got.
  std::vector<std::pair<int64_t, uint64_t>> acknowledged;  // Likewise.
  for (const auto& operation : history.operations) {
    if (operation.outcome != Outcome::kGranted || operation.fence == 0) continue;
    acknowledged.emplace_back(operation.answered_us, operation.fence);
    int64_t asked_us = operation.asked_us;
    if (operation.request_id != 0) {
      asked_us = first_asked_.at({operation.client, operation.request_id});
      const auto token = tokens_.find(operation.token_id);
      // That of an earlier cycle had its turn.
      if (token != tokens_.end() && token->second.asked_us < asked_us) continue;
    }
    asked.emplace_back(asked_us, operation.fence);
  }
  for (const auto& [id, asked_us] : adopted) asked.emplace_back(asked_us, tokens_[id].fence);
  std::sort(asked.begin(), asked.end());
  std::sort(acknowledged.begin(), acknowledged.end());
  size_t next = 0;
  for (const auto& [asked_us, fence] : asked) {
    for (; next < acknowledged.size() && acknowledged[next].first < asked_us; ++next) {
      last_fence_ = std::max(last_fence_, acknowledged[next].second);
    }
    if (fence > last_fence_) continue;
    Report("I6 fence " + std::to_string(fence) + " was given after fence " +
               std::to_string(last_fence_) + " had been acknowledged",
           0);
    break;
  }
  for (; next < acknowledged.size(); ++next) {
    last_fence_ = std::max(last_fence_, acknowledged[next].second);
  }
}

CountByFlow Checker::CheckSums(const LedgerView& ledger, const std::string& where) {
  CountByFlow sums;
  CountByFlow tokens;
  for (const auto& row : ledger.tokens) {
    sums[row.flow_id] += row.count;
    ++tokens[row.flow_id];
  }
  std::set<int64_t> flows;
  for (const auto& [flow_id, count] : sums) flows.insert(flow_id);
  for (const auto& [flow_id, count] : ledger.now_calls) flows.insert(flow_id);
  const auto value = [](const CountByFlow& counts, int64_t flow_id) {
    const auto found = counts.find(flow_id);
    return found == counts.end() ? 0 : found->second;
  };
  for (const int64_t flow_id : flows) {
    const int64_t sum = value(sums, flow_id);
    const int64_t level = flows_[flow_id].level;
    if (sum != value(ledger.now_calls, flow_id) ||
        value(tokens, flow_id) != value(ledger.token_counts, flow_id)) {
      Report("I4 flow " + std::to_string(flow_id) + " in " + where + ": stat says nowCalls " +
                 std::to_string(value(ledger.now_calls, flow_id)) + " over " +
                 std::to_string(value(ledger.token_counts, flow_id)) + " tokens, the dump has " +
                 std::to_string(sum) + " over " + std::to_string(value(tokens, flow_id)),
             0);
    }
    if (level != 0 && sum > level) {
      Report("I5 flow " + std::to_string(flow_id) + " has " + std::to_string(sum) + " in " + where +
                 ", more than its level " + std::to_string(level),
             0);
    }
  }
  return sums;
}

// It is what the ledger was at some moment of the call, and each token of it must be explained as
// one of the ledger's is.
void Checker::CheckBackup(const Cycle& cycle, const AskedByToken& adopted) {
  const LedgerCopy& copy = *cycle.backup;
  std::map<Wish, int> unanswered;
  for (const auto& operation : cycle.history.operations) {
    if (operation.action != Action::kAcquire || operation.outcome != Outcome::kUnknown) continue;
    ++unanswered[{operation.client, operation.flow_id, operation.count}];
  }
  for (const auto& [id, asked_us] : adopted) {
    const Token& token = tokens_[id];
    --unanswered[{token.client, token.flow_id, token.count}];
  }
  std::set<uint64_t> copied;
  std::vector<DumpedToken> strangers;
  for (const auto& row : copy.ledger.tokens) {
    if (!copied.insert(row.token_id).second) {
      Report("I6 the backup has token " + std::to_string(row.token_id) + " twice", row.token_id);
    }
    CheckInBackup(row, copy.asked_us, &strangers);
  }
  for (const auto& row : strangers) {
    if (--unanswered[{row.client_id, row.flow_id, row.count}] >= 0) continue;
    Report("I3 nobody asked for token " + std::to_string(row.token_id) + " of the backup, client " +
               row.client_id + " flow " + std::to_string(row.flow_id) + " count " +
               std::to_string(row.count),
           row.token_id);
  }
  for (const auto& [id, token] : tokens_) {
    if (copied.contains(id)) continue;
    if (token.MayEndUs() <= cycle.dead_us || token.gone_us <= cycle.dead_us) continue;
    const bool is_part =
        std::any_of(token.grant.begin(), token.grant.end(),
                    [&copied](uint64_t other_id) { return copied.contains(other_id); });
    if (token.held_from_us <= copy.asked_us) {
      Report("I1 token " + std::to_string(id) + " is not in the backup", id);
    } else if (is_part) {
      Report("I14 token " + std::to_string(id) + " is not in the backup, others of its group are",
             id);
    }
  }
  CheckSums(copy.ledger, "the backup");
}

void Checker::CheckInBackup(const DumpedToken& row, int64_t asked_us,
                            std::vector<DumpedToken>* strangers) {
  const std::string id = std::to_string(row.token_id);
  const auto known = tokens_.find(row.token_id);
  if (ended_.contains(row.token_id)) {
    Report("I2 token " + id + " came back in the backup", row.token_id);
  } else if (known == tokens_.end()) {
    strangers->push_back(row);
  } else if (known->second.gone_us < asked_us) {
    Report("I2 token " + id + " was gone before the backup was asked for, and is in it",
           row.token_id);
  } else {
    CheckPresent(row, &known->second);
  }
}

void Checker::EndCycle(const LedgerView& ledger) {
  std::set<uint64_t> dumped;
  for (const auto& row : ledger.tokens) dumped.insert(row.token_id);
  for (auto at = tokens_.begin(); at != tokens_.end();) {
    if (!at->second.gone && dumped.contains(at->first)) {
      ++at;
      continue;
    }
    ended_[at->first] =
        "it ended" + InCycle(cycle_) + ", its last request: " + at->second.trail.back();
    at = tokens_.erase(at);
  }
  ended_.merge(reclaimed_);
  reclaimed_.clear();
}

Violations Checker::CheckReported(const CountByFlow& reported, int64_t started_us,
                                  int64_t due_us) const {
  Violations violations;
  for (const auto& [flow_id, flow] : flows_) {
    const auto before = last_sums_.find(flow_id);
    const auto now = reported.find(flow_id);
    const int64_t sum = before == last_sums_.end() ? 0 : before->second;
    const int64_t report = now == reported.end() ? 0 : now->second;
    const int64_t spared_ms = std::min(flow.resource_timeout_ms, restart_grace_ms_);
    const bool exact = flow.max_hold_ms == 0 && due_us < DueUs(started_us, spared_ms);
    if (exact ? report == sum : report <= sum) continue;
    violations.push_back("I4 flow " + std::to_string(flow_id) + ": the ledger has nowCalls " +
                         std::to_string(sum) + ", the server that was started on it reports " +
                         std::to_string(report) + " after cycle " + std::to_string(cycle_));
  }
  return violations;
}

}  // namespace nowcalls::crash
