// ClientSession: answers to its requests. session_calls.cc sends them, and ends those without one.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "client/answers.h"
#include "client/session.h"
#include "nowcalls/flow_name.h"

namespace nowcalls::client {
namespace {

constexpr uint64_t kTokenIdMax = INT64_MAX;  // As the protocol has it.

Result<wire::AcquireAllReply> AcquireReplyAsOfAll(const AcquireCall& call,
                                                  std::string_view result) {
  const Result<wire::AcquireReply> reply = wire::DecodeAcquireReply(result);
  if (!reply.ok()) return reply.status();
  wire::AcquireAllReply all{.status = reply->status,
                            .refused_by = reply->refused_by,
                            .flow_id = call.demands.front().flow.value,
                            .now_calls = reply->now_calls,
                            .level = reply->level};
  if (reply->status == TokenStatus::kOk) {
    all.tokens.push_back({reply->token_id, reply->fence, reply->hold_ms, reply->terms});
  }
  return all;
}

// The fault in granted tokens; empty: none.
std::string WrongGrant(const AcquireCall& call, const wire::AcquireAllReply& reply,
                       const HeldTokens& held) {
  if (reply.tokens.size() != call.demands.size()) {
    return std::to_string(reply.tokens.size()) + " tokens for " +
           std::to_string(call.demands.size()) + " items";
  }
  std::set<uint64_t> ids;
  for (size_t i = 0; i < reply.tokens.size(); ++i) {
    const wire::AcquireAllReply::Token& token = reply.tokens[i];
    const std::string name = "token " + std::to_string(token.token_id);
    if (call.demands[i].rate) {
      if (token.token_id == 0) continue;
      return name + " for a rate";
    }
    if (token.token_id == 0 || token.token_id > kTokenIdMax) return name + ", which no token is";
    const bool known = !ids.insert(token.token_id).second || held.Find(token.token_id) != nullptr;
    if (known) return name + ", which is held already";
  }
  return {};
}

// Whether less than half of a grant's time may be left, counted from the sending of its acquire.
// `contact_ms`: when the latest answered request was sent.
bool IsLate(const AcquireCall& call, const wire::AcquireAllReply& reply, int64_t contact_ms,
            int64_t now_ms) {
  const auto is_late = [&](const wire::AcquireAllReply::Token& token) {
    if (token.token_id == 0) return false;  // Of a rate.
    if ((now_ms - call.sent_ms) * 2 > Validity::Sure(TimeMs(token.hold_ms))) return true;
    return token.terms &&
           (now_ms - contact_ms) * 2 > Validity::Sure(TimeMs(token.terms->client_offline_ms));
  };
  return std::any_of(reply.tokens.begin(), reply.tokens.end(), is_late);
}

// Whether room may come by itself soon.
bool MayPass(RefusedBy limit) {
  switch (limit) {
    case RefusedBy::kLevel:
    case RefusedBy::kClientCap:
    case RefusedBy::kParam:
    case RefusedBy::kWaitersAhead:
    case RefusedBy::kQueueFull:
    case RefusedBy::kOther: return true;
    default: return false;
  }
}

// Notes when the rates of a group let the calls be made: a repeated group's answer omits that.
void NoteRates(AcquireCall* call, const wire::AcquireAllReply& reply, int64_t now_ms) {
  for (const wire::AcquireAllReply::Token& token : reply.tokens) {
    if (token.token_id != 0) continue;
    call->rates_ms = std::max(call->rates_ms, now_ms + TimeMs(token.hold_ms));
  }
}

// The flow that refused, as asked for. The server tells a group the number of a name: it is the
// name where that leaves no doubt.
FlowId FlowOfRefusal(const AcquireCall& call, int64_t flow_id) {
  const FlowId number(flow_id);
  std::optional<FlowId> named;
  for (const FlowDemand& demand : call.demands) {
    if (demand.flow == number) return number;
    if (NameOfFlow(demand.flow).empty() || named == demand.flow) continue;
    if (named.has_value()) return number;
    named = demand.flow;
  }
  return flow_id == 0 ? number : named.value_or(number);
}

// Whether a demand for the flow that refused is by value.
FlowKind KindOfRefused(const AcquireCall& call) {
  return FlowKindIf(std::any_of(call.demands.begin(), call.demands.end(), [&](const FlowDemand& d) {
    return d.flow == call.refusal->flow && d.param.index() != 0;
  }));
}

}  // namespace

Status ClientSession::Answered(const CallPtr& call, const wire::Response& response,
                               int64_t now_ms) {
  switch (call->kind) {
    case Call::Kind::kAcquire:
      return Answered(std::static_pointer_cast<AcquireCall>(call), response, now_ms);
    case Call::Kind::kRate:
      return Answered(std::static_pointer_cast<RateCall>(call), response, now_ms);
    case Call::Kind::kRelease:
      return Answered(std::static_pointer_cast<ReleaseCall>(call), response);
    case Call::Kind::kKeep:
      return Answered(std::static_pointer_cast<KeepCall>(call), response, now_ms);
    case Call::Kind::kRule: RuleAnswered(static_cast<RuleCall&>(*call), response, now_ms); break;
    case Call::Kind::kCancel:
    case Call::Kind::kPing: break;
  }
  return Status::Ok();
}

Status ClientSession::Answered(const std::shared_ptr<AcquireCall>& call,
                               const wire::Response& response, int64_t now_ms) {
  if (response.error) {
    Fail(call, AnswerOf(*response.error), now_ms);
    return Status::Ok();
  }
  const Result<wire::AcquireAllReply> reply = call->all
                                                  ? wire::DecodeAcquireAllReply(response.result)
                                                  : AcquireReplyAsOfAll(*call, response.result);
  if (!reply.ok()) return reply.status();
  if (!call->awaited()) return Status::Ok();  // Given up: its cancel is on the way behind it.
  if (reply->status == TokenStatus::kNotAvailable) {
    calls_.Queue(call);  // The server ends.
  } else if (reply->refused_by == RefusedBy::kRequestId && call->attempts > 1) {
    // The answer to an attempt before is lost, and some of its tokens have ended since.
    call->strayed = true;
    Fail(call, NoAnswerOf(*call, "a token of the group ended before its answer came"), now_ms);
  } else if (reply->status != TokenStatus::kOk) {
    Answer refusal = RefusalOf(FlowOfRefusal(*call, reply->flow_id), reply->status,
                               reply->refused_by, reply->now_calls, reply->level);
    // A prioritized acquire follows the rule's acquireRefuseStrategy if room may come by itself.
    const bool by_rule = call->options.prioritized && reply->status == TokenStatus::kBlocked &&
                         MayPass(refusal.refused_by);
    if (!by_rule) {
      Fail(call, std::move(refusal), now_ms, reply->status);
    } else {
      call->refusal = std::move(refusal);
      TryAgain(call, now_ms);
    }
  } else if (std::string wrong = WrongGrant(*call, *reply, held_); !wrong.empty()) {
    return Status::Corruption("the answer to an acquire has " + wrong);
  } else if (!call->came_late && IsLate(*call, *reply, held_.contact_ms(), now_ms)) {
    NoteRates(call.get(), *reply, now_ms);
    call->came_late = true;
    Ask(call, now_ms);  // The answer is the same token, with what is left of its hold.
  } else {
    NoteRates(call.get(), *reply, now_ms);
    Hold(call, *reply, now_ms);
    SettleAfter(call, call->options.sleep, &call->wait, now_ms);
  }
  return Status::Ok();
}

void ClientSession::Hold(const std::shared_ptr<AcquireCall>& call,
                         const wire::AcquireAllReply& reply, int64_t now_ms) {
  // All tokens of the acquire share `stray`: the last one to end cancels it.
  const auto stray = call->strayed ? std::make_shared<const uint64_t>(call->request_id) : nullptr;
  for (size_t i = 0; i < reply.tokens.size(); ++i) {
    const FlowDemand& demand = call->demands[i];
    const wire::AcquireAllReply::Token& token = reply.tokens[i];
    if (demand.rate) {
      call->held.push_back(nullptr);
      continue;
    }
    auto held = std::make_shared<Held>();
    held->grant = {.flow = demand.flow,
                   .count = demand.count,
                   .token = TokenId(token.token_id),
                   .fence = Fence(token.fence),
                   .now_calls = reply.now_calls,
                   .level = reply.level,
                   .hold = Milliseconds(TimeMs(token.hold_ms))};
    held->param = demand.param;
    held->keep = call->options.keep;
    held->on_lost = call->options.on_lost;
    held->stray = stray;
    held->granted_ms = call->sent_ms;
    held_.Add(held);
    local_.Enter(*held);
    // Times count from the sending: the server's own count begins later.
    held_.Confirm(held.get(), call->sent_ms, token.hold_ms, token.terms);
    held_.PlanNext(held.get(), call->sent_ms);
    call->held.push_back(std::move(held));
  }
  call->answer.outcome = Outcome::kOk;
  call->answer.flow = call->demands.front().flow;
  call->answer.now_calls = reply.now_calls;
  call->answer.level = reply.level;
  call->wait = Milliseconds(std::max<int64_t>(0, call->rates_ms - now_ms));
}

// Tells after *wait if `sleep` and the deadline allow; else at once, with *wait for the caller.
void ClientSession::SettleAfter(const CallPtr& call, bool sleep, Milliseconds* wait,
                                int64_t now_ms) {
  const int64_t at_ms = now_ms + wait->count();
  if (!sleep || at_ms == now_ms || at_ms > call->deadline_ms) {
    calls_.Settle(call);
    return;
  }
  *wait = Milliseconds(0);
  call->tell_ms = at_ms;
  later_.emplace(at_ms, call);
}

// A refused acquire, by the rule: fails, or is asked again after a random pause, whose bound
// doubles from 10 to 640 ms. A rule that is not fresh is asked for first. No attempt is made that
// leaves no time for its answer: the refusal would become kUnknown, and a fallback could grant.
void ClientSession::TryAgain(const std::shared_ptr<AcquireCall>& call, int64_t now_ms) {
  constexpr int64_t kPauseMs = 10;
  constexpr uint32_t kDoublingsMax = 6;
  constexpr int64_t kAnswerMs = 20;
  const int64_t flow = call->refusal->flow.value;
  AskRule(flow, now_ms);
  if (rules_asked_.contains(flow)) {
    await_rule_[flow].push_back(call);
    return;
  }
  const RuleView* const rule = rules_.Find(flow, KindOfRefused(*call));
  const auto strategy = rule == nullptr ? RuleView::Refused::kFail : rule->acquire_refuse;
  const bool once = strategy == RuleView::Refused::kOnceMore && call->refusals == 0;
  const int64_t pause_ms = prng_.Between(1, kPauseMs << std::min(call->refusals, kDoublingsMax));
  const int64_t answer_ms = std::max(kAnswerMs, 2 * (now_ms - call->sent_ms));
  const bool in_time = now_ms + pause_ms + answer_ms <= call->deadline_ms;
  if ((!once && strategy != RuleView::Refused::kUntilDeadline) || !in_time) {
    return Fail(call, *call->refusal, now_ms);
  }
  ++call->refusals;
  later_.emplace(now_ms + pause_ms, call);
}

Status ClientSession::Answered(const std::shared_ptr<RateCall>& call,
                               const wire::Response& response, int64_t now_ms) {
  if (response.error) {
    Fail(call, AnswerOf(*response.error), now_ms);
    return Status::Ok();
  }
  const Result<wire::RateReply> reply = wire::DecodeRateReply(response.result);
  if (!reply.ok()) return reply.status();
  if (reply->status != TokenStatus::kOk && reply->status != TokenStatus::kShouldWait) {
    Fail(call, RefusalOf(call->flow, reply->status, reply->refused_by, 0, 0), now_ms,
         reply->status);
    return Status::Ok();
  }
  if (!call->awaited()) return Status::Ok();
  call->answer.outcome = Outcome::kOk;
  call->answer.flow = call->flow;
  call->answer.remaining = reply->remaining;
  call->answer.wait = Milliseconds(TimeMs(reply->wait_ms));
  SettleAfter(call, call->options.sleep, &call->answer.wait, now_ms);
  return Status::Ok();
}

Status ClientSession::Answered(const std::shared_ptr<ReleaseCall>& call,
                               const wire::Response& response) {
  call->held->state = Held::State::kEnded;
  Answer answer;
  answer.outcome = Outcome::kOk;
  bool lost = false;
  if (response.error) {
    answer = AnswerOf(*response.error);
  } else {
    const Result<TokenStatus> status = wire::DecodeStatusReply(response.result);
    if (!status.ok()) return status.status();
    // After an attempt without an answer, "gone" may be the work of that attempt.
    lost = *status != TokenStatus::kReleaseOk && call->attempts == 1;
  }
  if (lost && !call->held->lost.exchange(true, std::memory_order_release)) ++stats_.lost;
  if (!call->awaited()) return Status::Ok();
  static_cast<Answer&>(call->answer) = std::move(answer);
  call->answer.lost |= lost;
  calls_.Settle(call);
  return Status::Ok();
}

Status ClientSession::Answered(const std::shared_ptr<KeepCall>& call,
                               const wire::Response& response, int64_t now_ms) {
  const HeldPtr& held = call->held;
  Kept kept;
  std::optional<wire::Terms> terms;
  if (response.error) {
    static_cast<Answer&>(kept) = AnswerOf(*response.error);
  } else {
    const Result<wire::KeepReply> reply = wire::DecodeKeepReply(response.result);
    if (!reply.ok()) return reply.status();
    kept.outcome = reply->status == TokenStatus::kOk ? Outcome::kOk : Outcome::kRefused;
    // To its owner a token that is lost stays lost.
    if (held->lost.load(std::memory_order_relaxed)) kept.outcome = Outcome::kRefused;
    if (!kept.ok()) kept.message = "the token has ended";
    kept.hold = Milliseconds(kept.ok() ? TimeMs(reply->hold_ms) : 0);
    terms = reply->terms;
  }
  if (held->state == Held::State::kHeld) {
    if (kept.outcome == Outcome::kRefused) {
      Lose(held, "", now_ms);
    } else if (kept.ok() && call->sent_ms < held->confirmed_ms) {
      ++stats_.kept;  // Answers may cross: a later keep has told what holds.
    } else if (kept.ok()) {
      ++stats_.kept;
      held_.Confirm(held.get(), call->sent_ms, static_cast<uint64_t>(kept.hold.count()), terms);
      held_.PlanNext(held.get(), call->sent_ms);
    } else {
      // An error says nothing of the token: the next keep comes a third of the hold from now.
      held_.PlanNext(held.get(), now_ms);
    }
  }
  if (!call->awaited()) return Status::Ok();
  call->answer = std::move(kept);
  calls_.Settle(call);
  return Status::Ok();
}

void ClientSession::RuleAnswered(const RuleCall& call, const wire::Response& response,
                                 int64_t now_ms) {
  const int64_t flow = call.flow_id;  // `call` may go with its entry.
  FlowRules seen;                     // None too if the server does not tell, or not clearly.
  if (!response.error) {
    Result<FlowRules> rules = ReadFlowRules(response.result, flow);
    if (rules.ok()) seen = *std::move(rules);
  }
  rules_.Learn(flow, std::move(seen), now_ms);
  rules_asked_.erase(flow);
  const auto waiting = await_rule_.extract(flow);
  if (waiting.empty()) return;
  for (const std::shared_ptr<AcquireCall>& acquire : waiting.mapped()) {
    if (acquire->awaited()) TryAgain(acquire, now_ms);
  }
}

}  // namespace nowcalls::client
