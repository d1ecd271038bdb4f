#include "sim/oracle.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

constexpr int64_t kLongAgoMs = std::numeric_limits<int64_t>::min() / 2;
constexpr size_t kViolationsMax = 20;

std::string Text(const SeenToken& seen) {
  return "token " + std::to_string(seen.id) + " (fence " + std::to_string(seen.fence) + ", " +
         seen.owner + ", flow " + std::to_string(seen.flow) + ", count " +
         std::to_string(seen.count) + ", request id " + std::to_string(seen.request_id) + ")";
}

}  // namespace

void Oracle::Violation(const std::string& what) {
  if (!rests_) Accuse(what);
}

void Oracle::Accuse(const std::string& what) {
  if (violations_.size() >= kViolationsMax) return;
  violations_.push_back(what + " at " + std::to_string(timeline_->now_ms()) + " ms");
}

Oracle::Wish Oracle::WishOf(const SeenToken& seen) {
  return {seen.owner, seen.flow, seen.count, seen.request_id};
}

Oracle::Operation& Oracle::Ask(Kind kind, const std::string& owner) {
  Operation& op = operations_[++last_op_];
  op.kind = kind;
  op.owner = owner;
  op.asked = Tick();
  op.asked_ms = timeline_->now_ms();
  op.life = AskedLife();
  return op;
}

Oracle::Token* Oracle::Find(uint64_t id) {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

bool Oracle::IsOwners(const Operation& op, const Token& token) const {
  if (op.owner.empty() || op.owner == token.seen.owner) return true;
  return op.reach == Reach::kSentinel && frame_owners_.contains(token.seen.owner) &&
         token.seen.owner.starts_with(op.owner.substr(0, op.owner.find('/') + 1));
}

// Whether it must be there now, unless the operation `but_for` has ended it.
bool Oracle::IsLive(const Token& token, OpId but_for) const {
  if (token.gone != 0 || !IsHeld(token) || timeline_->now_ms() >= token.offline_ms) return false;
  return token.enders.empty() || (token.enders.size() == 1 && token.enders.contains(but_for));
}

void Oracle::SetGone(Token* token) {
  token->gone = order_;
  if (IsTakenBack(*token)) {
    taken_back_.insert(token->seen.id);
    AwaitNotices(*token);
  }
  NotePresent();
  present_.erase(token->seen.id);
  ends_.emplace(order_, token->seen.id);
  adopted_[WishOf(token->seen)].erase(token->seen.id);
}

// --- Acquires. ---

OpId Oracle::AcquireAsked(const std::string& owner, int64_t flow, int64_t count,
                          uint64_t request_id, const AcquireTerms& terms) {
  Operation& op = Ask(Kind::kAcquire, owner);
  op.terms = terms;
  op.link = terms.link;
  op.flow = flow;
  op.count = count;
  op.request_id = request_id;
  if (in_vain_) return last_op_;
  if (op.link != kNoLink) on_their_way_[op.link].insert(last_op_);
  open_acquires_[{owner, flow, count, request_id}].insert(last_op_);
  open_of_flow_[flow].insert(last_op_);
  requests_[{owner, request_id}].push_back(last_op_);
  return last_op_;
}

// A token of a request id may come from any request with it that is open.
OpId Oracle::FirstAsked(const Wish& wish, OpId first) const {
  const auto open = open_acquires_.find(wish);
  return open == open_acquires_.end() ? first : std::min(first, *open->second.begin());
}

void Oracle::AddEnders(Token* token) {
  for (const OpId id : ender_ops_) {
    const Operation& op = operations_[id];
    if (!op.may_end_tokens || op.answered < token->asked) continue;
    const SeenToken& seen = token->seen;
    const bool hits = op.kind == Kind::kCancel
                          ? op.owner == seen.owner && op.request_id == seen.request_id
                          : IsOfReclaim(op, seen.flow) || StandsFor(op.owner, seen.owner);
    if (hits) token->enders.insert(id);
  }
}

// `first`: the first acquire that it may be of; kOpen: none.
Oracle::Token* Oracle::AddToken(const SeenToken& seen, OpId first) {
  const auto acquire = operations_.find(first);
  const uint64_t asked = acquire == operations_.end() ? order_ : acquire->second.asked;
  Token& token = tokens_[seen.id];
  token.seen = seen;
  token.asked = asked;
  token.issued_from_ms = acquire == operations_.end() ? 0 : acquire->second.asked_ms;
  token.issued_to_ms = timeline_->now_ms();
  token.hold_ms = flows_[seen.flow].hold_ms;
  token.offline_ms = OfflineDueMs(seen.owner, seen.flow);
  token.touched_ms = timeline_->now_ms();
  present_.insert(seen.id);
  AddEnders(&token);
  if (!fences_.emplace(seen.fence, seen.id).second) {
    Violation("I6 a fence is given twice: " + Text(seen));
  }
  NoteLostBefore(&token);
  const auto later = acknowledged_.lower_bound(asked);
  if (later != acknowledged_.begin() && std::prev(later)->second >= seen.fence) {
    Violation("I6 " + Text(seen) + " was asked for after fence " +
              std::to_string(std::prev(later)->second) + " had been acknowledged");
  }
  return &token;
}

bool Oracle::IsSame(const SeenToken& one, const SeenToken& other) {
  return WishOf(one) == WishOf(other) && one.fence == other.fence;
}

void Oracle::AcquireGranted(OpId op_id, LinkId link, uint64_t token_id, uint64_t fence,
                            std::optional<int64_t> told_hold_ms,
                            const std::optional<Figures>& figures) {
  Operation& acquire = operations_.at(op_id);
  const int64_t hold_ms = told_hold_ms.value_or(HoldOf(acquire.flow, acquire.terms.hold_ms));
  acquire.answered = Tick();
  const SeenToken seen{token_id,     fence,         acquire.owner,
                       acquire.flow, acquire.count, acquire.request_id};
  if (IsInVain(op_id)) return GrantedInVain(op_id, seen);
  const Wish wish = WishOf(seen);
  const OpId first = seen.request_id == 0 ? op_id : FirstAsked(wish, op_id);
  CloseAcquire(wish, op_id);
  const bool late = acquire.life != life_ || !runs_;
  NoteArrivals(op_id);
  Token* token = Find(token_id);
  if (token == nullptr) {
    token = AddToken(seen, first);
    token->answered = order_;
    const auto broken = broken_ms_.find(link);
    if (broken != broken_ms_.end()) {
      // Another connection of the session may have come after the token was taken back.
      const int64_t offline_ms = broken->second + flows_[seen.flow].client_offline_ms;
      token->offline_ms = std::min(token->offline_ms, offline_ms);
    }
    if (late) {
      CheckLateGrant(acquire, link, hold_ms, token);
    } else {
      CheckRequestId(*token);
    }
  } else {
    if (!IsSame(token->seen, seen)) {
      Violation("I6 " + Text(seen) + " was given before as " + Text(token->seen));
    }
    if (token->gone != 0 && token->gone < acquire.asked) {
      Violation("I2 " + Text(seen) + " is given again after its end");
    }
    adopted_[WishOf(token->seen)].erase(token_id);
    token->answered = std::min(token->answered, order_);
  }
  const uint64_t highest = acknowledged_.empty() ? 0 : acknowledged_.rbegin()->second;
  acknowledged_[order_] = std::max(highest, fence);
  NoteTimes(acquire, told_hold_ms, token);
  if (!late) {
    if (figures) CheckFigures(acquire, *figures, token_id);
    CheckCancelledBefore(acquire, seen);
    CheckOrder(op_id, *token);
    CheckLateAnswer(acquire);
  }
  if (token->gone != 0) return;
  if (!late) token->deadline_ms = std::max(token->deadline_ms, acquire.asked_ms + hold_ms);
  CheckCap(*token);
  CheckLevel(seen.flow);
}

// The answer of a server that has died since, about a token that it did not leave in its ledger:
// so it had ended before.
void Oracle::CheckLateGrant(const Operation& acquire, LinkId link, int64_t hold_ms, Token* token) {
  const auto died = died_ms_.find(acquire.life);
  const auto broken = broken_ms_.find(link);
  const int64_t died_ms = died == died_ms_.end() ? 0 : died->second;
  const int64_t offline_ms = flows_[acquire.flow].client_offline_ms;
  const bool may_have_ended =
      token->told_lost || !token->enders.empty() || acquire.asked_ms + hold_ms <= died_ms ||
      (broken != broken_ms_.end() && broken->second + offline_ms <= died_ms);
  if (!may_have_ended && !IsUndone(acquire)) {
    Violation("I1 " + Text(token->seen) + " was acknowledged, and its server left no trace of it");
  }
  SetGone(token);
  if (IsUndone(acquire)) taken_back_.erase(token->seen.id);
}

void Oracle::CheckCap(const Token& token) {
  const FlowFacts& facts = flows_[token.seen.flow];
  if (facts.client_cap == 0 || facts.shadow) return;
  int64_t held = 0;
  for (const uint64_t id : present_) {
    const Token& other = tokens_[id];
    const bool counts = other.seen.owner == token.seen.owner && other.seen.flow == token.seen.flow;
    if (counts && IsLive(other)) held += other.seen.count;
  }
  if (held > facts.client_cap) {
    Violation("I5 with " + Text(token.seen) + " its client holds " + std::to_string(held) +
              " of at most " + std::to_string(facts.client_cap));
  }
}

// Those that are live now were so when the last of them was granted.
void Oracle::CheckLevel(int64_t flow) {
  if (flows_[flow].shadow) return;
  int64_t held = 0;
  const Token* last = nullptr;
  for (const uint64_t id : present_) {
    const Token& token = tokens_[id];
    if (token.seen.flow != flow || !IsLive(token)) continue;
    held += token.seen.count;
    if (last == nullptr || token.seen.fence > last->seen.fence) last = &token;
  }
  if (last == nullptr) return;
  const int64_t level = levels_.Highest(flow, last->asked, std::min(last->answered, order_));
  if (held > level) {
    Violation("I5 with " + Text(last->seen) + " its flow had " + std::to_string(held) +
              " calls in progress, and a level of at most " + std::to_string(level));
  }
}

void Oracle::AcquireRefused(OpId op_id, const std::optional<Refusal>& refusal) {
  Operation& acquire = operations_.at(op_id);
  acquire.answered = Tick();
  if (IsInVain(op_id)) return;
  const Wish wish{acquire.owner, acquire.flow, acquire.count, acquire.request_id};
  CloseAcquire(wish, op_id);
  NoteArrivals(op_id);
  if (acquire.life != life_ || !runs_) return;
  const auto found = open_acquires_.find(wish);
  const std::set<OpId> open = found == open_acquires_.end() ? std::set<OpId>() : found->second;
  const auto may = std::count_if(open.begin(), open.end(),
                                 [&](OpId id) { return operations_[id].life == life_; });
  if (adopted_[wish].size() > static_cast<size_t>(may)) {
    Violation("I3 " + Text(tokens_[*adopted_[wish].begin()].seen) +
              " is in the ledger, and its acquire was refused");
  }
  if (refusal) CheckRefusal(acquire, *refusal);
  CheckLateAnswer(acquire);
}

// --- Ends. ---

OpId Oracle::ReleaseAsked(const std::string& owner, uint64_t token_id, Reach reach) {
  Operation& op = Ask(Kind::kRelease, owner);
  op.reach = reach;
  op.token = token_id;
  if (in_vain_) return last_op_;
  Token* const token = Find(token_id);
  if (token != nullptr && IsOwners(op, *token)) token->enders.insert(last_op_);
  return last_op_;
}

void Oracle::ReleaseAnswered(OpId op_id, bool released) {
  Operation& op = operations_.at(op_id);
  op.answered = Tick();
  if (IsInVain(op_id)) return released ? AcknowledgedInVain(op_id, "a release") : void();
  Token* const token = Find(op.token);
  if (token == nullptr || IsUndone(op)) return;
  if (!IsOwners(op, *token)) {
    if (released) Violation("I1 " + op.owner + " has released " + Text(token->seen));
    return;
  }
  if (released) {
    if (token->released || (token->gone != 0 && token->gone < op.asked)) {
      Violation("I2 " + Text(token->seen) + " is released again after its end");
    }
    token->released = true;
    token->by_holder |= !op.owner.empty();
    if (token->by_holder && token->told_lost) {
      Violation("S7 " + Text(token->seen) + " is released, and was told lost");
    }
  } else if (IsLive(*token, op_id)) {
    Violation("I1 " + Text(token->seen) + " is not known any more when it is released");
  }
  if (token->gone == 0) SetGone(token);
}

OpId Oracle::KeepAsked(const std::string& owner, uint64_t token_id, LinkId link, Reach reach) {
  Operation& op = Ask(Kind::kKeep, owner);
  op.reach = reach;
  op.token = token_id;
  op.link = link;
  if (in_vain_) return last_op_;
  Token* const token = Find(token_id);
  if (token != nullptr && IsOwners(op, *token)) {
    token->keeps.insert(last_op_);
    token->hold_ms = flows_[token->seen.flow].hold_ms;
  }
  return last_op_;
}

void Oracle::KeepAnswered(OpId op_id, bool kept, std::optional<int64_t> told_hold_ms) {
  Operation& op = operations_.at(op_id);
  op.answered = Tick();
  Token* const token = Find(op.token);
  if (IsInVain(op_id) && kept && token == nullptr) AcknowledgedInVain(op_id, "a keep");
  if (IsInVain(op_id)) return;
  if (token == nullptr || IsUndone(op)) return;
  if (!IsOwners(op, *token)) {
    if (kept) Violation("I1 " + op.owner + " has kept " + Text(token->seen));
    return;
  }
  if (token->keeps.erase(op_id) > 0) token->touched_ms = timeline_->now_ms();
  if (!kept) {
    if (IsLive(*token)) Violation("I1 " + Text(token->seen) + " is not known when it is kept");
    if (token->gone == 0) SetGone(token);
    return;
  }
  if (token->gone != 0) {
    if (token->gone < op.asked) Violation("I2 " + Text(token->seen) + " is kept after its end");
    return;
  }
  if (op.life != life_ || !runs_) return;
  if (told_hold_ms) CheckKeptHold(op, *token, *told_hold_ms);
  const int64_t hold_ms = told_hold_ms.value_or(flows_[token->seen.flow].hold_ms);
  // Also when it had been spared, and so told, a longer time.
  token->kept_ms = std::max(token->kept_ms, op.asked_ms + hold_ms);
  token->deadline_ms = token->kept_ms;
  if (token->offline_ms <= timeline_->now_ms()) {
    token->offline_ms = OfflineDueMs(token->seen.owner, token->seen.flow);
  }
}

OpId Oracle::CancelAsked(const std::string& owner, uint64_t request_id, LinkId link) {
  Operation& op = Ask(Kind::kCancel, owner);
  op.link = link;
  op.request_id = request_id;
  if (in_vain_) return last_op_;
  ender_ops_.push_back(last_op_);
  requests_[{owner, request_id}].push_back(last_op_);
  for (const uint64_t id : present_) {
    const SeenToken& seen = tokens_[id].seen;
    if (seen.owner == owner && seen.request_id == request_id) tokens_[id].enders.insert(last_op_);
  }
  return last_op_;
}

void Oracle::CancelAnswered(OpId op_id, bool ended) {
  Operation& op = operations_.at(op_id);
  op.answered = Tick();
  if (IsInVain(op_id)) return;
  if (IsUndone(op)) return;
  for (const uint64_t token_id : std::set<uint64_t>(present_)) {
    Token& token = tokens_[token_id];
    const bool its = token.seen.owner == op.owner && token.seen.request_id == op.request_id;
    if (!its || token.answered > op.asked) continue;
    if (!ended && IsLive(token, op_id)) {
      Violation("I1 " + Text(token.seen) + " is not known when its request id is cancelled");
    }
    SetGone(&token);
  }
}

bool Oracle::IsOfReclaim(const Operation& op, int64_t lane) {
  return FlowOfLane(lane) == op.flow &&
         op.of_kind.value_or(FlowKindIf(IsKeyLane(lane))) == FlowKindIf(IsKeyLane(lane));
}

OpId Oracle::ReclaimAllAsked(int64_t flow, const std::string& owner, TakeBack by,
                             std::optional<FlowKind> kind) {
  Operation& op = Ask(Kind::kReclaimAll, owner.empty() ? "-" : owner);
  op.flow = flow;
  op.by = by;
  op.of_kind = kind;
  if (in_vain_) return last_op_;
  ender_ops_.push_back(last_op_);
  for (const uint64_t id : present_) {
    const SeenToken& seen = tokens_[id].seen;
    if (StandsFor(op.owner, seen.owner) || IsOfReclaim(op, seen.flow)) {
      tokens_[id].enders.insert(last_op_);
    }
  }
  return last_op_;
}

void Oracle::ReclaimAllAnswered(OpId op_id, bool carried_out, bool more) {
  Operation& op = operations_.at(op_id);
  op.answered = Tick();
  if (IsInVain(op_id)) return;
  op.may_end_tokens = carried_out;
  if (IsUndone(op)) return;
  for (const uint64_t token_id : std::set<uint64_t>(present_)) {
    Token& token = tokens_[token_id];
    if (!carried_out) token.enders.erase(op_id);
    const bool its = StandsFor(op.owner, token.seen.owner) || IsOfReclaim(op, token.seen.flow);
    if (carried_out && !more && its && token.answered < op.asked) SetGone(&token);
  }
}

// --- The ledger and the server. ---

// Its holder has surely not ended it.
bool Oracle::IsTakenBack(const Token& token) const {
  return std::none_of(token.enders.begin(), token.enders.end(), [&](OpId id) {
    const Operation& op = operations_.at(id);
    return op.kind == Kind::kCancel || (op.kind == Kind::kRelease && !op.owner.empty());
  });
}

// The answer of a server whose last batches are lost.
bool Oracle::IsUndone(const Operation& op) const {
  return lost_lives_.contains(op.life) && (op.life != life_ || !runs_);
}

// Whether what is seen in the ledger for the first time may be of this acquire.
bool Oracle::MayHaveAsked(OpId op) const {
  const uint64_t life = operations_.at(op).life;
  return life == life_ || (losing_ && life >= synced_life_);
}

void Oracle::LedgerSynced() {
  synced_ = Tick();
  synced_life_ = life_;
  calls_.Synced();
}

void Oracle::BatchesLost() {
  losing_ = true;
  std::erase_if(lost_unseen_, [&](const auto& told) { return told.second >= synced_; });
  for (uint64_t life = synced_life_; life <= life_; ++life) lost_lives_.insert(life);
  levels_.Undone(Tick(), synced_);
  calls_.BatchesLost();
}

// Any assignment of such tokens to open acquires is as good as another.
void Oracle::Adopt(const SeenToken& seen) {
  const Wish wish = WishOf(seen);
  const std::set<OpId>& open = open_acquires_[wish];
  const auto may =
      std::count_if(open.begin(), open.end(), [&](OpId id) { return MayHaveAsked(id); });
  if (adopted_[wish].size() >= static_cast<size_t>(may)) {
    Violation("I3 nobody has asked for " + Text(seen));
  }
  if (lost_unseen_.contains(seen.id)) Violation("I2 in the ledger, and told lost: " + Text(seen));
  AddToken(seen, FirstAsked(wish, kOpen));
  adopted_[wish].insert(seen.id);
}

void Oracle::Audit(const std::vector<SeenToken>& ledger, const std::set<uint64_t>* history) {
  Tick();
  std::set<uint64_t> ids;
  std::multimap<std::pair<std::string, uint64_t>, const SeenToken*> requests;
  for (const SeenToken& seen : ledger) {
    if (!ids.insert(seen.id).second) Violation("I6 the ledger has twice " + Text(seen));
    if (seen.request_id != 0) {
      const std::pair request(seen.owner, seen.request_id);
      const auto [begin, end] = requests.equal_range(request);
      const bool fits = std::all_of(
          begin, end, [&](const auto& other) { return MayBeOfOneGroup(*other.second, seen); });
      if (!fits) Violation("I3 a second token for a request id: " + Text(seen));
      requests.emplace(request, &seen);
    }
    CheckCancelled(seen);
    Token* const known = Find(seen.id);
    if (known != nullptr && losing_ && known->gone >= synced_) {
      known->gone = 0;
      known->released = known->by_holder = known->told_lost = false;
      present_.insert(seen.id);
    }
    if (known == nullptr) {
      CheckWhole(seen, ledger);
      Adopt(seen);
    } else if (known->gone != 0) {
      Violation("I2 in the ledger after its end: " + Text(seen));
    } else if (!IsSame(known->seen, seen)) {
      Violation("I3 the ledger has " + Text(seen) + ", acknowledged as " + Text(known->seen));
    }
    tokens_[seen.id].seen_live = order_;
  }
  for (const uint64_t id : std::set<uint64_t>(present_)) {
    if (ids.contains(id)) continue;
    Token& token = tokens_[id];
    const bool may_be_lost = losing_ && token.answered >= synced_;
    if (IsLive(token) && !may_be_lost) Violation("I1 not in the ledger: " + Text(token.seen));
    SetGone(&token);
  }
  // What comes back with lost batches is due again when the server is ready.
  if (!losing_) CheckLateEnds();
  CheckNotices();
  CheckLedgerLevels(ledger);
  if (losing_) taken_back_.clear();
  if (history == nullptr) return;
  for (const uint64_t id : std::exchange(taken_back_, {})) {
    if (!history->contains(id)) {
      Violation("S3 the history does not tell of " + Text(tokens_[id].seen));
    }
  }
}

void Oracle::CheckLedgerLevels(const std::vector<SeenToken>& ledger) {
  std::map<int64_t, int64_t> held;
  std::map<int64_t, const SeenToken*> last;
  for (const SeenToken& seen : ledger) {
    held[seen.flow] += seen.count;
    const SeenToken*& newest = last[seen.flow];
    if (newest == nullptr || seen.fence > newest->fence) newest = &seen;
  }
  for (const auto& [flow, newest] : last) {
    if (flows_[flow].shadow) continue;
    const Token& token = tokens_[newest->id];
    const int64_t level = levels_.Highest(flow, token.asked, std::min(token.answered, order_));
    if (held[flow] > level) {
      Violation("I5 the ledger has " + std::to_string(held[flow]) + " calls in progress with " +
                Text(*newest) + ", and a level of at most " + std::to_string(level));
    }
  }
}

void Oracle::ServerStopped(const std::vector<SeenToken>& ledger, bool orderly) {
  Audit(ledger);
  runs_ = false;
  died_ms_[life_] = timeline_->now_ms();
  calls_.Died(orderly);
}

void Oracle::LedgerLeft(const std::vector<SeenToken>& ledger) {
  Audit(ledger);
  ForgetUnanswered();
}

void Oracle::ServerDied(const std::vector<SeenToken>& ledger, bool orderly) {
  ServerStopped(ledger, orderly);
  ForgetUnanswered();
}

// What was under way will not be carried out any more.
void Oracle::ForgetUnanswered() {
  losing_ = false;
  for (const OpId id : ender_ops_) {
    operations_[id].answered = std::min(operations_[id].answered, order_);
  }
  for (const uint64_t id : present_) {
    Token& token = tokens_[id];
    token.enders.clear();
    if (!token.keeps.empty()) token.touched_ms = timeline_->now_ms();
    token.keeps.clear();
  }
  adopted_.clear();
  levels_.Lost();
}

void Oracle::ServerReady(ClockGap gap, const std::vector<SeenToken>& ledger,
                         const std::map<int64_t, int64_t>& reported) {
  Audit(ledger);
  ++life_;
  open_of_flow_.clear();
  runs_ = true;
  const int64_t ready_ms = timeline_->now_ms();
  ready_ms_ = ready_ms;
  for (auto& [name, owner] : owners_) {
    owner.links.clear();
    owner.offline_since_ms = ready_ms;
    owner.since_restart = true;
    owner.left_again_ms.reset();
  }
  for (const uint64_t id : present_) {
    Token& token = tokens_[id];
    const int64_t spared_ms = ready_ms + std::min(flows_[token.seen.flow].hold_ms, grace_ms_);
    const bool keeps_deadline = gap != ClockGap::kAnyhow;
    token.deadline_ms = std::max(keeps_deadline ? token.deadline_ms : 0, spared_ms);
    token.offline_ms = OfflineDueMs(token.seen.owner, token.seen.flow);
    if (gap == ClockGap::kNone) continue;
    token.touched_ms = token.issued_to_ms = ready_ms;
    if (!keeps_deadline) token.issued_from_ms = kLongAgoMs;
  }
  std::map<int64_t, int64_t> sums;
  for (const SeenToken& seen : ledger) sums[seen.flow] += seen.count;
  if (sums != reported) Violation("I4 the server reports other counts than those of its ledger");
}

}  // namespace nowcalls::sim
