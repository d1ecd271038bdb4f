#include "backup/verify.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/rules/rule_json.h"
#include "core/rules/stand_in_rule.h"
#include "core/tables/token_ids.h"
#include "ledger/codec.h"
#include "ledger/deadline_bound.h"
#include "ledger/entities.h"
#include "ledger/namespace_codec.h"
#include "ledger/rate_codec.h"

namespace nowcalls::backup {
namespace {

using ledger::Family;
using ledger::FamilyName;
constexpr uint64_t kReservedTokensMax = 100'000'000;

using Request = std::pair<uint64_t, uint64_t>;   // A session and one of its request ids.
using Requested = std::pair<Request, uint64_t>;  // With the fence of its token.

// Sorted, each value once.
struct Duplicates {
  std::vector<uint64_t> fences;
  std::vector<Request> requests;
  bool empty() const { return fences.empty() && requests.empty(); }
};

// Requests of tokens that no single acquire_all issued, each once. `sorted` by request, then fence.
std::vector<Request> TakeRepeatedRequests(std::vector<Requested>* sorted) {
  std::vector<Request> repeated;
  const Requested* first = nullptr;  // Token of the request with the least fence.
  for (const Requested& token : *sorted) {
    if (first == nullptr || first->first != token.first) first = &token;
    if (ledger::MayShareRequestId(Fence{first->second}, Fence{token.second})) continue;
    if (repeated.empty() || repeated.back() != token.first) repeated.push_back(token.first);
  }
  return repeated;
}

// Keeps of sorted values only repeated ones, each once. Reuses the memory: millions of fences.
template <typename T>
std::vector<T> TakeRepeated(std::vector<T>* sorted) {
  size_t kept = 0;
  for (size_t i = 1; i < sorted->size(); ++i) {
    if ((*sorted)[i] != (*sorted)[i - 1]) continue;
    if (kept == 0 || (*sorted)[kept - 1] != (*sorted)[i]) (*sorted)[kept++] = (*sorted)[i];
  }
  sorted->resize(kept);
  return std::move(*sorted);
}

std::string Num(uint64_t value) { return std::to_string(value); }

std::string KeyHex(const ledger::TokenKey& key) {
  char bytes[ledger::kTokenKeyBytes];
  ledger::EncodeTokenKey(key, bytes);
  return ToHex({bytes, sizeof(bytes)});
}

std::string Describe(const ledger::Token& token) {
  return "token " + Num(token.key.id.value) + " (flow " + std::to_string(token.flow.value) +
         ", session " + Num(token.session.value) + ", fence " + Num(token.fence.value) + ") ";
}

std::string Describe(const ledger::Session& session) {
  return "session " + Num(session.id.value) + " (namespace " + Quoted(session.name_space) +
         ", client " + Quoted(session.client_id) + ") ";
}

std::string Describe(const ledger::HistoryEntry& entry) {
  return "entry " + Num(entry.sequence) + " (token " + Num(entry.token_id.value) + ", flow " +
         std::to_string(entry.flow.value) + ", fence " + Num(entry.fence.value) + ") ";
}

class Problems {
 public:
  Problems(uint64_t shown_max, const ProblemSink& sink) : shown_max_(shown_max), sink_(sink) {}

  void Add(const Problem& problem) {
    ++by_kind_[problem.kind];
    uint64_t& count = problem.kind == ProblemKind::kFuture ? warnings_ : count_;
    if (count++ < shown_max_) sink_(problem);
  }
  void AddMeta(ProblemKind kind, std::string_view key, std::string detail) {
    Add({kind, std::string(FamilyName(Family::kMeta)), ToHex(key), std::move(detail)});
  }
  void AddRule(ProblemKind kind, const ledger::RuleEntry& rule, const std::string& detail) {
    Add({kind, std::string(FamilyName(Family::kRules)),
         ToHex(ledger::EncodeRuleKey(rule.name_space, rule.flow)),
         "the rule of flow " + std::to_string(rule.flow.value) + " in namespace " +
             Quoted(rule.name_space) + " " + detail});
  }
  void AddNamespace(const ledger::NamespaceEntry& entry, const std::string& detail) {
    Add({ProblemKind::kNamespace, std::string(FamilyName(Family::kRules)),
         ToHex(ledger::EncodeNamespaceKey(entry.name_space)),
         "namespace " + Quoted(entry.name_space) + " with rules from " + Quoted(entry.source) +
             " " + detail});
  }
  void AddSession(ProblemKind kind, const ledger::Session& session, const std::string& detail) {
    Add({kind, std::string(FamilyName(Family::kSessions)),
         ToHex(ledger::EncodeSessionKey(session.id)), Describe(session) + detail});
  }
  void AddHistory(const ledger::HistoryEntry& entry, const std::string& detail,
                  ProblemKind kind = ProblemKind::kHistory) {
    AddHistory(entry.sequence, Describe(entry) + detail, kind);
  }
  void AddHistory(uint64_t sequence, const std::string& detail,
                  ProblemKind kind = ProblemKind::kHistory) {
    Add({kind, std::string(FamilyName(Family::kHistory)), ToHex(ledger::EncodeHistoryKey(sequence)),
         detail});
  }
  void AddToken(ProblemKind kind, const ledger::Token& token, const std::string& detail) {
    Add({kind, std::string(FamilyName(token.key.family)), KeyHex(token.key),
         Describe(token) + detail});
  }

  uint64_t count() const { return count_; }
  uint64_t warnings() const { return warnings_; }
  const std::map<ProblemKind, uint64_t>& by_kind() const { return by_kind_; }

 private:
  const uint64_t shown_max_;
  const ProblemSink& sink_;
  uint64_t count_ = 0;
  uint64_t warnings_ = 0;
  std::map<ProblemKind, uint64_t> by_kind_;
};

Problem UndecodableProblem(const ledger::BadRecord& record) {
  const std::string& detail = record.why.message();
  if (record.key.empty()) return {ProblemKind::kUndecodable, "", "", detail};
  return {ProblemKind::kUndecodable, std::string(FamilyName(record.family)), record.key, detail};
}

// The first walk: all but the places of duplicates. Checks rely on families earlier in kLoadOrder.
class Verifier : public ledger::EntityVisitor {
 public:
  Verifier(Problems* problems, VerifyWatcher* watcher) : problems_(problems), watcher_(watcher) {}

  // Checks over all records, sums only if the `whole` ledger was walked. Returns the duplicates.
  Duplicates Finish(bool whole);
  // REQUIRES: Finish was called. Lacks the counts of Problems.
  const VerifySummary& summary() const { return summary_; }

  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }
  Status OnBadRecord(const ledger::BadRecord& record) override {
    // The bad record may be the entry, clock or seal that would seem to be missing.
    if (record.family == Family::kHistory) last_entry_.reset();
    if (record.family == Family::kMeta) bad_meta_ = true;
    problems_->Add(UndecodableProblem(record));
    return {};
  }
  Status OnUnreadable(Family family, Status what) override {
    unreadable_.insert(family);
    problems_->Add({ProblemKind::kUnreadable, std::string(FamilyName(family)), "", what.message()});
    return {};
  }

 private:
  Status On(const ledger::Format& format) {
    ids_.emplace(format.token_id_key);
    has_kinds_ = format.version >= core::kFirstFormatWithKinds;
    return {};
  }
  Status On(const ledger::ClockMark& mark) {
    mark_ = mark;
    return {};
  }
  Status On(const ledger::Seal& seal);
  Status On(const ledger::Watermark& watermark);
  Status On(const ledger::NamespaceEntry& entry);
  Status On(const ledger::RuleEntry& rule);
  Status On(const ledger::Session& session);
  Status On(const ledger::HistoryBlock& block);
  Status On(const ledger::RateBucket& bucket);
  Status On(const ledger::Token& token);
  void CheckName(const ledger::Session& session);
  void CheckEntry(const ledger::HistoryEntry& entry);
  void CheckHistorySeal(const ledger::HistoryEntry& entry);
  void CheckEnded();
  void CheckRule(const ledger::Token& token);
  void CheckTokenId(const ledger::Token& token);
  void CheckAgainstSeal(const ledger::Token& token);
  void CheckClock();
  void CheckSums();
  bool AllTokensRead() const;
  std::string AtAfterSeal(int64_t ms) const {
    return " at " + std::to_string(ms) + " ms, after the last seal at " +
           std::to_string(seal_->ledger_ms) + " ms";
  }
  Problems* const problems_;
  VerifyWatcher* const watcher_;
  VerifySummary summary_;
  std::set<Family> unreadable_;
  bool bad_meta_ = false;  // A meta record did not decode.
  std::optional<core::TokenIds> ids_;
  std::optional<ledger::ClockMark> mark_;
  std::optional<ledger::Seal> seal_;
  int64_t watermark_ms_ = 0;
  std::map<std::string, ledger::NamespaceEntry> empty_namespaces_;  // No active rule seen yet.
  bool has_kinds_ = true;  // Tokens have a rule of their kind.
  absl::flat_hash_map<FlowKey, std::string> namespace_of_flow_;
  std::map<FlowKey, ledger::RuleEntry> removed_rules_;  // No token seen yet.
  std::map<std::pair<std::string, std::string>, std::set<uint64_t>> named_clients_;  // Instances.
  absl::flat_hash_map<uint64_t, ledger::Session> sessions_;
  std::optional<ledger::HistoryEntry> last_entry_;
  std::vector<std::pair<uint64_t, uint64_t>> ended_;  // Fence and sequence of each history entry.
  std::vector<uint64_t> fences_;
  std::vector<Requested> requests_;
  uint64_t fence_sum_ = 0;  // Modulo 2^64, as the seal's.
};

Status Verifier::On(const ledger::Seal& seal) {
  seal_ = seal;
  summary_.seal = seal;
  summary_.batch_number = seal.batch_number;
  // One allocation for all fences. A damaged seal must not ask for all memory.
  fences_.reserve(std::min(seal.live_tokens, kReservedTokensMax));
  watcher_->ExpectTokens(seal.live_tokens);
  if (mark_.has_value() && mark_->ledger_ms > seal.ledger_ms) {
    problems_->AddMeta(ProblemKind::kFuture, ledger::kClockKey,
                       "the clock mark is" + AtAfterSeal(mark_->ledger_ms));
  }
  return {};
}

Status Verifier::On(const ledger::Watermark& watermark) {
  const int64_t deadline_ms = watermark.deadline_ms;
  // A watermark of the future would make a problem of every token: warn once and ignore it.
  if (!seal_.has_value() || deadline_ms <= seal_->ledger_ms) {
    watermark_ms_ = deadline_ms;
  } else {
    problems_->AddMeta(ProblemKind::kFuture, ledger::kWatermarkKey,
                       "the watermark is" + AtAfterSeal(deadline_ms));
  }
  return {};
}

Status Verifier::On(const ledger::NamespaceEntry& entry) {
  if (const Status name = CheckNamespace(entry.name_space); !name.ok()) {
    problems_->AddNamespace(entry, "has a bad name: it " + name.message());
  }
  if (const Status source = CheckRuleSource(entry.source); !source.ok()) {
    problems_->AddNamespace(entry, "has a bad source: it " + source.message());
  }
  empty_namespaces_.emplace(entry.name_space, entry);
  return {};
}

Status Verifier::On(const ledger::RuleEntry& rule) {
  ++summary_.rules;
  if (ledger::IsInForce(rule.state)) empty_namespaces_.erase(rule.name_space);
  const Result<core::Rule> parsed = core::ParseRule(rule.json);
  if (!parsed.ok()) {
    problems_->AddRule(ProblemKind::kRule, rule, "is no rule: " + parsed.status().message());
  } else if (parsed->flow_id != rule.flow) {
    problems_->AddRule(ProblemKind::kRule, rule,
                       "says flowId " + std::to_string(parsed->flow_id.value));
  }
  if (const Status name = CheckNamespace(rule.name_space); !name.ok()) {
    problems_->AddRule(ProblemKind::kRule, rule, "has a bad namespace: it " + name.message());
  }
  const FlowKey key{rule.flow, FlowKindIf(parsed.ok() && parsed->param.has_value())};
  if (!ledger::IsInForce(rule.state)) removed_rules_.emplace(key, rule);
  const auto [owner, is_first] = namespace_of_flow_.emplace(key, rule.name_space);
  if (!is_first) {
    problems_->AddRule(
        ProblemKind::kDuplicateFlow, rule,
        "shares its flow id with another of its kind, of namespace " + Quoted(owner->second));
  }
  return {};
}

Status Verifier::On(const ledger::Session& session) {
  ++summary_.sessions;
  sessions_[session.id.value] = session;
  CheckName(session);
  if (!seal_.has_value()) return {};
  if (session.id.value >= seal_->next_fence) {
    problems_->AddSession(ProblemKind::kSession, session,
                          "is not below next_fence " + Num(seal_->next_fence));
  }
  if (session.opened_ms > seal_->ledger_ms) {
    problems_->AddSession(ProblemKind::kFuture, session,
                          "was opened" + AtAfterSeal(session.opened_ms));
  }
  return {};
}

void Verifier::CheckName(const ledger::Session& session) {
  if (const Status name = CheckNamespace(session.name_space); !name.ok()) {
    problems_->AddSession(ProblemKind::kSession, session,
                          "has a bad namespace: it " + name.message());
  }
  if (session.kind != ledger::SessionKind::kNamed) {
    if (session.client_id.starts_with('@')) return;
    problems_->AddSession(ProblemKind::kSession, session,
                          "is of a connection, but its name does not start with '@'");
    return;
  }
  if (const Status name = CheckClientId(session.client_id); !name.ok()) {
    problems_->AddSession(ProblemKind::kSession, session,
                          "has a bad client id: it " + name.message());
  }
  if (!named_clients_[{session.name_space, session.client_id}].insert(session.instance).second) {
    problems_->AddSession(ProblemKind::kDuplicateClient, session,
                          "shares its client id with another session");
  }
}

Status Verifier::On(const ledger::HistoryBlock& block) {
  for (const ledger::HistoryEntry& entry : block) CheckEntry(entry);
  return {};
}

void Verifier::CheckEntry(const ledger::HistoryEntry& entry) {
  ++summary_.history;
  ended_.emplace_back(entry.fence.value, entry.sequence);
  // After an undecodable record there is no predecessor: its entries may be the missing ones.
  if (last_entry_.has_value()) {
    if (entry.sequence != last_entry_->sequence + 1) {
      problems_->AddHistory(
          entry, "follows entry " + Num(last_entry_->sequence) + ": those between are missing");
    }
    if (entry.ended_ms < last_entry_->ended_ms) {
      problems_->AddHistory(entry,
                            "tells of an end at " + std::to_string(entry.ended_ms) +
                                " ms, before that of the entry before it at " +
                                std::to_string(last_entry_->ended_ms) + " ms",
                            ProblemKind::kFuture);
    }
  }
  if (ids_.has_value() && (entry.fence.value > core::TokenIds::kMax ||
                           ids_->FromFence(entry.fence) != entry.token_id)) {
    problems_->AddHistory(entry, "has not the id of its fence");
  }
  CheckHistorySeal(entry);
  last_entry_ = entry;
}

void Verifier::CheckHistorySeal(const ledger::HistoryEntry& entry) {
  if (!seal_) return;
  if (std::max(entry.fence.value, entry.session.value) >= seal_->next_fence) {
    problems_->AddHistory(
        entry, "has a fence or session that is not below next_fence " + Num(seal_->next_fence));
  }
  if (entry.ended_ms > seal_->ledger_ms) {
    problems_->AddHistory(entry, "tells of an end" + AtAfterSeal(entry.ended_ms),
                          ProblemKind::kFuture);
  }
}

// A token ends once, and then is not live. REQUIRES: fences_ are sorted.
void Verifier::CheckEnded() {
  std::sort(ended_.begin(), ended_.end());
  for (size_t i = 0; i < ended_.size(); ++i) {
    const auto& [fence, sequence] = ended_[i];
    const std::string entry = "entry " + Num(sequence) + " (fence " + Num(fence) + ") ";
    if (i > 0 && ended_[i - 1].first == fence) {
      problems_->AddHistory(sequence, entry + "tells of an end that entry " +
                                          Num(ended_[i - 1].second) + " tells of too");
    }
    if (std::binary_search(fences_.begin(), fences_.end(), fence)) {
      problems_->AddHistory(sequence, entry + "tells of the end of a token that is live");
    }
  }
  // history_max, and what is left of a block that cannot be dropped yet.
  constexpr size_t kKeptMax = kHistoryEntriesMax + ledger::kHistoryBlockMax - 1;
  if (ended_.size() > kKeptMax) {
    problems_->Add(
        {ProblemKind::kHistory, std::string(FamilyName(Family::kHistory)), "",
         Num(ended_.size()) + " entries are more than any server keeps, " + Num(kKeptMax)});
  }
}

Status Verifier::On(const ledger::RateBucket& bucket) {
  const auto add = [&](ProblemKind kind, const std::string& what) {
    char key[ledger::kRateKeyBytes];
    ledger::EncodeRateKey(bucket.key, key);
    problems_->Add({kind, std::string(FamilyName(Family::kRates)), ToHex({key, sizeof(key)}),
                    "a window of calls a second of flow " + Num(bucket.key.flow.value) + what});
  };
  const bool has_rule = unreadable_.contains(Family::kRules) ||
                        namespace_of_flow_.contains({bucket.key.flow, FlowKind::kFlow});
  if (!has_rule) add(ProblemKind::kRate, ": it has no rule of the flow");
  if (seal_.has_value() && bucket.key.begin_ms > seal_->ledger_ms) {
    add(ProblemKind::kFuture, " begins" + AtAfterSeal(bucket.key.begin_ms));
  }
  return {};
}

Status Verifier::On(const ledger::Token& token) {
  NOWCALLS_RETURN_IF_ERROR(watcher_->OnToken());
  ++summary_.tokens;
  summary_.now_calls += token.count;
  fences_.push_back(token.fence.value);
  fence_sum_ += token.fence.value;
  if (token.request_id != 0) {
    if (requests_.empty()) requests_.reserve(fences_.capacity());  // None of it is touched before.
    requests_.push_back({{token.session.value, token.request_id}, token.fence.value});
  }
  CheckTokenId(token);
  CheckAgainstSeal(token);
  if (token.key.deadline_ms >= ledger::kDeadlineMsEnd) {
    problems_->AddToken(
        ProblemKind::kTokenTime, token,
        "has a deadline that no rule makes: " + std::to_string(token.key.deadline_ms) + " ms");
  }
  const int64_t span_ms = token.key.deadline_ms - token.issued_ms;
  // A hold is never longer than deadline - issue, so a family for longer holds is wrong.
  if (token.key.family > ledger::FamilyForHold(span_ms)) {
    problems_->AddToken(ProblemKind::kTokenFamily, token,
                        "has its deadline only " + std::to_string(span_ms) +
                            " ms after its issue, too soon for its family");
  }
  // Sessions that could not be read may be in the ledger.
  if (!unreadable_.contains(Family::kSessions) && !sessions_.contains(token.session.value)) {
    problems_->AddToken(ProblemKind::kTokenSession, token,
                        "is of a session that is not in the ledger");
  }
  CheckRule(token);
  if (token.key.deadline_ms < watermark_ms_) {
    problems_->AddToken(ProblemKind::kWatermark, token,
                        "has its deadline at " + std::to_string(token.key.deadline_ms) +
                            " ms, below the watermark at " + std::to_string(watermark_ms_) + " ms");
  }
  return {};
}

// Ledgers before kinds: a rule of either kind fits.
void Verifier::CheckRule(const ledger::Token& token) {
  const FlowKey own{token.flow, FlowKindIf(token.param.has_value())};
  const FlowKey other{token.flow, OtherThan(own.kind)};
  const bool has_rule =
      namespace_of_flow_.contains(own) || (!has_kinds_ && namespace_of_flow_.contains(other));
  if (!unreadable_.contains(Family::kRules) && !has_rule) {
    problems_->AddToken(ProblemKind::kTokenRule, token, "is of a flow without a rule");
  }
  removed_rules_.erase(own);
  if (!has_kinds_) removed_rules_.erase(other);
}

void Verifier::CheckTokenId(const ledger::Token& token) {
  if (!ids_.has_value()) return;
  if (token.fence.value > core::TokenIds::kMax) {
    problems_->AddToken(ProblemKind::kTokenId, token, "has a fence above 2^63-1");
    return;
  }
  const TokenId expected = ids_->FromFence(token.fence);
  if (token.key.id == expected) return;
  problems_->AddToken(ProblemKind::kTokenId, token,
                      "has not the id of its fence, which is " + Num(expected.value));
}

void Verifier::CheckAgainstSeal(const ledger::Token& token) {
  if (!seal_.has_value()) return;
  if (token.fence.value >= seal_->next_fence) {
    problems_->AddToken(ProblemKind::kTokenFence, token,
                        "is not below next_fence " + Num(seal_->next_fence));
  }
  if (token.issued_ms > seal_->ledger_ms) {
    problems_->AddToken(ProblemKind::kFuture, token, "was issued" + AtAfterSeal(token.issued_ms));
  }
}

// The first batch writes clock and seal, and neither is deleted.
void Verifier::CheckClock() {
  if (mark_.has_value() == seal_.has_value()) return;
  problems_->AddMeta(ProblemKind::kClock, mark_.has_value() ? ledger::kSealKey : ledger::kClockKey,
                     mark_.has_value() ? "there is a clock mark, but no seal"
                                       : "there is a seal, but no clock mark");
}

void Verifier::CheckSums() {
  const ledger::Seal expected = seal_.value_or(ledger::Seal{});
  const auto compare = [&](std::string_view what, uint64_t found, uint64_t sealed) {
    if (found == sealed) return;
    problems_->AddMeta(ProblemKind::kSeal, ledger::kSealKey,
                       "the " + std::string(what) + " is " + Num(found) + ", but batch " +
                           Num(expected.batch_number) + " was sealed over " + Num(sealed));
  };
  // Sums would match an absent seal's zeros in a ledger of sessions only.
  if (!seal_.has_value() && summary_.sessions + summary_.tokens + summary_.history > 0) {
    problems_->AddMeta(ProblemKind::kSeal, ledger::kSealKey,
                       "there are sessions, tokens or history, but no batch was ever sealed");
  }
  compare("number of tokens", summary_.tokens, expected.live_tokens);
  compare("sum of counts", summary_.now_calls, expected.live_count_sum);
  compare("sum of fences", fence_sum_, expected.live_fence_sum);
}

// Without the seal or some tokens the sums differ by an unknown amount.
bool Verifier::AllTokensRead() const {
  return std::none_of(unreadable_.begin(), unreadable_.end(), [](Family family) {
    return family == Family::kMeta || ledger::IsTokenFamily(family);
  });
}

Duplicates Verifier::Finish(bool whole) {
  // Step 1: what must be there. Missing records prove nothing where a family could not be read.
  if (whole && !bad_meta_ && !unreadable_.contains(Family::kMeta)) CheckClock();
  if (whole && !unreadable_.contains(Family::kRules)) {
    for (const auto& [name, entry] : empty_namespaces_) {
      problems_->AddNamespace(entry, "has no active rule");
    }
  }
  if (whole && !bad_meta_ && AllTokensRead()) {
    CheckSums();
    for (const auto& [flow, rule] : removed_rules_) {
      problems_->AddRule(ProblemKind::kRule, rule, "was removed, but no token of it is left");
    }
  }
  // Step 2: what must be unique: fences of ended tokens, of sessions, of tokens.
  std::sort(fences_.begin(), fences_.end());
  CheckEnded();
  std::vector<uint64_t> shared;
  for (const auto& [id, session] : sessions_) {
    if (std::binary_search(fences_.begin(), fences_.end(), id)) shared.push_back(id);
  }
  std::sort(shared.begin(), shared.end());
  for (const uint64_t id : shared) {
    problems_->AddSession(ProblemKind::kDuplicateFence, sessions_.at(id),
                          "has the number of a token's fence");
  }
  std::sort(requests_.begin(), requests_.end());
  return {TakeRepeated(&fences_), TakeRepeatedRequests(&requests_)};
}

// The second walk names the records of duplicates.
class DuplicateFinder : public ledger::EntityVisitor {
 public:
  DuplicateFinder(const Duplicates& duplicates, Problems* problems)
      : duplicates_(duplicates), problems_(problems) {}

  Status OnEntity(const ledger::Entity& entity) override {
    if (const auto* const token = ledger::As<ledger::Token>(entity)) Check(*token);
    return {};
  }
  Status OnBadRecord(const ledger::BadRecord& /*record*/) override { return {}; }
  Status OnUnreadable(Family /*family*/, Status /*what*/) override { return {}; }

 private:
  void Check(const ledger::Token& token) {
    const auto& [fences, requests] = duplicates_;
    if (std::binary_search(fences.begin(), fences.end(), token.fence.value)) {
      problems_->AddToken(ProblemKind::kDuplicateFence, token,
                          "has a fence that another token has too");
    }
    if (std::binary_search(requests.begin(), requests.end(),
                           Request(token.session.value, token.request_id))) {
      problems_->AddToken(
          ProblemKind::kRequestId, token,
          "has a request id that another token of its session has too: " + Num(token.request_id));
    }
  }

  const Duplicates& duplicates_;
  Problems* const problems_;
};

}  // namespace

Result<VerifySummary> Verify(store::LedgerSource* store, uint64_t problems_max,
                             const ProblemSink& sink, VerifyWatcher* watcher) {
  // Step 1: one walk. Damage that ends it early is a problem like others; other failures are not.
  Problems problems(problems_max, sink);
  Verifier verifier(&problems, watcher);
  const Status loaded = store->Load(&verifier);
  const bool ended_early = loaded.code() == StatusCode::kCorruption;
  if (!loaded.ok() && !ended_early) return loaded;
  if (ended_early) problems.Add({ProblemKind::kUnreadable, "", "", loaded.message()});
  const Duplicates duplicates = verifier.Finish(/*whole=*/!ended_early);
  // Step 2: only with duplicates, a second walk to name the records.
  if (!duplicates.empty()) {
    DuplicateFinder finder(duplicates, &problems);
    const Status again = store->Load(&finder);
    if (!again.ok() && !ended_early) return again;
  }
  VerifySummary summary = verifier.summary();
  summary.problems = problems.count();
  summary.warnings = problems.warnings();
  summary.by_kind = problems.by_kind();
  return summary;
}

}  // namespace nowcalls::backup
