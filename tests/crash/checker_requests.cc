// What requests do to tokens, and what request ids, cancels and drains promise.
#include <algorithm>
#include <tuple>
#include <utility>

#include "crash/checker.h"

namespace nowcalls::crash {
namespace {

constexpr int64_t kNoAnswerUs = INT64_MAX;

// When it was over at last.
int64_t OverUs(const Operation& operation) {
  return operation.outcome == Outcome::kUnknown ? kNoAnswerUs : operation.answered_us;
}

bool EndsMany(Action action) {
  return action == Action::kReclaimFlow || action == Action::kPurge ||
         action == Action::kReclaimClient;
}

bool IsAmongMany(const Operation& operation, const std::string& client, int64_t flow_id) {
  return operation.action == Action::kReclaimClient ? operation.holder == client
                                                    : operation.flow_id == flow_id;
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
                    token.count == operation.count && token.fence == operation.fence;
  if (!same) return false;
  ++asked_again_;
  constexpr int64_t kUsPerMs = 1'000;
  token.deadline_us =
      std::max(token.deadline_us, (operation.asked_us / kUsPerMs + operation.hold_ms) * kUsPerMs);
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
  const bool none = operation.outcome == Outcome::kReclaimed && operation.reclaimed == 0;
  if (none || operation.outcome == Outcome::kGone || operation.outcome == Outcome::kRefused) return;
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
    constexpr int64_t kUsPerMs = 1'000;
    token.deadline_us =
        std::max(token.deadline_us, (operation.asked_us / kUsPerMs + operation.hold_ms) * kUsPerMs);
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
  CheckOneTokenEach();
  std::multimap<Request, uint64_t> by_request;
  for (const auto& [id, token] : tokens_) {
    if (token.request_id != 0) by_request.emplace(Request{token.client, token.request_id}, id);
  }
  for (const auto& operation : cycle.history.operations) {
    if (operation.action != Action::kAcquire || operation.request_id == 0) continue;
    const auto [begin, end] = by_request.equal_range({operation.client, operation.request_id});
    for (auto at = begin; at != end; ++at) CheckAskedAgain(operation, at->second);
  }
  CheckCancels(cycle.history);
  CheckDrains(cycle);
}

void Checker::CheckOneTokenEach() {
  using Held = std::tuple<int64_t, int64_t, uint64_t>;  // From when, until when, which token.
  std::map<Request, std::vector<Held>> held;
  for (const auto& [id, token] : tokens_) {
    if (token.request_id == 0 || token.MayEndUs() <= token.held_from_us) continue;
    held[{token.client, token.request_id}].emplace_back(token.held_from_us, token.MayEndUs(), id);
  }
  for (auto& [request, list] : held) {
    std::sort(list.begin(), list.end());
    for (size_t i = 1; i < list.size(); ++i) {
      if (std::get<0>(list[i]) >= std::get<1>(list[i - 1])) continue;
      const uint64_t id = std::get<2>(list[i]);
      Report("I10 request " + std::to_string(request.second) + " of client " + request.first +
                 " has token " + std::to_string(id) + " beside token " +
                 std::to_string(std::get<2>(list[i - 1])),
             id);
    }
  }
}

void Checker::CheckAskedAgain(const Operation& operation, uint64_t token_id) {
  const Token& token = tokens_[token_id];
  if (operation.outcome == Outcome::kGranted && operation.token_id == token_id) {
    if (token.gone_us >= operation.asked_us) return;
    Report("I2 a token that is gone is given again: " + Describe(operation), token_id);
  }
  const bool held =
      token.held_from_us < operation.asked_us && token.MayEndUs() > operation.answered_us;
  if (operation.outcome == Outcome::kRefused && held) {
    Report("I10 a request with a live token is refused: " + Describe(operation), token_id);
  }
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
    drained[flow_id].emplace_back(since_us, kNoAnswerUs);
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
