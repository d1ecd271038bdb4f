// ClientSession: connections, time and tokens. session_calls.cc has requests, session_answers.cc
// their answers.
//
// Happy path: Connected shows the secret, if there is one, and sends hello behind it. The answer to
// hello makes the session ready, and sends keeps and the queue. Received settles calls in flight;
// Tick does what is due.
//
// Failure modes:
//   a dial fails           next address; after a failed row, calls without a wait fall back
//   hello is refused       calls wait for the next address, or end if the client is at fault
//   it is not let in       all calls end, without a fallback, until a server accepts hello
//   a secret is unanswered no call falls back: a wrong secret is answered late
//   the connection breaks  repeatable calls go back to the queue, others are kUnknown or fall back
//   the server is silent   a ping; without an answer in time the owner disconnects
//   no contact for long    tokens lapse by this process's clock (validity.h)
#include "client/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "client/answers.h"

namespace nowcalls::client {
namespace {

// What a server says, which may send the secret back: no log and no answer shows it.
void Mask(const std::string& secret, std::string* said) {
  constexpr std::string_view kMask = "...";
  if (secret.empty()) return;
  for (size_t at = 0; (at = said->find(secret, at)) != std::string::npos; at += kMask.size()) {
    said->replace(at, secret.size(), kMask);
  }
}

CallPtr KeepOf(const HeldPtr& held) {
  auto call = std::make_shared<KeepCall>();
  call->held = held;
  return call;
}

}  // namespace

// For the log: why a token is lost, and what to do about it.
std::string LostText(const Held& held, const std::string& reason) {
  const bool by_rule =
      held.keep == KeepMode::kByRule && held.strategy() == Held::TimedOut::kServerTakes;
  if (reason != "resource_timeout" || !by_rule) return reason.empty() ? "it has ended" : reason;
  return "its call took longer than the " + std::to_string(held.hold_ms) +
         " ms that its rule holds a token (resourceTimeoutStrategy 0); set "
         "resourceTimeoutStrategy 2 in the rule, or ask to keep it always";
}

ClientSession::ClientSession(ClientOptions options, Prng prng, int64_t now_ms, uint64_t instance)
    : options_(std::move(options)),
      prng_(prng),
      dialing_(options_.addresses, now_ms),
      local_(options_.fallback, options_.local_levels, &rules_),
      greeting_(&options_, instance) {
  stats_.client_id = options_.client_id;
}

// The connection.

void ClientSession::DialFailed(const std::string& reason, int64_t now_ms) {
  why_offline_ = dialing_.address() + ": " + reason;
  dialing_.Failed(now_ms, &prng_);
  if (!dialing_.all_failed() || closing_) return;
  // One warning until a server answers hello again. Deny has said more.
  if (!down_ && !denied_)
    lines_.emplace_back(LogLevel::kWarning, "no server is reached: " + why_offline_);
  down_ = true;
  if (!local_.active()) return;
  // Calls fall back before their timeout. Acquires that may wait for room stay: a restart of the
  // server must not admit the whole line.
  for (const CallPtr& call : calls_.Unsettled()) {
    const bool falls_back = call->kind == Call::Kind::kAcquire || call->kind == Call::Kind::kRate;
    if (falls_back && call->tell_ms == 0 && !call->MayWait(now_ms)) {
      GiveUp(call, why_offline_, now_ms);
    }
  }
}

void ClientSession::Connected(int64_t now_ms) {
  state_ = State::kGreeting;
  exchange_.emplace();
  useful_ = false;
  contact_.Begin(now_ms);
  why_offline_ = dialing_.address() + ": " + DoubtOfPeer("no answer to hello yet");
  greeting_.Begin(&*exchange_, now_ms);
}

void ClientSession::Disconnected(const std::string& reason, int64_t now_ms) {
  const bool was_ready = ready();
  state_ = State::kOffline;
  exchange_.reset();
  greeting_.End();
  for (const CallPtr& call : calls_.TakeInFlight()) {
    // The request may still reach the server, even behind its repetition.
    call->strayed = true;
    const bool wanted = call->persistent() || (call->repeatable() && !call->done);
    if (wanted) {
      ++stats_.asked_again;
      calls_.Queue(call);
    } else {
      Fail(call, NoAnswerOf(*call, reason), now_ms);
    }
  }
  // An end before hello is answered counts as a failed dial.
  if (!was_ready) return DialFailed(reason, now_ms);
  ++stats_.disconnects;
  why_offline_ = dialing_.address() + ": " + reason;
  lines_.emplace_back(LogLevel::kInfo, "the connection to " + why_offline_);
  if (useful_) {
    dialing_.Ended(now_ms, &prng_);
  } else {  // A server that takes connections and ends them at once gets longer pauses, too.
    dialing_.Failed(now_ms, &prng_);
  }
}

Status ClientSession::Received(std::string_view bytes, int64_t now_ms) {
  LookAfterAll(now_ms);                 // What comes late brings no token back.
  if (ready()) contact_.Heard(now_ms);  // Until then only an answer to hello counts.
  exchange_->Receive(bytes);
  for (;;) {
    Result<std::optional<wire::Response>> response = exchange_->TakeResponse();
    // Notices precede the answer on the wire, so they come first here, too.
    for (const wire::LostNotice& notice : exchange_->TakeLost()) {
      const HeldPtr held = held_.Find(notice.token_id);
      if (held != nullptr) Lose(held, notice.reason, now_ms);
    }
    if (!response.ok()) {
      return response.status().WithContext("the peer does not speak nowcalls");
    }
    if (!response->has_value()) return Status::Ok();
    if ((*response)->error) Mask(options_.secret, &(*response)->error->message);
    if ((*response)->error && (*response)->error->code == wire::ErrorCode::kMalformed) {
      // The server saw only a part of a message in time, and carried nothing of it out.
      return Status::Unavailable((*response)->error->message);
    }
    if (greeting_.Awaits((*response)->msgid)) {
      NOWCALLS_RETURN_IF_ERROR(GreetingAnswered(**response, now_ms));
      continue;
    }
    const CallPtr call = calls_.TakeAnswered((*response)->msgid);
    if (call == nullptr) continue;
    // Any answer confirms the session as of the moment its request was sent.
    call->unsettled = false;
    held_.InContact(call->sent_ms);
    Status understood = Answered(call, **response, now_ms);
    if (!understood.ok()) {  // As if no answer had come: the next connection asks again.
      call->unsettled = true;
      calls_.Sent((*response)->msgid, call);
      return understood;
    }
    useful_ = true;
  }
}

// No fallback may let a call pass since its caller is refused.
void ClientSession::Deny(Answer denial, int64_t now_ms) {
  denial.message = dialing_.address() + ": " + denial.message;
  if (!denied_) {
    lines_.emplace_back(LogLevel::kWarning,
                        "not let in, so all calls end at once: " + denial.message);
  }
  denied_ = std::move(denial);
  EndQueue(*denied_, now_ms);
}

void ClientSession::EndQueue(const Answer& failure, int64_t now_ms) {
  for (const CallPtr& call : calls_.TakeQueue()) {
    if (call->persistent() || call->kind == Call::Kind::kRule) {
      calls_.Queue(call);
    } else {
      Fail(call, failure, now_ms);
    }
  }
}

Status ClientSession::GreetingAnswered(const wire::Response& response, int64_t now_ms) {
  const Result<Greeting::Step> step = greeting_.Take(response, &*exchange_, now_ms);
  if (!step.ok()) return step.status();
  if (*step == Greeting::Step::kGoesOn) return Status::Ok();
  if (*step == Greeting::Step::kRefused) {
    // The owner disconnects and tries the next address. Asking again would not help calls that wait
    // now, if the client is at fault.
    const Answer& refusal = greeting_.refusal();
    if (refusal.outcome == Outcome::kBadRequest) EndQueue(refusal, now_ms);
    if (refusal.outcome == Outcome::kPermissionDenied) Deny(refusal, now_ms);
    return Status::Unavailable(refusal.message);
  }
  const wire::HelloReply& reply = greeting_.reply();
  // Accepted: the server counts absence anew, at the earliest from the sending of hello.
  state_ = State::kReady;
  contact_.Heard(now_ms);
  down_ = false;
  denied_.reset();
  held_.InContact(greeting_.hello_ms());
  ++stats_.connects;
  stats_.sessions_online = reply.sessions_online;
  lines_.emplace_back(LogLevel::kInfo,
                      "connected to " + dialing_.address() +
                          (greeting_.identity().empty() ? "" : " as " + greeting_.identity()) +
                          ", session " + std::to_string(reply.session) + ", " +
                          std::to_string(reply.resumed_tokens) + " tokens");
  // Tokens first. A keep asks whether a token is still there. If some have ended, all are asked
  // for, except under KeepMode::kOff. None resumed: all are lost.
  const bool fewer = reply.resumed_tokens < held_.size();
  for (const HeldPtr& held : held_.All()) {
    if (reply.resumed_tokens == 0) {
      Lose(held, "", now_ms);
    } else if (held->IsKept() || (fewer && held->keep != KeepMode::kOff)) {
      held_.PlanEnd(held.get());
      Send(KeepOf(held), now_ms);
    }
  }
  // Then the queue, in the order in which calls were asked.
  for (const CallPtr& call : calls_.TakeQueue()) Send(call, now_ms);
  return Status::Ok();
}

// Time.

Status ClientSession::Tick(int64_t now_ms) {
  // 1. Calls past their deadline end.
  while (const CallPtr call = calls_.NextOverdue(now_ms)) {
    GiveUp(call, ready() ? "the server did not answer in time" : why_offline_, now_ms);
  }
  // 2. Known answers whose pause is over are told; refused acquires are asked again.
  while (!later_.empty() && later_.begin()->first <= now_ms) {
    const CallPtr call = later_.begin()->second;
    later_.erase(later_.begin());
    if (!call->awaited()) continue;
    if (call->tell_ms != 0) {
      calls_.Settle(call);
    } else {
      Ask(call, now_ms);
    }
  }
  // 3. Tokens: losses, keeps, releases by rule.
  LookAfterAll(now_ms);
  // 4. The connection: hello unanswered, silence behind a ping, a ping that is due.
  if (state_ == State::kGreeting && now_ms >= contact_.heard_ms() + greeting_.patience_ms()) {
    return Status::Unavailable(DoubtOfPeer("no answer to hello"));
  }
  if (!ready()) return Status::Ok();
  if (now_ms >= contact_.SilentAt(options_.timeout.count())) {
    return Status::Unavailable("the server is silent");
  }
  if (now_ms >= contact_.PingAt(held_.contact_ms(), held_.absence_ms())) {
    contact_.Pinged(now_ms);
    Send(std::make_shared<PingCall>(), now_ms);
  }
  return Status::Ok();
}

int64_t ClientSession::Wakeup() const {
  int64_t at = std::min(calls_.NextDeadline(), held_.NextDue());
  if (!later_.empty()) at = std::min(at, later_.begin()->first);
  switch (state_) {
    case State::kOffline: return std::min(at, dialing_.at_ms());
    case State::kGreeting: return std::min(at, contact_.heard_ms() + greeting_.patience_ms());
    case State::kReady: break;
  }
  return std::min({at, contact_.SilentAt(options_.timeout.count()),
                   contact_.PingAt(held_.contact_ms(), held_.absence_ms())});
}

ClientSession::Events ClientSession::TakeEvents() {
  return {.finished = calls_.TakeFinished(),
          .lost = std::exchange(lost_, {}),
          .lines = std::exchange(lines_, {})};
}

ClientStats ClientSession::stats() const {
  ClientStats stats = stats_;
  stats.connected = ready();
  stats.address = dialing_.address();
  if (!ready()) stats.why_offline = denied_ ? denied_->message : why_offline_;
  stats.held = held_.size();
  stats.calls = calls_.unsettled();
  stats.local_granted = local_.granted();
  stats.local_refused = local_.refused();
  stats.local_passed = local_.passed();
  return stats;
}

// Tokens.

HeldPtr ClientSession::Adopt(const Grant& grant, KeepMode keep, int64_t now_ms) {
  HeldPtr held = held_.Find(grant.token.value);
  // Hold and terms are unknown until a keep is answered: until then nothing bounds the token.
  if (held == nullptr) {
    held = std::make_shared<Held>();
    held->grant = grant;
    held->granted_ms = now_ms;
    held_.Add(held);
  }
  if (keep != KeepMode::kOff) {
    held->keep = keep;
    held_.Plan(held.get(), now_ms);
  }
  return held;
}

// Loses the tokens whose time is over, and does what is due for the others.
void ClientSession::LookAfterAll(int64_t now_ms) {
  for (const HeldPtr& held : held_.OutOfContact(now_ms)) {
    Lose(held, held->validity.reason(), now_ms, Held::State::kLapsed);
  }
  // Each is kept, if it is held for long, or ended as its time or its rule says.
  while (const HeldPtr held = held_.TakeDue(now_ms)) {
    if (held->IsLost(now_ms)) {
      Lose(held, held->LostReason(), now_ms, Held::State::kLapsed);
    } else if (now_ms >= held->EndByRule()) {
      Lose(held, "resource_timeout", now_ms, Held::State::kReleasing);
      auto call = std::make_shared<ReleaseCall>();
      call->held = held;
      call->outcome = CallOutcome::kTimeout;
      Ask(call, now_ms);
      if (const auto stray = held->TakeStray()) Ask(std::make_shared<CancelCall>(*stray), now_ms);
    } else {
      held_.PlanEnd(held.get());
      // PlanEnd stands until the keep is answered. Offline, the next hello is followed by keeps.
      if (ready() && held->IsKept()) Send(KeepOf(held), now_ms);
    }
  }
}

// `now` is kLapsed if the server has not ended the token: it may have it until a release. It is
// kReleasing if the session releases the token right after.
void ClientSession::Lose(const HeldPtr& held, const std::string& reason, int64_t now_ms,
                         Held::State now) {
  if (held_.Remove(held.get())) local_.Leave(*held);
  // A stray attempt would be granted anew. While a release is still to come, the cancel waits for
  // it.
  if (now == Held::State::kEnded) {
    if (const auto stray = held->TakeStray()) Ask(std::make_shared<CancelCall>(*stray), now_ms);
  }
  held->state = now;
  // The reason before the flag: other threads read it once they see `lost`.
  held->lost_reason = reason;
  held->lost.store(true, std::memory_order_release);
  ++stats_.lost;
  lost_.push_back(held);
  lines_.emplace_back(LogLevel::kWarning, "lost token " + std::to_string(held->grant.token.value) +
                                              " of flow " + std::to_string(held->grant.flow.value) +
                                              ": " + LostText(*held, reason));
}

}  // namespace nowcalls::client
