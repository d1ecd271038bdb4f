#include "sim/session_client.h"

#include <algorithm>
#include <utility>

#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

Value ValueOf(int64_t lane) { return IsKeyLane(lane) ? Value(KeyOfLane(lane)) : Value(); }

std::string Text(const Answer& answer) {
  return std::string(OutcomeName(answer.outcome)) + (answer.local ? " locally" : "") +
         (answer.message.empty() ? "" : ": " + answer.message);
}

}  // namespace

SessionClient::SessionClient(SessionIdentity identity, std::string host, const World& world,
                             uint64_t seed)
    : Caller(identity.name, world.tapped.network, std::move(host)),
      identity_(std::move(identity)),
      world_(world),
      prng_(seed),
      judge_(identity_.name, owner(), world.cancels_max, world.timeline, world.tapped.oracle),
      tap_(identity_.name, owner(), world.tapped, &judge_),
      saboteur_(world.sabotage, seed) {}

// --- The process. ---

void SessionClient::Start() {
  Say("starts");
  judge_.Begin(identity_.fallback, identity_.shares);
  closing_ = false;
  session_.emplace(ClientOptions{.addresses = {"server:1"},
                                 .name_space = identity_.name_space,
                                 .client_id = identity_.client_id,
                                 .exclusive = identity_.exclusive,
                                 .timeout = Milliseconds(identity_.timeout_ms),
                                 .fallback = identity_.fallback,
                                 .local_levels = identity_.shares},
                   Prng(prng_.Next()), now_ms());
  Pump();
}

void SessionClient::Kill() {
  Say("is killed");
  orphans_.clear();
  for (const client::HeldPtr& held : permits_) {
    if (!held->grant.local && !held->lost.load()) orphans_.push_back(held->grant);
  }
  permits_.clear();
  judge_.Begin(Fallback::kFail, {});
  session_.reset();
  Hangup(/*politely=*/false);
}

void SessionClient::Close() {
  if (closing_) return;
  Say("closes");
  closing_ = true;
  session_->Close(now_ms());
  Pump();
}

size_t SessionClient::unanswered() const {
  if (!session_) return 0;
  return session_->stats().calls + (session_->settled() ? 0 : 1);
}

// --- The program. ---

void SessionClient::Acquire(const Wish& wish) {
  auto call = std::make_shared<client::AcquireCall>();
  call->all = wish.lanes.size() > 1;
  for (const int64_t lane : wish.lanes) {
    call->demands.push_back({.flow = FlowId(FlowOfLane(lane)),
                             .count = static_cast<uint32_t>(wish.count),
                             .param = ValueOf(lane)});
  }
  if (wish.wait_ms) call->options.wait = Milliseconds(*wish.wait_ms);
  if (wish.timeout_ms) call->options.timeout = Milliseconds(*wish.timeout_ms);
  call->options.prioritized = wish.prioritized;
  call->options.hold = Milliseconds(wish.hold_ms);
  call->options.keep = wish.keep;
  auto number = std::make_shared<CallNumber>(0);
  call->tell = [this, wish, number](const Answer& answer,
                                    const std::vector<client::HeldPtr>& held) {
    AcquireTold(*number, wish, answer, held);
  };
  session_->Acquire(call, now_ms());
  const int64_t timeout_ms = wish.timeout_ms.value_or(identity_.timeout_ms);
  const int64_t due_ms = now_ms() + timeout_ms + wish.wait_ms.value_or(0);
  *number = judge_.AcquireAsked(due_ms, call->request_id);
  Say("wants flow " + std::to_string(wish.lanes.front()) + " by request id " +
      std::to_string(call->request_id) + " until " + std::to_string(due_ms) + " ms");
  Pump();
}

void SessionClient::AcquireTold(CallNumber number, const Wish& wish, const Answer& answer,
                                const std::vector<client::HeldPtr>& held) {
  Say("is told of flow " + std::to_string(wish.lanes.front()) + ": " + Text(answer));
  judge_.AcquireTold(number, answer, held, wish.keep);
  permits_.insert(permits_.end(), held.begin(), held.end());
  if (releases_all_) ReleaseAll();
}

void SessionClient::Request(int64_t flow, const std::vector<int64_t>& lanes, int64_t count,
                            bool prioritized) {
  auto call = std::make_shared<client::RateCall>();
  call->flow = FlowId(flow);
  call->by_value = !lanes.empty();
  for (const int64_t lane : lanes) call->values.push_back(ValueOf(lane));
  call->options = {.count = static_cast<uint32_t>(count), .prioritized = prioritized};
  const CallNumber number = judge_.Asked(now_ms() + identity_.timeout_ms);
  call->tell = [this, number](const Passed& passed) {
    Say("may call? " + Text(passed));
    judge_.Told(number);
  };
  session_->Request(call, now_ms());
  Pump();
}

void SessionClient::Release(size_t permit) {
  const client::HeldPtr held = permits_[permit];
  permits_.erase(permits_.begin() + static_cast<ptrdiff_t>(permit));
  ReleaseHeld(held);
  Pump();
}

void SessionClient::ReleaseHeld(const client::HeldPtr& held) {
  if (held->grant.local) {
    judge_.LocalReleased(
        held->grant, std::holds_alternative<std::string>(held->param)
                         ? LaneOfText(held->grant.flow.value, std::get<std::string>(held->param))
                         : held->grant.flow.value);
  } else {
    judge_.ReleaseAsked(held);
  }
  const CallNumber number = judge_.Asked(now_ms() + identity_.timeout_ms);
  session_->Release(
      held, CallOutcome::kOk,
      [this, number](const Released& released) {
        Say("is told of a release: " + Text(released));
        judge_.Told(number);
      },
      now_ms());
}

void SessionClient::Keep(size_t permit) {
  const CallNumber number = judge_.Asked(now_ms() + identity_.timeout_ms);
  session_->Keep(
      permits_[permit],
      [this, number](const Kept& kept) {
        Say("is told of a keep: " + Text(kept));
        judge_.Told(number);
      },
      now_ms());
  Pump();
}

void SessionClient::Adopt(const Grant& grant) {
  const Grant named{.flow = grant.flow, .token = grant.token};
  permits_.push_back(session_->Adopt(named, KeepMode::kAlways, now_ms()));
  judge_.Adopted(permits_.back(), KeepMode::kAlways);
  Pump();
}

void SessionClient::ReleaseAll() {
  releases_all_ = true;
  for (const client::HeldPtr& held : std::exchange(permits_, {})) ReleaseHeld(held);
  Pump();
}

// --- The loop. ---

void SessionClient::Pump() {
  if (pumping_ || !session_) return;
  pumping_ = true;
  const Status ticked = session_->Tick(now_ms());
  if (!ticked.ok()) HangupFor(ticked);
  Dial();
  Flush();
  while (session_->has_events()) {
    Tell();
    Flush();
  }
  pumping_ = false;
  judge_.Check(closing_);
  if (closing_ && session_->settled()) {
    Say("ends");
    permits_.clear();
    judge_.Begin(Fallback::kFail, {});
    session_.reset();
    return Hangup(/*politely=*/prng_.Below(2) == 0);
  }
  const int64_t at_ms = session_->Wakeup();
  if (at_ms <= now_ms()) {
    return world_.tapped.oracle->Violation("C7 " + name() +
                                           " has nothing to do and does not sleep");
  }
  WakeAt(at_ms);
}

void SessionClient::Dial() {
  if (connected() || now_ms() < session_->dialing().at_ms()) return;
  Connect(/*steady=*/false);
  tap_.Connected(link());
  input_.clear();
  splitter_ = wire::MessageSplitter(kReplyBytesMax);
  session_->dialing().Begin();
  dialled_ = !network()->link(link()).gone;  // Nobody listens.
  if (dialled_) session_->Connected(now_ms());
}

void SessionClient::Flush() {
  if (!dialled_ || !may_send()) return;
  const std::string output(session_->output()->view());
  session_->output()->Clear();
  wire::MessageSplitter splitter;
  std::string replies;
  std::string_view left = output;
  for (size_t size = 0; !left.empty(); left.remove_prefix(size)) {
    if (splitter.Next(left, &size) != wire::MessageSplitter::Outcome::kMessage) {
      return Misunderstood("a message that is cut off");
    }
    const std::string_view message = left.substr(0, size);
    if (saboteur_.Swallows(message, &replies)) continue;
    tap_.Sent(message);
    Send(message);
  }
  if (!replies.empty()) static_cast<void>(session_->Received(replies, now_ms()));
}

void SessionClient::Tell() {
  client::ClientSession::Events events = session_->TakeEvents();
  for (const auto& [level, line] : events.lines) Say(line);
  for (const client::CallPtr& call : events.finished) {
    if (!saboteur_.Forgets()) call->Notify();
  }
}

void SessionClient::WakeAt(int64_t at_ms) {
  if (at_ms == INT64_MAX || at_ms >= wakes_ms_) return;
  wakes_ms_ = at_ms;
  world_.timeline->At(at_ms * kMs, [this, at_ms] {
    if (wakes_ms_ != at_ms) return;
    wakes_ms_ = INT64_MAX;
    Pump();
  });
}

void SessionClient::HangupFor(const Status& reason) {
  Say("hangs up: " + reason.message());
  why_down_ = reason.message();
  Hangup(/*politely=*/false);
  why_down_ = "the connection broke";
}

// --- The connection. ---

void SessionClient::Received(std::string_view bytes) {
  if (!session_) return;
  input_ += bytes;
  size_t size = 0;
  std::string_view left = input_;
  std::string heard;
  while (!left.empty() && splitter_.Next(left, &size) == wire::MessageSplitter::Outcome::kMessage) {
    const std::string_view message = left.substr(0, size);
    tap_.Heard(message);
    if (saboteur_.Hears(message)) heard += message;
    left.remove_prefix(size);
  }
  input_.erase(0, input_.size() - left.size());
  const Status status = session_->Received(saboteur_.hears_all() ? bytes : heard, now_ms());
  if (status.code() == StatusCode::kCorruption) Misunderstood(status.message());
  if (!status.ok()) HangupFor(status);
  Pump();
}

void SessionClient::Disconnected() {
  tap_.Down();
  if (!session_) return;
  if (std::exchange(dialled_, false)) {
    session_->Disconnected(why_down_, now_ms());
  } else {
    session_->DialFailed("connection refused", now_ms());
  }
  Pump();
}

void SessionClient::Misunderstood(const std::string& what) {
  world_.tapped.oracle->Violation("I3 " + name() + " was sent what it did not ask for: " + what);
}

}  // namespace nowcalls::sim
