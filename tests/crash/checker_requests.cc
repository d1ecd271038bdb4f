// What requests do to tokens, and what request ids, cancels and drains promise.
#include <algorithm>
#include <tuple>
#include <utility>

#include "crash/checker.h"
#include "crash/checker_times.h"

namespace nowcalls::crash {
namespace {

// When it was over at last.
int64_t OverUs(const Operation& operation) {
  return operation.outcome == Outcome::kUnknown ? kNeverUs : operation.answered_us;
}

bool EndsNothing(const Operation& operation) {
  return operation.outcome == Outcome::kGone || operation.outcome == Outcome::kRefused ||
         (operation.outcome == Outcome::kReclaimed && operation.reclaimed == 0);
}

bool EndsMany(Action action) {
  return action == Action::kReclaimFlow || action == Action::kPurge ||
         action == Action::kReclaimClient;
}

bool IsAmongMany(const Operation& operation, const std::string& client, int64_t flow_id) {
  if (operation.action != Action::kReclaimClient) return operation.flow_id == flow_id;
  return operation.holder == client.substr(0, client.find('#'));  // All instances.
}

// Whether the session's connection broke in between, and with it perhaps its memory.
bool WentDown(const History& history, const std::string& client, int64_t from_us, int64_t to_us) {
  return std::any_of(history.links.begin(), history.links.end(), [&](const LinkEvent& link) {
    return !link.up && link.client == client && link.at_us >= from_us && link.at_us <= to_us;
  });
}

}  // namespace

bool Checker::Token::IsOf(const Operation& request) const {
  return request.request_id != 0 && request.request_id == request_id && request.client == client;
}

// An answer that tells of a token that is known: the request was asked again. That also tells which
// request an adopted token belongs to.
bool Checker::IsKnownGrant(const Operation& operation) {
  const auto found = tokens_.find(operation.token_id);
  if (found == tokens_.end() || operation.request_id == 0) return false;
  Token& token = found->second;
  if (token.request_id == 0 && token.requests.contains(operation.request_id)) {
    token.request_id = operation.request_id;
  }
  const bool same = token.IsOf(operation) && token.flow_id == operation.flow_id &&
                    token.count == operation.count && token.fence == operation.fence &&
                    (token.grant.empty() || token.grant == operation.grant);
  if (!same) return false;
  token.grant = operation.grant;
  token.deadline_us = std::max(token.deadline_us, DueUs(operation.asked_us, operation.hold_ms));
  token.held_from_us = std::min(token.held_from_us, operation.answered_us);
  token.trail.push_back(Describe(operation));
  return true;
}

// First what any of them may have ended, since those of others overtake each other.
void Checker::ApplyRequests(const History& history) {
  std::vector<const Operation*> requests;
  cancelled_.clear();
  IndexRequests();
  for (const auto& operation : history.operations) {
    if (operation.action == Action::kAcquire) continue;
    requests.push_back(&operation);
    MayEnd(operation);
    if (operation.action != Action::kCancel || operation.outcome == Outcome::kUnknown) continue;
    int64_t& at_us = cancelled_[{operation.client, operation.request_id}];
    at_us = std::max(at_us, operation.answered_us);
  }
  std::stable_sort(requests.begin(), requests.end(), [](const Operation* a, const Operation* b) {
    return a->asked_us < b->asked_us;
  });
  for (const auto* operation : requests) {
    if (operation->action == Action::kCancel || EndsMany(operation->action)) {
      ApplyToMany(*operation);
    } else if (operation->action != Action::kDrain && operation->action != Action::kUndrain) {
      ApplyToToken(*operation);
    }
  }
}

// Thousands are cancelled in a cycle.
void Checker::IndexRequests() {
  by_request_.clear();
  for (const auto& [id, token] : tokens_) {
    if (token.request_id != 0) {
      by_request_.emplace(Request{token.client, token.request_id}, id);
      continue;
    }
    for (const uint64_t request_id : token.requests) {
      by_request_.emplace(Request{token.client, request_id}, id);
    }
  }
}

// The ids of what a cancel, or an operator's request about a flow or a client, may be about.
std::vector<uint64_t> Checker::TokensOf(const Operation& operation) const {
  std::vector<uint64_t> ids;
  if (operation.action == Action::kCancel) {
    const auto [begin, end] = by_request_.equal_range({operation.client, operation.request_id});
    for (auto at = begin; at != end; ++at) ids.push_back(at->second);
    return ids;
  }
  for (const auto& [id, token] : tokens_) {
    if (IsAmongMany(operation, token.client, token.flow_id)) ids.push_back(id);
  }
  return ids;
}

void Checker::MayEnd(const Operation& operation) {
  if (EndsNothing(operation)) return;
  if (operation.action == Action::kRelease || operation.action == Action::kReclaim) {
    const auto found = tokens_.find(operation.token_id);
    if (found == tokens_.end()) return;
    found->second.release_us = std::min(found->second.release_us, operation.asked_us);
  } else if (operation.action == Action::kCancel || EndsMany(operation.action)) {
    for (const uint64_t id : TokensOf(operation)) {
      Token& token = tokens_.at(id);
      if (token.asked_us > OverUs(operation)) continue;
      token.release_us = std::min(token.release_us, operation.asked_us);
    }
  }
}

// Whether a token that nobody was told of, granted for this item, may be gone at the end.
bool Checker::MayHaveEnded(const Cycle& cycle, const Operation& item) {
  const FlowFacts& flow = flows_[item.flow_id];
  int64_t hold_ms = RuleHoldMs(flow);
  if (item.wanted_ms > 0) hold_ms = std::min(hold_ms, item.wanted_ms);
  const int64_t offline_us =
      OfflineUs(OfflineGaps(cycle)[item.client], flow, restart_grace_ms_, item.asked_us);
  if (std::min(DueUs(item.asked_us, hold_ms), offline_us) <= cycle.dead_us) return true;
  const auto may_end = [&](const Operation& operation) {
    if (EndsNothing(operation) || OverUs(operation) < item.asked_us) return false;
    switch (operation.action) {
      case Action::kReclaim: return !tokens_.contains(operation.token_id);
      case Action::kCancel:
        return operation.client == item.client && operation.request_id == item.request_id;
      default:
        return EndsMany(operation.action) && IsAmongMany(operation, item.client, item.flow_id);
    }
  };
  const auto& operations = cycle.history.operations;
  return std::any_of(operations.begin(), operations.end(), may_end);
}

void Checker::MarkGone(const Operation& operation, Token* token) const {
  token->gone = true;
  if (operation.answered_us >= token->gone_us) return;
  token->gone_us = operation.answered_us;
  token->gone_by = operation.client;
}

// A release, keep or reclaim.
void Checker::ApplyToToken(const Operation& operation) {
  const uint64_t id = operation.token_id;
  const auto found = tokens_.find(id);
  const bool released = operation.outcome == Outcome::kReleased;
  const bool succeeded = released || operation.outcome == Outcome::kKept;
  if (found == tokens_.end()) {
    // An operator sees also tokens that nobody was told of.
    const bool unknown =
        operation.action == Action::kReclaim && !ended_.contains(id) && !reclaimed_.contains(id);
    if (succeeded && !unknown) {
      Report("I2 a request on a token that is gone: " + Describe(operation), id);
    }
    if (succeeded && unknown) reclaimed_[id] = "it was taken back: " + Describe(operation);
    return;
  }
  Token& token = found->second;
  token.trail.push_back(Describe(operation));
  const bool known_gone =
      token.gone && (token.gone_by == operation.client || token.gone_us < operation.asked_us);
  if (succeeded && (known_gone || (released && token.released))) {
    Report("I2 a request on a token that is gone: " + Describe(operation), id);
  }
  if (operation.outcome == Outcome::kGone) {
    if (!token.gone && token.MayEndUs() > operation.answered_us) {
      Report("I1 a live token is answered as gone: " + Describe(operation), id);
    }
    MarkGone(operation, &token);
  } else if (operation.outcome == Outcome::kKept) {
    token.deadline_us = std::max(token.deadline_us, DueUs(operation.asked_us, operation.hold_ms));
  } else if (released) {
    token.released = true;
    MarkGone(operation, &token);
  }
}

// A cancel, or an operator's request about a flow or a client.
void Checker::ApplyToMany(const Operation& operation) {
  const bool cancel = operation.action == Action::kCancel;
  if (operation.outcome == Outcome::kUnknown || operation.outcome == Outcome::kRefused) return;
  for (const uint64_t id : TokensOf(operation)) {
    Token& token = tokens_.at(id);
    // Of a request id nothing is left that was asked for before; of many, what was there before.
    const bool its = cancel ? token.IsOf(operation) && token.asked_us < operation.answered_us
                            : token.held_from_us < operation.asked_us && !operation.more;
    if (!its) continue;
    token.trail.push_back(Describe(operation));
    const bool none = operation.outcome == Outcome::kGone ||
                      (operation.outcome == Outcome::kReclaimed && operation.reclaimed == 0);
    if (none && !token.gone && token.held_from_us < operation.asked_us &&
        token.MayEndUs() > operation.answered_us) {
      Report("I1 a live token is answered as gone: " + Describe(operation), id);
    }
    MarkGone(operation, &token);
  }
}

void Checker::CheckRequestIds(const Cycle& cycle) {
  std::map<Request, std::vector<uint64_t>> tokens;
  for (const auto& [id, token] : tokens_) {
    if (token.request_id != 0) tokens[{token.client, token.request_id}].push_back(id);
  }
  for (const auto& [request, ids] : tokens) CheckOneGrant(request, ids);
  for (const Items items : cycle.history.Acquires()) {
    const auto its = tokens.find({items.front().client, items.front().request_id});
    if (its != tokens.end()) CheckAskedAgain(items, its->second);
  }
  CheckCancels(cycle.history);
  CheckDrains(cycle);
}

// At no instant a request has tokens of two grants.
void Checker::CheckOneGrant(const Request& request, const std::vector<uint64_t>& ids) {
  for (const uint64_t id : ids) {
    const Token& token = tokens_.at(id);
    const auto other_id = std::find_if(ids.begin(), ids.end(), [&](uint64_t earlier_id) {
      const Token& earlier = tokens_.at(earlier_id);
      return std::pair(earlier.held_from_us, earlier_id) < std::pair(token.held_from_us, id) &&
             token.held_from_us < std::min(earlier.MayEndUs(), token.MayEndUs()) &&
             token.grant != earlier.grant;
    });
    if (other_id == ids.end()) continue;
    Report("I10 request " + std::to_string(request.second) + " of client " + request.first +
               " has token " + std::to_string(id) + " beside token " + std::to_string(*other_id),
           id);
  }
}

// A group of which a part has ended is refused.
void Checker::CheckAskedAgain(Items items, const std::vector<uint64_t>& ids) {
  const Operation& first = items.front();
  size_t held = 0;
  for (const uint64_t id : ids) {
    const Token& token = tokens_.at(id);
    if (token.held_from_us < first.asked_us && token.MayEndUs() > first.answered_us) ++held;
    for (const Operation& operation : items) {
      const bool is_it = operation.outcome == Outcome::kGranted && operation.token_id == id;
      if (!is_it || token.gone_us >= operation.asked_us) continue;
      Report("I2 a token that is gone is given again: " + Describe(operation), id);
    }
  }
  if (first.outcome != Outcome::kRefused || held < items.size()) return;
  Report("I10 a request with a live token is refused: " + Describe(first), ids.front());
}

// The memory of a cancel lasts as long as the session, which one connection of it proves.
void Checker::CheckCancels(const History& history) {
  std::map<Request, const Operation*> cancels;
  for (const auto& operation : history.operations) {
    if (operation.action != Action::kCancel || operation.outcome == Outcome::kUnknown) continue;
    cancels.emplace(Request{operation.client, operation.request_id}, &operation);
  }
  for (const auto& operation : history.operations) {
    if (operation.outcome != Outcome::kGranted || operation.request_id == 0) continue;
    const auto cancel = cancels.find({operation.client, operation.request_id});
    if (cancel == cancels.end() || operation.number < cancel->second->number) continue;
    const int64_t cancelled_us = cancel->second->asked_us;
    if (WentDown(history, operation.client, cancelled_us, operation.asked_us)) continue;
    Report("I11 granted though it was cancelled before: " + Describe(operation),
           operation.token_id);
  }
}

void Checker::CheckDrains(const Cycle& cycle) {
  std::vector<const Operation*> drains;
  std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> drained;  // From when, until when.
  for (const auto& operation : cycle.history.operations) {
    const bool on = operation.action == Action::kDrain && operation.outcome == Outcome::kDone;
    if (on || operation.action == Action::kUndrain) drains.push_back(&operation);
  }
  std::stable_sort(drains.begin(), drains.end(), [](const Operation* a, const Operation* b) {
    return a->asked_us < b->asked_us;
  });
  for (const auto* drain : drains) {
    if (drain->action == Action::kDrain) {
      drained_.emplace(drain->flow_id, drain->answered_us);
    } else if (const auto since = drained_.find(drain->flow_id); since != drained_.end()) {
      drained[drain->flow_id].emplace_back(since->second, drain->asked_us);
      drained_.erase(since);
    }
  }
  for (const auto& [flow_id, since_us] : drained_) {
    drained[flow_id].emplace_back(since_us, kNeverUs);
  }
  for (const auto& operation : cycle.history.operations) {
    const auto token = tokens_.find(operation.token_id);
    if (operation.outcome != Outcome::kGranted || token == tokens_.end()) continue;
    for (const auto& [from_us, to_us] : drained[operation.flow_id]) {
      if (token->second.asked_us <= from_us || operation.answered_us >= to_us) continue;
      Report("I12 granted under a drain: " + Describe(operation), operation.token_id);
    }
  }
}

}  // namespace nowcalls::crash
