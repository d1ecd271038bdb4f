// What an answer tells, and whether a refusal had a reason.
//
// An answer was decided at some moment between the request and now. What the flow's tokens can have
// counted to then is bounded: from above by all that may have been granted and is not known to have
// ended before the request, from below by what was acknowledged before it and must be there still.
#include <algorithm>
#include <iterator>

#include "sim/lanes.h"
#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

std::string Text(const std::string& owner, int64_t flow, int64_t count) {
  return "of " + owner + ", flow " + std::to_string(flow) + ", count " + std::to_string(count);
}

}  // namespace

void Oracle::CloseAcquire(const Wish& wish, OpId op) {
  std::set<OpId>& open = open_acquires_[wish];
  open.erase(op);
  if (open.empty()) open_acquires_.erase(wish);
  open_of_flow_[std::get<1>(wish)].erase(op);
}

// What the owner may have held under the flow at some moment since `from`; 0 is all flows, and
// empty all owners.
Oracle::Held Oracle::MostHeld(int64_t flow, const std::string& owner, uint64_t from) const {
  Held held;
  const auto add = [&](const std::string& of, int64_t under, int64_t count) {
    if ((flow != 0 && under != flow) || (!owner.empty() && of != owner)) return;
    held.calls += count;
    ++held.tokens;
  };
  const auto add_token = [&](const Token& token) {
    add(token.seen.owner, token.seen.flow, token.seen.count);
  };
  for (const uint64_t id : present_) add_token(tokens_.at(id));
  for (auto end = ends_.lower_bound({from, 0}); end != ends_.end(); ++end) {
    const Token& token = tokens_.at(end->second);
    if (token.gone == end->first) add_token(token);  // And has not come back since.
  }
  for (const auto& [under, open] : open_of_flow_) {
    if (flow != 0 && under != flow) continue;
    for (const OpId id : open) {
      const Operation& op = operations_.at(id);
      add(op.owner, op.flow, op.count);
    }
  }
  return held;
}

int64_t Oracle::LeastHeld(int64_t flow, uint64_t from, uint64_t but_for) const {
  int64_t calls = 0;
  for (const uint64_t id : present_) {
    const Token& token = tokens_.at(id);
    if (token.seen.flow != flow || id == but_for) continue;
    if (token.answered < from && IsLive(token)) calls += token.seen.count;
  }
  return calls;
}

// Others that may have waited meanwhile, for the same flow or for any.
uint64_t Oracle::Waiters(const Operation& acquire, bool of_flow) const {
  const auto waits = [&](const auto& entry) {
    const Operation& op = entry.second;
    return op.kind == Kind::kAcquire && &op != &acquire && op.life == life_ &&
           op.terms.wait_ms > 0 && op.answered >= acquire.asked &&
           (!of_flow || op.flow == acquire.flow);
  };
  return static_cast<uint64_t>(std::count_if(operations_.begin(), operations_.end(), waits));
}

std::vector<OpId> Oracle::OfRequest(Kind kind, const std::string& owner,
                                    uint64_t request_id) const {
  std::vector<OpId> ops;
  const auto found = requests_.find({owner, request_id});
  if (found == requests_.end()) return ops;
  std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(ops),
               [&](OpId id) { return operations_.at(id).kind == kind; });
  return ops;
}

bool Oracle::WasCancelled(const Operation& acquire) const {
  const auto cancels = OfRequest(Kind::kCancel, acquire.owner, acquire.request_id);
  return std::any_of(cancels.begin(), cancels.end(),
                     [&](OpId id) { return operations_.at(id).life == life_; });
}

bool Oracle::SharesRequestId(const Operation& acquire) const {
  const auto acquires = OfRequest(Kind::kAcquire, acquire.owner, acquire.request_id);
  return std::any_of(acquires.begin(), acquires.end(), [&](OpId id) {
    const Operation& op = operations_.at(id);
    return &op != &acquire && (op.group == 0 || op.group != acquire.group);
  });
}

bool Oracle::HadNoRoom(const Operation& acquire) const {
  const int64_t most = MostHeld(acquire.flow, {}, acquire.asked).calls;
  return acquire.count > levels_.Lowest(acquire.flow, acquire.asked, order_) - most;
}

bool Oracle::WasAtCap(const Operation& acquire) const {
  const auto facts = flows_.find(acquire.flow);
  if (facts == flows_.end() || facts->second.client_cap == 0) return false;
  const int64_t most = MostHeld(acquire.flow, acquire.owner, acquire.asked).calls;
  return acquire.count > facts->second.client_cap - most;
}

bool Oracle::IsOverCap(const Operation& acquire) const {
  const auto facts = flows_.find(acquire.flow);
  return facts != flows_.end() && facts->second.client_cap != 0 &&
         acquire.count > facts->second.client_cap;
}

// `granted`: the token of the answer, which counts; 0: none.
void Oracle::CheckFigures(const Operation& acquire, const Figures& figures, uint64_t granted) {
  const int64_t own = granted == 0 ? 0 : acquire.count;
  const int64_t least = LeastHeld(acquire.flow, acquire.asked, granted) + own;
  const int64_t most = MostHeld(acquire.flow, {}, acquire.asked).calls;
  const std::string who = Text(acquire.owner, acquire.flow, acquire.count);
  if (figures.now_calls < least || figures.now_calls > most) {
    Violation("I4 the acquire " + who + " is told of " + std::to_string(figures.now_calls) +
              " calls in progress, and there were " + std::to_string(least) + " to " +
              std::to_string(most));
  }
  if (!levels_.MayBe(acquire.flow, figures.level, acquire.asked, order_)) {
    Violation("I4 the acquire " + who + " is told of the level " + std::to_string(figures.level) +
              ", which the flow cannot have had");
  }
}

void Oracle::OnlineTold(LinkId link, const std::string& name_space, int64_t sessions,
                        uint64_t asked) {
  if (settled_.contains(link)) return;
  if (levels_.MayBeOnline(name_space, sessions, asked, Tick())) return;
  Violation("I4 namespace " + name_space + " is told of " + std::to_string(sessions) +
            " sessions online, which it cannot have had");
}

void Oracle::CheckRefusal(const Operation& acquire, const Refusal& refusal) {
  if (!HasReason(acquire, refusal)) {
    Violation("S1 the acquire " + Text(acquire.owner, acquire.flow, acquire.count) +
              " is refused as " + refusal.word + " without a reason");
  }
  if (refusal.word == "level" || refusal.word == "param" || refusal.word == "client_cap" ||
      refusal.word == "over_level" || refusal.word == "queue_timeout") {
    CheckFigures(acquire, refusal.figures, /*granted=*/0);
  }
}

bool Oracle::HasReason(const Operation& acquire, const Refusal& refusal) const {
  const std::string& word = refusal.word;
  if (word == (IsKeyLane(acquire.flow) ? "param" : "level")) {
    return acquire.count > refusal.figures.level - refusal.figures.now_calls && HadNoRoom(acquire);
  }
  if (word == "client_cap") return WasAtCap(acquire);
  if (word == "over_level") return acquire.count > refusal.figures.level || IsOverCap(acquire);
  if (word == "waiters_ahead") return Waiters(acquire, /*of_flow=*/true) > 0;
  if (word == "queue_full") {
    return acquire.terms.wait_ms > 0 && Waiters(acquire, /*of_flow=*/false) >= limits_.waiters_max;
  }
  if (word == "queue_timeout") {
    const int64_t waited_ms = timeline_->now_ms() - acquire.asked_ms;
    return acquire.terms.wait_ms > 0 && waited_ms >= acquire.terms.wait_ms - 1 &&
           (HadNoRoom(acquire) || WasAtCap(acquire) || Waiters(acquire, /*of_flow=*/true) > 0);
  }
  if (word == "draining") return levels_.MayDrain(acquire.flow, acquire.asked, order_);
  if (word == "cancelled") return WasCancelled(acquire);
  if (word == "superseded" || word == "request_id") return SharesRequestId(acquire);
  if (word == "token_limit") {
    return MostHeld(0, {}, acquire.asked).tokens + acquire.group_size > limits_.tokens_max;
  }
  if (word == "NO_RULE_EXISTS" || word == "BAD_REQUEST")
    return levels_.MayBeAbsent(acquire.flow, acquire.asked, order_);
  // Without the name of the limit.
  if (word == "BLOCKED") {
    return HadNoRoom(acquire) || WasAtCap(acquire) || IsOverCap(acquire) ||
           Waiters(acquire, /*of_flow=*/true) > 0 ||
           levels_.MayDrain(acquire.flow, acquire.asked, order_);
  }
  return word == "NOT_AVAILABLE";
}

}  // namespace nowcalls::sim
