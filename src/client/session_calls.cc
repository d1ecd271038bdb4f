// ClientSession: its requests and their answers. session.cc has connections, time and tokens.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/limits.h"
#include "client/answers.h"
#include "client/session.h"
#include "client/timeouts.h"

namespace nowcalls::client {
namespace {

constexpr size_t kRulesAskedMax = 64;
constexpr size_t kCallsMax = 100'000;        // In progress.
constexpr uint64_t kTokenIdMax = INT64_MAX;  // As the protocol has it.

Answer TooManyCalls() {
  return UnavailableOf("not asked: more than " + std::to_string(kCallsMax) + " calls in progress");
}

std::string WrongValue(const Value& value) {
  const auto* real = std::get_if<double>(&value);
  if (real != nullptr && std::isnan(*real)) return "a parameter must not be NaN";
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && text->size() > kParamBytesMax) {
    return "a parameter has at most " + std::to_string(kParamBytesMax) + " bytes, this one has " +
           std::to_string(text->size());
  }
  return {};
}

std::string WrongCount(uint32_t count) {
  if (count >= 1 && count <= INT32_MAX) return {};
  return "count must be 1 to 2147483647, not " + std::to_string(count);
}

// The fault in an acquire's arguments; empty: none.
std::string WrongAcquire(const AcquireCall& call) {
  if (call.demands.empty() || call.demands.size() > kAcquireAllMax) {
    return "acquire of " + std::to_string(call.demands.size()) + " flows; 1 to " +
           std::to_string(kAcquireAllMax) + " are allowed";
  }
  for (const FlowDemand& demand : call.demands) {
    std::string wrong = WrongCount(demand.count);
    if (wrong.empty()) wrong = WrongValue(demand.param);
    if (!wrong.empty()) return wrong;
  }
  const AcquireOptions& options = call.options;
  if (options.wait && (options.wait->count() < 0 || options.wait->count() > kWaitMsMax)) {
    return "wait must be 0 to " + std::to_string(kWaitMsMax) + " ms";
  }
  if (options.hold.count() < 0) return "hold must not be negative";
  return {};
}

int64_t TimeoutMs(const std::optional<Milliseconds>& own, Milliseconds otherwise) {
  return std::clamp(own.value_or(otherwise), kTimeoutMin, kTimeoutMax).count();
}

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

void SetWait(Call* call, Milliseconds wait) {
  if (call->kind == Call::Kind::kRate) {
    static_cast<RateCall*>(call)->answer.wait = wait;
  } else {
    static_cast<AcquireCall*>(call)->wait = wait;
  }
}

// Of the first demand for the flow that refused.
const Value& ParamOfRefused(const AcquireCall& call) {
  const auto demand =
      std::find_if(call.demands.begin(), call.demands.end(),
                   [&](const FlowDemand& d) { return d.flow == call.refusal->flow; });
  return demand == call.demands.end() ? call.demands.front().param : demand->param;
}

}  // namespace

// Asking.

void ClientSession::Acquire(const std::shared_ptr<AcquireCall>& call, int64_t now_ms) {
  // 1 .. 2^63-1, the same for every attempt.
  do {
    call->request_id = prng_.Next() >> 1;
  } while (call->request_id == 0);
  call->begun_ms = now_ms;
  const int64_t wait_ms = call->options.wait ? call->options.wait->count() : 0;
  const int64_t own_ms = TimeoutMs(call->options.timeout, options_.timeout);
  std::string wrong = WrongAcquire(*call);
  // Begin before any failure: Fail settles only calls that have begun.
  calls_.Begin(call, now_ms + own_ms + std::clamp<int64_t>(wait_ms, 0, kWaitMsMax));
  if (!wrong.empty()) return Fail(call, BadRequestOf(std::move(wrong)), now_ms);
  if (calls_.unsettled() > kCallsMax) return Fail(call, TooManyCalls(), now_ms);
  // Without a token no request id protects a repetition from being counted twice.
  call->counts_anew = std::all_of(call->demands.begin(), call->demands.end(),
                                  [](const FlowDemand& demand) { return demand.rate; });
  // A fallback needs the rule while no server can be asked for it.
  if (options_.fallback == Fallback::kByRule || options_.fallback == Fallback::kLocal) {
    for (const FlowDemand& demand : call->demands) {
      AskRule(demand.flow.value, now_ms);
    }
  }
  Ask(call, now_ms);
}

void ClientSession::Request(const std::shared_ptr<RateCall>& call, int64_t now_ms) {
  calls_.Begin(call, now_ms + TimeoutMs(call->options.timeout, options_.timeout));
  std::string wrong = WrongCount(call->options.count);
  for (const Value& value : call->values) {
    if (!wrong.empty()) break;
    wrong = value.index() == 0 ? "a value is missing" : WrongValue(value);
  }
  if (wrong.empty() && call->by_value && call->values.empty()) wrong = "there are no values";
  if (call->values.size() > kElementsMax) wrong = "more than 1024 values";
  if (!wrong.empty()) return Fail(call, BadRequestOf(std::move(wrong)), now_ms);
  if (calls_.unsettled() > kCallsMax) return Fail(call, TooManyCalls(), now_ms);
  if (local_.active()) AskRule(call->flow.value, now_ms);
  Ask(call, now_ms);
}

void ClientSession::Release(const HeldPtr& held, CallOutcome outcome, ReleaseCall::Done done,
                            int64_t now_ms, bool blocks) {
  if (held->state == Held::State::kHeld && held->IsLost(now_ms)) {
    Lose(held, held->LostReason(), now_ms, Held::State::kLapsed);
  }
  auto call = std::make_shared<ReleaseCall>();
  call->blocks = blocks;
  call->held = held;
  call->outcome = outcome;
  call->tell = std::move(done);
  calls_.Begin(call, now_ms + options_.timeout.count());
  call->answer.lost = held->lost.load(std::memory_order_relaxed);
  // A lapsed token is released too. Ended and local ones need no server.
  const bool has_token = held->state == Held::State::kHeld || held->state == Held::State::kLapsed;
  if (!has_token || held->grant.local) {
    call->answer.outcome = Outcome::kOk;
    call->answer.local = held->grant.local;
    if (held->grant.local) local_.Leave(*held);
    // One that its rule has ended is being released by the session.
    if (held->state != Held::State::kReleasing) held->state = Held::State::kEnded;
    calls_.Settle(call);
    return;
  }
  held->state = Held::State::kReleasing;
  if (held_.Remove(held.get())) local_.Leave(*held);
  Ask(call, now_ms);
  // Behind the release: an attempt that arrives only then would be granted anew.
  if (const auto stray = held->TakeStray()) Ask(std::make_shared<CancelCall>(*stray), now_ms);
}

void ClientSession::Keep(const HeldPtr& held, KeepCall::Done done, int64_t now_ms, bool blocks) {
  auto call = std::make_shared<KeepCall>();
  call->blocks = blocks;
  call->held = held;
  call->tell = std::move(done);
  calls_.Begin(call, now_ms + options_.timeout.count());
  if (held->state == Held::State::kHeld && held->IsLost(now_ms)) {
    Lose(held, held->LostReason(), now_ms, Held::State::kLapsed);
  }
  if (held->state == Held::State::kHeld && !held->grant.local) return Ask(call, now_ms);
  call->answer.outcome = held->grant.local ? Outcome::kOk : Outcome::kRefused;
  call->answer.local = held->grant.local;
  if (!held->grant.local) call->answer.message = "the token has ended";
  calls_.Settle(call);
}

void ClientSession::Close(int64_t now_ms) {
  closing_ = true;
  for (const CallPtr& call : calls_.Unsettled()) {
    if (!call->persistent()) GiveUp(call, "the client was closed", now_ms);
  }
}

void ClientSession::Abandon(const std::string& reason, int64_t now_ms) {
  abandoned_ = reason;
  if (state_ != State::kOffline) Disconnected(reason, now_ms);
  why_offline_ = reason;
  for (const CallPtr& call : calls_.Unsettled()) Fail(call, NoAnswerOf(*call, reason), now_ms);
  calls_.TakeInFlight();
  calls_.TakeQueue();
}

// Asks now, or on the next connection.
void ClientSession::Ask(const CallPtr& call, int64_t now_ms) {
  const bool wants_room = call->kind == Call::Kind::kAcquire || call->kind == Call::Kind::kRate;
  if (closing_ && wants_room) return Fail(call, BadRequestOf("the client is closed"), now_ms);
  if (abandoned_) return Fail(call, NoAnswerOf(*call, *abandoned_), now_ms);
  if (closing_ && !call->persistent()) {
    return Fail(call, NoAnswerOf(*call, "the client is closed"), now_ms);
  }
  if (ready()) return Send(call, now_ms);
  if (denied_ && wants_room) return Fail(call, *denied_, now_ms);
  // No server after a row of dials: fall back at once, unless the call may wait for room.
  if (down_ && !greeting_.shows_secret() && local_.active() && wants_room &&
      !call->MayWait(now_ms)) {
    return Fail(call, NoAnswerOf(*call, why_offline_), now_ms);
  }
  calls_.Queue(call);
}

void ClientSession::Send(const CallPtr& call, int64_t now_ms) {
  if (!greeting_.asks_for_more() && call->kind == Call::Kind::kRelease) {
    static_cast<ReleaseCall&>(*call).outcome = CallOutcome::kOk;  // It would be refused.
  }
  const Result<uint32_t> msgid = exchange_->Request(
      [&](uint32_t id, wire::OutputBuffer* out) { call->Encode(id, now_ms, out); });
  if (!msgid.ok()) return Fail(call, BadRequestOf(msgid.status().message()), now_ms);
  calls_.Sent(*msgid, call);
  ++call->attempts;
  call->unsettled = true;
  call->sent_ms = now_ms;
}

// Skips a rule that is fresh or asked for, and all beyond kRulesAskedMax open questions.
void ClientSession::AskRule(int64_t flow_id, int64_t now_ms) {
  const bool asked = rules_asked_.contains(flow_id) || !rules_.IsStale(flow_id, now_ms);
  if (asked || flow_id < 1 || rules_asked_.size() >= kRulesAskedMax) return;
  auto call = std::make_shared<RuleCall>(flow_id);
  rules_asked_[flow_id] = call;
  Ask(call, now_ms);
}

// Answers.

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
    Answer refusal = RefusalOf(FlowId(reply->flow_id), reply->status, reply->refused_by,
                               reply->now_calls, reply->level);
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
// doubles from 10 to 640 ms. A rule that is not fresh is asked for first.
void ClientSession::TryAgain(const std::shared_ptr<AcquireCall>& call, int64_t now_ms) {
  constexpr int64_t kPauseMs = 10;
  constexpr uint32_t kDoublingsMax = 6;
  const int64_t flow = call->refusal->flow.value;
  AskRule(flow, now_ms);
  if (rules_asked_.contains(flow)) {
    await_rule_[flow].push_back(call);
    return;
  }
  const RuleView* const rule = rules_.Find(FlowId{flow}, ParamOfRefused(*call));
  const auto strategy = rule == nullptr ? RuleView::Refused::kFail : rule->acquire_refuse;
  const bool once = strategy == RuleView::Refused::kOnceMore && call->refusals == 0;
  const int64_t pause_ms = prng_.Between(1, kPauseMs << std::min(call->refusals, kDoublingsMax));
  const bool in_time = now_ms + pause_ms < call->deadline_ms;
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

// No answer.

void ClientSession::GiveUp(const CallPtr& call, const std::string& reason, int64_t now_ms) {
  if (!call->awaited()) return;
  Answer failure = NoAnswerOf(*call, reason);
  const bool was_sent = call->unsettled;
  if (!call->persistent()) calls_.Dequeue(*call);
  // A sent acquire counts as strayed, so that Fail cancels it. An unsent one may have a refusal.
  if (call->kind == Call::Kind::kAcquire) {
    auto& acquire = static_cast<AcquireCall&>(*call);
    if (was_sent) {
      ++stats_.cancelled;
      acquire.strayed = true;
    } else if (acquire.refusal) {
      failure = *acquire.refusal;
    }
  }
  Fail(call, std::move(failure), now_ms);
  // Nothing came since the request was sent: ask for a sign of life.
  const bool silent = was_sent && contact_.heard_ms() <= call->sent_ms;
  if (ready() && silent && !contact_.probes()) {
    contact_.Pinged(now_ms);
    Send(std::make_shared<PingCall>(), now_ms);
  }
}

// Settles a call without an answer, or with an error or a refusal. The fallback decides acquires
// and rates that no server decided or the whole server refused, unless the session is ending.
void ClientSession::Fail(const CallPtr& call, Answer failure, int64_t now_ms, TokenStatus status) {
  if (!call->awaited()) return;
  if (call->tell_ms != 0) {  // Its answer is known, but the caller cannot sleep any more.
    SetWait(call.get(), Milliseconds(std::max<int64_t>(0, call->tell_ms - now_ms)));
    calls_.Settle(call);
    return;
  }
  const bool unasked =
      failure.outcome == Outcome::kUnavailable || failure.outcome == Outcome::kUnknown;
  const bool full = status == TokenStatus::kTooManyRequest || status == TokenStatus::kFail;
  const bool falls_back = (unasked || full) && local_.active() && !closing_ && !abandoned_ &&
                          !denied_ && !greeting_.shows_secret();
  switch (call->kind) {
    case Call::Kind::kAcquire: {
      const auto acquire = std::static_pointer_cast<AcquireCall>(call);
      // A grant that came late was asked again, and its token is there.
      if (acquire->strayed || acquire->came_late)
        Ask(std::make_shared<CancelCall>(acquire->request_id), now_ms);
      if (!falls_back || !local_.Decide(acquire.get(), stats_.sessions_online, now_ms)) {
        acquire->answer = std::move(failure);
      }
      break;
    }
    case Call::Kind::kRate: {
      const auto rate = std::static_pointer_cast<RateCall>(call);
      if (!falls_back || !local_.Decide(rate.get(), stats_.sessions_online, now_ms)) {
        static_cast<Answer&>(rate->answer) = std::move(failure);
      }
      break;
    }
    case Call::Kind::kRelease:
      static_cast<Answer&>(static_cast<ReleaseCall&>(*call).answer) = std::move(failure);
      break;
    case Call::Kind::kKeep:
      static_cast<Answer&>(static_cast<KeepCall&>(*call).answer) = std::move(failure);
      break;
    case Call::Kind::kCancel:
    case Call::Kind::kPing:
    case Call::Kind::kRule: break;  // They have no caller.
  }
  calls_.Settle(call);
}

}  // namespace nowcalls::client
