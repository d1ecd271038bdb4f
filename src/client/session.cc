#include "client/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "client/answers.h"

namespace nowcalls::client {
namespace {

constexpr int64_t kPingAfterMs = 10'000;  // Of silence.

CallPtr KeepOf(const HeldPtr& held) {
  auto call = std::make_shared<KeepCall>();
  call->held = held;
  return call;
}

}  // namespace

Session::Session(ClientOptions options, Prng prng, int64_t now_ms)
    : options_(std::move(options)),
      prng_(prng),
      dialing_(options_.addresses, now_ms),
      local_(options_.fallback, options_.local_levels, &rules_) {
  stats_.client_id = options_.client_id;
}

// The connection.

void Session::DialFailed(const std::string& reason, int64_t now_ms) {
  why_offline_ = dialing_.address() + ": " + reason;
  dialing_.Failed(now_ms, &prng_);
  if (!dialing_.all_failed() || down_ || closing_) return;
  down_ = true;
  lines_.emplace_back(LogLevel::kWarning, "no server is reached: " + why_offline_);
  if (!local_.active()) return;
  // Calls that wait need not wait for the end of their time.
  for (const CallPtr& call : calls_.Unsettled()) {
    const bool falls_back = call->kind == Call::Kind::kAcquire || call->kind == Call::Kind::kRate;
    if (falls_back) GiveUp(call, why_offline_, now_ms);
  }
}

void Session::Connected(int64_t now_ms) {
  state_ = State::kGreeting;
  exchange_.emplace();
  asks_for_lost_ = true;
  useful_ = false;
  heard_ms_ = now_ms;
  probed_ms_ = 0;
  Hello();
}

void Session::Hello() {
  const Result<uint32_t> msgid = exchange_->Request([this](uint32_t id, wire::OutputBuffer* out) {
    wire::EncodeHelloRequest(id,
                             {.name_space = options_.name_space,
                              .client_id = options_.client_id,
                              .lost = asks_for_lost_,
                              .exclusive = options_.exclusive},
                             out);
  });
  NOWCALLS_CHECK(msgid.ok());  // Names are short.
  hello_msgid_ = *msgid;
}

void Session::Disconnected(const std::string& reason, int64_t now_ms) {
  const bool was_ready = ready();
  state_ = State::kOffline;
  exchange_.reset();
  for (const CallPtr& call : calls_.TakeInFlight()) {
    call->strayed = true;
    const bool wanted = call->persistent() || (call->repeatable() && !call->done);
    if (wanted) {
      ++stats_.asked_again;
      calls_.Queue(call);
    } else {
      Fail(call, NoAnswerOf(*call, reason), now_ms);
    }
  }
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

Status Session::Received(std::string_view bytes, int64_t now_ms) {
  heard_ms_ = now_ms;
  probed_ms_ = 0;
  exchange_->Receive(bytes);
  for (;;) {
    const Result<std::optional<wire::Response>> response = exchange_->TakeResponse();
    for (const wire::LostNotice& notice : exchange_->TakeLost()) {
      const HeldPtr held = held_.Find(notice.token_id);
      if (held != nullptr) Lose(held, notice.reason, now_ms);
    }
    if (!response.ok()) {
      return response.status().WithContext("the peer does not speak nowcalls");
    }
    if (!response->has_value()) return Status::Ok();
    if ((*response)->error && (*response)->error->code == wire::ErrorCode::kMalformed) {
      // A part of a message was held back for too long. Nothing of it was carried out.
      return Status::Unavailable((*response)->error->message);
    }
    if ((*response)->msgid == hello_msgid_ && state_ == State::kGreeting) {
      NOWCALLS_RETURN_IF_ERROR(HelloAnswered(**response, now_ms));
      continue;
    }
    const CallPtr call = calls_.TakeAnswered((*response)->msgid);
    if (call == nullptr) continue;
    call->unsettled = false;
    Status understood = Answered(call, **response, now_ms);
    if (!understood.ok()) {  // As if no answer had come: the next connection asks again.
      call->unsettled = true;
      calls_.Sent((*response)->msgid, call);
      return understood;
    }
    useful_ = true;
  }
}

Status Session::HelloAnswered(const wire::Response& response, int64_t now_ms) {
  if (response.error) {
    if (response.error->code == wire::ErrorCode::kBadParams && asks_for_lost_ &&
        !options_.exclusive) {
      asks_for_lost_ = false;  // An older server.
      Hello();
      return Status::Ok();
    }
    const Answer refusal = AnswerOf(*response.error);
    // Calls that wait fail at once if the client itself is at fault.
    for (const CallPtr& call : calls_.TakeQueue()) {
      const bool waits = call->persistent() || call->kind == Call::Kind::kRule;
      if (waits || refusal.outcome != Outcome::kBadRequest) {
        calls_.Queue(call);
      } else {
        Fail(call, BadRequestOf("hello refused: " + refusal.message), now_ms);
      }
    }
    return Status::Unavailable("hello refused: " + refusal.message);
  }
  const Result<wire::HelloReply> reply = wire::DecodeHelloReply(response.result);
  if (!reply.ok()) return reply.status();
  state_ = State::kReady;
  down_ = false;
  ++stats_.connects;
  stats_.sessions_online = reply->sessions_online;
  lines_.emplace_back(LogLevel::kInfo, "connected to " + dialing_.address() + ", session " +
                                           std::to_string(reply->session) + ", " +
                                           std::to_string(reply->resumed_tokens) + " tokens");
  // A keep asks whether the token is still there.
  for (const HeldPtr& held : held_.All()) {
    if (reply->resumed_tokens == 0) {
      Lose(held, "", now_ms);
    } else if (held->keep != KeepMode::kOff) {
      Send(KeepOf(held), now_ms);
    }
  }
  for (const CallPtr& call : calls_.TakeQueue()) Send(call, now_ms);
  return Status::Ok();
}

// Asks for a sign of life. Any byte of the server counts as one.
void Session::Probe(int64_t now_ms) {
  if (probed_ms_ != 0) return;
  probed_ms_ = now_ms;
  Send(std::make_shared<PingCall>(), now_ms);
}

// Time.

Status Session::Tick(int64_t now_ms) {
  while (const CallPtr call = calls_.NextOverdue(now_ms)) {
    GiveUp(call, ready() ? "the server did not answer in time" : why_offline_, now_ms);
  }
  while (!later_.empty() && later_.begin()->first <= now_ms) {
    const std::shared_ptr<AcquireCall> call = later_.begin()->second;
    later_.erase(later_.begin());
    if (call->awaited()) Ask(call, now_ms);
  }
  if (state_ == State::kGreeting && now_ms >= heard_ms_ + options_.timeout.count()) {
    return Status::Unavailable("no answer to hello");
  }
  if (!ready()) return Status::Ok();
  if (probed_ms_ != 0 && now_ms >= probed_ms_ + options_.timeout.count()) {
    return Status::Unavailable("the server is silent");
  }
  if (now_ms >= heard_ms_ + kPingAfterMs) Probe(now_ms);
  while (const HeldPtr held = held_.TakeDue(now_ms)) LookAfter(held, now_ms);
  return Status::Ok();
}

int64_t Session::Wakeup() const {
  int64_t at = calls_.NextDeadline();
  if (!later_.empty()) at = std::min(at, later_.begin()->first);
  switch (state_) {
    case State::kOffline: return std::min(at, dialing_.at_ms());
    case State::kGreeting: return std::min(at, heard_ms_ + options_.timeout.count());
    case State::kReady: break;
  }
  const int64_t silent =
      probed_ms_ != 0 ? probed_ms_ + options_.timeout.count() : heard_ms_ + kPingAfterMs;
  return std::min({at, silent, held_.NextDue()});
}

Session::Events Session::TakeEvents() {
  return {.finished = calls_.TakeFinished(),
          .lost = std::exchange(lost_, {}),
          .lines = std::exchange(lines_, {})};
}

ClientStats Session::stats() const {
  ClientStats stats = stats_;
  stats.connected = ready();
  stats.address = dialing_.address();
  if (!ready()) stats.why_offline = why_offline_;
  stats.held = held_.size();
  stats.calls = calls_.unsettled();
  stats.local_granted = local_.granted();
  stats.local_refused = local_.refused();
  stats.local_passed = local_.passed();
  return stats;
}

// Tokens.

HeldPtr Session::Adopt(const Grant& grant, KeepMode keep, int64_t now_ms) {
  HeldPtr held = held_.Find(grant.token.value);
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

// Keeps a token that is held for long, or ends it as its rule says.
void Session::LookAfter(const HeldPtr& held, int64_t now_ms) {
  const int64_t flow = held->grant.flow.value;
  if (now_ms >=
      EndByRule(rules_.Find(held->grant.flow, held->param), held->keep, held->granted_ms)) {
    Lose(held, "resource_timeout", now_ms);
    auto call = std::make_shared<ReleaseCall>();
    call->held = held;
    return Ask(call, now_ms);
  }
  if (held->keep == KeepMode::kByRule) AskRule(flow, now_ms);
  Send(KeepOf(held), now_ms);
}

void Session::Lose(const HeldPtr& held, const std::string& reason, int64_t now_ms) {
  held_.Remove(held.get());
  if (const auto stray = held->TakeStray()) Cancel(*stray, now_ms);
  held->state = Held::State::kEnded;
  held->lost_reason = reason;
  held->lost.store(true, std::memory_order_release);
  ++stats_.lost;
  lost_.push_back(held);
  lines_.emplace_back(LogLevel::kWarning, "lost token " + std::to_string(held->grant.token.value) +
                                              " of flow " + std::to_string(held->grant.flow.value) +
                                              ": " + (reason.empty() ? "it has ended" : reason));
}

}  // namespace nowcalls::client
