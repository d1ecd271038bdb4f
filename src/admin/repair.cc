#include "admin/repair.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "base/time.h"
#include "core/rules/rule_json.h"
#include "core/rules/stand_in_rule.h"
#include "core/tables/token_ids.h"
#include "ledger/clock.h"
#include "ledger/deadline_bound.h"
#include "ledger/fence_line.h"

namespace nowcalls::admin {
namespace {

constexpr char kMadeUp[] = "salvaged";

std::string Num(uint64_t value) { return std::to_string(value); }

std::string Describe(const ledger::Token& token) {
  return "token " + Num(token.key.id.value) + " (flow " + std::to_string(token.flow.value) +
         ", session " + Num(token.session.value) + ", fence " + Num(token.fence.value) +
         ", count " + Num(token.count) + ")";
}

std::string Describe(const ledger::RuleEntry& rule) {
  return "the rule of flow " + std::to_string(rule.flow.value) + " in namespace " +
         Quoted(rule.name_space);
}

FlowKey FlowOf(const ledger::Token& token) {
  return {token.flow, FlowKindIf(token.param.has_value())};
}

// Whether a ledger gives such a number to a token or a session.
bool IsGiven(uint64_t number) { return number >= 1 && number < ledger::kFenceMax; }

Status CheckNames(const ledger::Session& session) {
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(session.name_space).WithContext("its namespace"));
  if (session.kind == ledger::SessionKind::kNamed) {
    return CheckClientId(session.client_id).WithContext("its client id");
  }
  if (session.client_id.starts_with('@')) return {};
  return Status::InvalidArgument("it is of a connection, but its name does not start with '@'");
}

// Makes what was read belong together, in the order of what refers to what.
class Salvage {
 public:
  Salvage(const ReadEntities& read, SalvagedEntities* out) : read_(read), out_(*out) {}

  void Run(const ClockSample& now) {
    TakeFormat();
    TakeRules();
    TakeSessions();
    TakeTokens();
    FillIn();
    TakeHistory();
    DropIdleRules();
    TakeNamespaces();
    SetClock(now);
    TakeRates();
    SkipFences();
  }

 private:
  void Change(std::string what) { out_.changes.push_back(std::move(what)); }
  void TakeFormat();
  void TakeRules();
  void TakeSessions();
  void TakeTokens();
  void FillIn();
  void TakeHistory();
  void DropIdleRules();
  void TakeRates();
  void TakeNamespaces();
  void SetClock(const ClockSample& now);
  void SkipFences();
  bool HasIdOfItsFence(Fence fence, TokenId id) const;
  void FillInSession(const ledger::Token& token);
  void FillInRule(const ledger::Token& token);

  const ReadEntities& read_;
  SalvagedEntities& out_;
  bool has_kinds_ = false;  // Tokens have a rule of their kind.
  std::optional<core::TokenIds> ids_;
  absl::flat_hash_map<uint64_t, uint64_t> session_instead_;
  std::set<uint64_t> ended_;  // Fences in the history.
};

void Salvage::TakeFormat() {
  // The key proves that a token's id is of its fence. Without it no token can be told from garbage.
  if (read_.format.has_value()) {
    out_.format = *read_.format;
    has_kinds_ = out_.format.version >= core::kFirstFormatWithKinds;
    out_.format.version = ledger::kFormatVersion;
    ids_.emplace(out_.format.token_id_key);
    return;
  }
  out_.format.token_id_key = RandomBits128();
  out_.format.created_wall_ms = WallMs();
  Change("the format record with the key of the token ids is lost: all " +
         Num(read_.tokens.size()) + " tokens and the history are left out");
}

bool Salvage::HasIdOfItsFence(Fence fence, TokenId id) const {
  return ids_.has_value() && fence.value <= core::TokenIds::kMax && ids_->FromFence(fence) == id;
}

void Salvage::TakeRules() {
  for (const ledger::RuleEntry& rule : read_.rules) {
    // A rule must parse, be of its own flow id and have a namespace that may be.
    const Result<core::Rule> parsed = core::ParseRule(rule.json);
    if (!parsed.ok() || parsed->flow_id != rule.flow) {
      Change(Describe(rule) + " is no rule, and is left out");
      continue;
    }
    if (const Status name = CheckNamespace(rule.name_space); !name.ok()) {
      Change(Describe(rule) + " is left out: the namespace " + name.message());
      continue;
    }
    // Two rules of one key: the one in force stays, else the first.
    const auto [taken, is_first] = out_.rules.emplace(parsed->key(), rule);
    if (is_first) continue;
    ledger::RuleEntry dropped = rule;
    if (!ledger::IsInForce(taken->second.state)) std::swap(taken->second, dropped);
    Change(Describe(dropped) + " is left out: namespace " + Quoted(taken->second.name_space) +
           " has such a rule of this flow too");
  }
}

// Of two sessions of one instance of a client the later one stays, and gets the tokens of both.
void Salvage::TakeSessions() {
  // First by number, so that of two the later one is met last.
  std::map<std::tuple<std::string, std::string, uint64_t>, uint64_t> named;
  std::map<uint64_t, ledger::Session> sorted;
  for (const ledger::Session& session : read_.sessions) {
    if (!IsGiven(session.id.value)) {
      Change("session " + Num(session.id.value) + " is left out: no session has such a number");
    } else if (const Status names = CheckNames(session); !names.ok()) {
      Change("session " + Num(session.id.value) + " is left out: " + names.message());
    } else {
      sorted.emplace(session.id.value, session);
    }
  }
  for (const auto& [id, session] : sorted) {
    out_.sessions.emplace(id, session);
    if (session.kind != ledger::SessionKind::kNamed) continue;
    const auto [first, is_first] =
        named.emplace(std::tuple(session.name_space, session.client_id, session.instance), id);
    if (is_first) continue;
    const uint64_t before = std::exchange(first->second, id);
    // Tokens of a session that was replaced earlier follow to the latest one.
    for (auto& [from, to] : session_instead_) {
      if (to == before) to = id;
    }
    session_instead_[before] = id;
    out_.sessions.erase(before);
    Change("session " + Num(before) + " of client " + Quoted(session.client_id) +
           " is left out: session " + Num(id) + " of the same client gets its tokens");
  }
}

void Salvage::TakeTokens() {
  for (const ledger::HistoryEntry& entry : read_.history) ended_.insert(entry.fence.value);
  // Left out: ids that no ledger makes, and tokens whose end the history tells. Kept in doubt: all
  // else, with the later of two deadlines.
  std::map<std::pair<uint64_t, uint64_t>, Fence> requests;  // With their first tokens.
  for (ledger::Token token : read_.tokens) {
    const std::string text = Describe(token);
    if (!HasIdOfItsFence(token.fence, token.key.id)) {
      if (ids_.has_value()) Change(text + " has not the id of its fence, and is left out");
      continue;
    }
    if (!IsGiven(token.fence.value) || !IsGiven(token.session.value)) {
      Change(text + " has a fence or session that no ledger gives, and is left out");
      continue;
    }
    if (token.key.deadline_ms >= ledger::kDeadlineMsEnd) {
      Change(text + " has a deadline that no rule makes, and is left out");
      continue;
    }
    if (ended_.contains(token.fence.value)) {
      Change(text + " is left out: the history tells of its end");
      continue;
    }
    if (const auto other = session_instead_.find(token.session.value);
        other != session_instead_.end()) {
      token.session = SessionId(other->second);
    }
    const auto [kept, is_first] = out_.tokens.emplace(token.fence.value, token);
    if (!is_first) {
      Change(text + " is there twice: the later deadline counts");
      if (kept->second.key.deadline_ms < token.key.deadline_ms) kept->second = token;
    }
  }
  for (auto& [fence, token] : out_.tokens) {
    // The family follows from the final deadline; a record may stand in another one.
    token.key.family = ledger::FamilyForHold(token.key.deadline_ms - token.issued_ms);
    if (token.request_id == 0) continue;
    const std::pair request(token.session.value, token.request_id);
    const auto first = requests.emplace(request, token.fence).first;
    // Only items of one acquire_all share a request id.
    if (ledger::MayShareRequestId(first->second, token.fence)) continue;
    Change(Describe(token) + " loses its request id, which another token of its session has");
    token.request_id = 0;
  }
}

void Salvage::FillInSession(const ledger::Token& token) {
  if (out_.sessions.contains(token.session.value)) return;
  // Nobody can come back to a connection's session, so its tokens end by their rule.
  const auto rule = out_.rules.find(FlowOf(token));
  ledger::Session session;
  session.id = token.session;
  session.kind = ledger::SessionKind::kConnection;
  session.opened_ms = token.issued_ms;
  session.name_space = rule != out_.rules.end() ? rule->second.name_space : "default";
  session.client_id = "@" + std::string(kMadeUp) + ":" + Num(token.session.value);
  Change("session " + Num(token.session.value) + " is lost: its tokens belong to " +
         session.client_id + ", and nobody can come back to it");
  out_.sessions.emplace(token.session.value, session);
}

void Salvage::FillInRule(const ledger::Token& token) {
  const FlowKey key = FlowOf(token);
  if (out_.rules.contains(key)) return;
  const auto other = out_.rules.find({key.id, OtherThan(key.kind)});
  // Formats without kinds had one rule for a flow id: a stand-in of it takes the tokens.
  if (!has_kinds_ && other != out_.rules.end()) {
    const core::Rule rule = core::StandInRule(*core::ParseRule(other->second.json));
    out_.rules.emplace(key, ledger::RuleEntry{other->second.name_space, token.flow,
                                              ledger::RuleState::kRemoved, core::RuleToJson(rule)});
    return;
  }
  // Nothing is known of the rule. One that counts as removed grants nothing, and its tokens still
  // end.
  core::Rule rule;
  rule.resource = kMadeUp;
  rule.flow_id = token.flow;
  rule.threshold_type = core::ThresholdType::kGlobal;
  if (key.kind == FlowKind::kValue) rule.param.emplace();
  const ledger::RuleEntry entry{out_.sessions.at(token.session.value).name_space, token.flow,
                                ledger::RuleState::kRemoved, core::RuleToJson(rule)};
  Change(Describe(entry) + " is lost: its tokens have one that counts as removed");
  out_.rules.emplace(key, entry);
}

void Salvage::FillIn() {
  for (auto it = out_.tokens.begin(); it != out_.tokens.end();) {
    // A number is either a fence or that of a session.
    if (out_.tokens.contains(it->second.session.value)) {
      Change(Describe(it->second) + " is left out: its session has the number of a token's fence");
      it = out_.tokens.erase(it);
      continue;
    }
    FillInSession(it->second);
    FillInRule(it->second);
    ++it;
  }
  for (auto it = out_.sessions.begin(); it != out_.sessions.end();) {
    const bool taken = out_.tokens.contains(it->first);
    if (taken) Change("session " + Num(it->first) + " is left out: a token has its number");
    it = taken ? out_.sessions.erase(it) : std::next(it);
  }
}

void Salvage::TakeHistory() {
  std::vector<ledger::HistoryEntry> sorted = read_.history;
  // The entries that are left get new numbers, in the order in which the tokens ended.
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(a.ended_ms, a.sequence) < std::tie(b.ended_ms, b.sequence);
  });
  std::set<uint64_t> seen;
  for (ledger::HistoryEntry& entry : sorted) {
    if (!HasIdOfItsFence(entry.fence, entry.token_id) || !IsGiven(entry.fence.value) ||
        entry.session.value >= ledger::kFenceMax || !seen.insert(entry.fence.value).second) {
      if (ids_.has_value()) {
        Change("entry " + Num(entry.sequence) +
               " of the history contradicts itself or another "
               "one, and is left out");
      }
      continue;
    }
    entry.sequence = out_.history.size() + 1;
    out_.history.push_back(std::move(entry));
  }
}

void Salvage::DropIdleRules() {
  std::set<FlowKey> with_tokens;
  for (const auto& [fence, token] : out_.tokens) with_tokens.insert(FlowOf(token));
  for (auto it = out_.rules.begin(); it != out_.rules.end();) {
    // A removed rule stays only for its tokens.
    const bool idle = !ledger::IsInForce(it->second.state) && !with_tokens.contains(it->first);
    if (idle) Change(Describe(it->second) + " was removed, and no token of it is left");
    it = idle ? out_.rules.erase(it) : std::next(it);
  }
}

// Of a bucket that is there twice the fuller one counts.
void Salvage::TakeRates() {
  for (const ledger::RateBucket& bucket : read_.rates) {
    if (!out_.rules.contains({bucket.key.flow, FlowKind::kFlow})) {
      Change("a window of calls a second is left out: flow " +
             std::to_string(bucket.key.flow.value) + " has no rule of the flow");
      continue;
    }
    // SetClock has run. No ledger has a window that begins after its clock.
    if (bucket.key.begin_ms > out_.mark.ledger_ms) {
      Change("a window of calls a second of flow " + std::to_string(bucket.key.flow.value) +
             " is left out: it begins in the future");
      continue;
    }
    const auto [kept, is_first] = out_.rates.emplace(bucket.key, bucket);
    if (!is_first && kept->second.passed < bucket.passed) kept->second = bucket;
  }
}

void Salvage::TakeNamespaces() {
  std::set<std::string> in_force;
  for (const auto& [flow, rule] : out_.rules) {
    // Only namespaces with rules in force have a source that owns them.
    if (ledger::IsInForce(rule.state)) in_force.insert(rule.name_space);
  }
  for (const ledger::NamespaceEntry& entry : read_.namespaces) {
    if (const Status source = CheckRuleSource(entry.source); !source.ok()) {
      Change("namespace " + Quoted(entry.name_space) +
             " is left to whoever claims it: its source " + source.message());
    } else if (in_force.contains(entry.name_space)) {
      out_.namespaces.push_back(entry);
    } else {
      Change("namespace " + Quoted(entry.name_space) + " with rules from " + Quoted(entry.source) +
             " has no rule any more");
    }
  }
}

void Salvage::SetClock(const ClockSample& now) {
  // Nothing was later than the seal. Without one the latest time that was found counts.
  Instant floor{0};
  const auto see = [&floor](int64_t ms) { floor = std::max(floor, Instant{ms}); };
  if (read_.seal.has_value()) {
    see(read_.seal->ledger_ms);
  } else {
    for (const auto& [fence, token] : out_.tokens) see(token.issued_ms);
    for (const auto& [id, session] : out_.sessions) see(session.opened_ms);
    for (const ledger::HistoryEntry& entry : out_.history) see(entry.ended_ms);
  }
  out_.mark.machine = now;
  if (read_.mark.has_value()) {
    // A mark later than the seal is not believed.
    ledger::ClockMark mark = *read_.mark;
    if (read_.seal.has_value()) mark.ledger_ms = std::min(mark.ledger_ms, floor.ms);
    out_.mark.ledger_ms = ledger::RecoverTime(mark, floor, now).now.ms;
  } else {
    out_.mark.ledger_ms = std::max<int64_t>(floor.ms, now.wall_ms);
    Change("the clock is lost: it goes on with the wall clock");
  }
}

void Salvage::SkipFences() {
  // Beyond the seal and beyond every number that was found (invariant 6).
  uint64_t next = read_.seal.has_value() ? read_.seal->next_fence : 1;
  const auto see = [&next](uint64_t number) { next = std::max(next, number + 1); };
  for (const auto& [fence, token] : out_.tokens) see(std::max(fence, token.session.value));
  for (const auto& [id, session] : out_.sessions) see(id);
  for (const ledger::HistoryEntry& entry : out_.history) {
    see(std::max(entry.fence.value, entry.session.value));
  }
  // When the newest number was given out is not known: the mark may be older or newer than that. It
  // tells only that the wall clock was set back.
  const int64_t now_ms = out_.mark.machine.wall_ms;
  const int64_t seen_ms = read_.mark.has_value() ? read_.mark->machine.wall_ms : now_ms;
  out_.next_fence = ledger::FenceAfterGap(next, std::max(seen_ms, now_ms), now_ms);
}

}  // namespace

Status ReadEntities::On(const ledger::Format& read) {
  format = read;
  return {};
}
Status ReadEntities::On(const ledger::ClockMark& read) {
  mark = read;
  return {};
}
Status ReadEntities::On(const ledger::Seal& read) {
  seal = read;
  return {};
}
Status ReadEntities::On(const ledger::NamespaceEntry& entry) {
  namespaces.push_back(entry);
  return {};
}
Status ReadEntities::On(const ledger::RuleEntry& rule) {
  rules.push_back(rule);
  return {};
}
Status ReadEntities::On(const ledger::Session& session) {
  sessions.push_back(session);
  return {};
}
Status ReadEntities::On(const ledger::HistoryBlock& block) {
  history.insert(history.end(), block.begin(), block.end());
  return {};
}
Status ReadEntities::On(const ledger::RateBucket& bucket) {
  rates.push_back(bucket);
  return {};
}
Status ReadEntities::On(const ledger::Token& token) {
  tokens.push_back(token);
  return {};
}
Status ReadEntities::OnBadRecord(const ledger::BadRecord& record) {
  // Nothing of another format version can be understood.
  if (record.why.code() == StatusCode::kFailedPrecondition) return record.WithPlace();
  damage.push_back(record.WithPlace().message());
  return {};
}
Status ReadEntities::OnUnreadable(ledger::Family /*family*/, Status what) {
  damage.push_back(what.message());
  return {};
}

uint64_t SalvagedEntities::now_calls() const {
  uint64_t sum = 0;
  for (const auto& [fence, token] : tokens) sum += token.count;
  return sum;
}

uint64_t SalvagedEntities::fence_sum() const {
  uint64_t sum = 0;
  for (const auto& [fence, token] : tokens) sum += fence;
  return sum;
}

SalvagedEntities SalvageEntities(const ReadEntities& read, const ClockSample& now) {
  SalvagedEntities salvaged;
  Salvage(read, &salvaged).Run(now);
  return salvaged;
}

}  // namespace nowcalls::admin
