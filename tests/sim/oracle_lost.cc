// What clients are told of tokens that were taken back.
//
// A notice leaves when the end of its token is in the ledger. So from then on the token is gone for
// ever, whatever dies. A connection that listens must be told of every token that its session held
// after the connection was heard, and that nobody of the session has ended.
#include <algorithm>

#include "sim/lanes.h"
#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

constexpr int64_t kToldMs = 1'000;

std::string Text(const std::string& owner, const LostNotice& notice) {
  return owner + " is told that token " + std::to_string(notice.token) + " of flow " +
         std::to_string(notice.flow) + " is lost (" + notice.reason + ")";
}

}  // namespace

void Oracle::ListenerSeen(LinkId link, const std::string& owner, bool prompt) {
  Listener& listener = listeners_[link];
  listener.owner = owner;
  const auto asked = link_lives_.find(link);
  listener.life = asked == link_lives_.end() ? kNoLife : asked->second;
  listener.since = Tick();
  listener.awaits = prompt && !broken_ms_.contains(link);
}

void Oracle::LostTold(LinkId link, const LostNotice& notice) {
  Tick();
  const auto found = listeners_.find(link);
  if (found == listeners_.end()) {
    return Violation("S7 " + Text("somebody who does not listen", notice));
  }
  Listener& listener = found->second;
  const std::string text = Text(listener.owner, notice);
  if (!listener.told.insert(notice.token).second) Violation("S7 " + text + " twice");
  listener.awaited.erase(notice.token);
  if (listener.life != life_ || !runs_) return LostToldLate(listener, notice);
  Token* const token = Find(notice.token);
  if (token == nullptr) return LostToldOfUnknown(listener, notice);
  if (token->seen.owner != listener.owner || FlowOfLane(token->seen.flow) != notice.flow) {
    Violation("S7 " + text + ", which is of " + token->seen.owner + ", flow " +
              std::to_string(token->seen.flow));
  }
  if (token->by_holder) Violation("S7 " + text + ", and it was released");
  if (!MayBeTakenBack(*token, notice.reason)) Violation("S7 " + text + " without a reason");
  token->told_lost = true;
  if (token->gone == 0) SetGone(token);
  AwaitNotices(*token);  // Although its holder may have ended it, as far as was known.
}

// The server has died since. What it left in the ledger it had not taken back.
void Oracle::LostToldLate(const Listener& listener, const LostNotice& notice) {
  const Token* const token = Find(notice.token);
  if (token == nullptr || token->gone != 0 || lost_lives_.contains(listener.life)) return;
  Violation("I2 " + Text(listener.owner, notice) + ", and its server left it in the ledger");
}

// It was granted and taken back, and the answer to its acquire comes later or never.
void Oracle::LostToldOfUnknown(const Listener& listener, const LostNotice& notice) {
  const auto asked = [&](const auto& open) {
    return std::get<0>(open.first) == listener.owner &&
           FlowOfLane(std::get<1>(open.first)) == notice.flow;
  };
  if (std::none_of(open_acquires_.begin(), open_acquires_.end(), asked)) {
    Violation("S7 " + Text(listener.owner, notice) + ", which was not asked for");
  }
  lost_unseen_.emplace(notice.token, order_);
}

// What is seen of the token for the first time came later than the notice of its end.
void Oracle::NoteLostBefore(Token* token) {
  const auto told = lost_unseen_.find(token->seen.id);
  if (told == lost_unseen_.end()) return;
  token->told_lost = true;
  token->gone = told->second;
  present_.erase(token->seen.id);
  ends_.emplace(token->gone, token->seen.id);
}

bool Oracle::MayBeTakenBack(const Token& token, const std::string& reason) const {
  const auto was_asked_for = [&](TakeBack by) {
    return std::any_of(token.enders.begin(), token.enders.end(), [&](OpId id) {
      const Operation& op = operations_.at(id);
      if (op.kind == Kind::kRelease) return op.owner.empty() && by == TakeBack::kReclaim;
      return op.kind == Kind::kReclaimAll && op.by == by;
    });
  };
  if (reason == "admin") return was_asked_for(TakeBack::kReclaim);
  if (reason == "rule_removed") return was_asked_for(TakeBack::kPurge);
  if (reason == "resource_timeout") return !IsHeld(token);
  return reason == "client_offline" && timeline_->now_ms() >= token.offline_ms;
}

// Each connection that listened when the token was still there is to be told of its end.
void Oracle::AwaitNotices(const Token& token) {
  if (!runs_ || losing_) return;
  for (auto& [link, listener] : listeners_) {
    const bool hears = listener.awaits && listener.life == life_ &&
                       listener.owner == token.seen.owner && listener.since < token.seen_live;
    if (!hears || listener.told.contains(token.seen.id)) continue;
    listener.awaited.try_emplace(token.seen.id, timeline_->now_ms());
  }
}

void Oracle::CheckNotices() {
  if (!runs_) return;
  for (const auto& [link, listener] : listeners_) {
    for (const auto& [token, since_ms] : listener.awaited) {
      if (UnhinderedMs(since_ms, since_ms) <= kToldMs + promptness_.network_ms) continue;
      return Violation("S7 " + listener.owner + " is not told that token " + std::to_string(token) +
                       " is lost, which was so at " + std::to_string(since_ms) + " ms");
    }
  }
}

}  // namespace nowcalls::sim
