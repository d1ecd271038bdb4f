// ClientSession: its requests, and their ends without an answer. session_answers.cc has answers.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/limits.h"
#include "client/answers.h"
#include "client/session.h"
#include "client/timeouts.h"
#include "nowcalls/flow_name.h"

namespace nowcalls::client {
namespace {

constexpr size_t kRulesAskedMax = 64;
constexpr size_t kCallsMax = 100'000;  // In progress.

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

void SetWait(Call* call, Milliseconds wait) {
  if (call->kind == Call::Kind::kRate) {
    static_cast<RateCall*>(call)->answer.wait = wait;
  } else {
    static_cast<AcquireCall*>(call)->wait = wait;
  }
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
  const bool is_none = flow_id < 1 && NameOfFlow(FlowId(flow_id)).empty();
  if (asked || is_none || rules_asked_.size() >= kRulesAskedMax) return;
  auto call = std::make_shared<RuleCall>(flow_id);
  rules_asked_[flow_id] = call;
  Ask(call, now_ms);
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
