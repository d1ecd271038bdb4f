#include "sim/session_tap.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "sim/lanes.h"

namespace nowcalls::sim {
void SessionTap::SayGranted(uint64_t request_id, uint64_t fence, uint64_t hold_ms) {
  Say("has fence " + std::to_string(fence) + " by request id " + std::to_string(request_id) +
      ", to hold " + std::to_string(hold_ms) + " ms");
}

void SessionTap::Misunderstood(const std::string& what) {
  world_.oracle->Violation("I3 " + name_ + " was sent what it did not ask for: " + what);
}

void SessionTap::Down() {
  asked_.clear();
  judge_->Down();
}

void SessionTap::Sent(std::string_view message) {
  wire::Envelope envelope;
  wire::RequestError error;
  if (!wire::DecodeEnvelope(message, &envelope, &error)) {
    return world_.oracle->Violation("C0 " + name_ + " sends no request: " + error.message);
  }
  Asked asked;
  switch (envelope.method) {
    case wire::Method::kHello: asked = Hello(envelope); break;
    case wire::Method::kAcquire: asked = Acquire(envelope); break;
    case wire::Method::kAcquireAll: asked = AcquireAll(envelope); break;
    case wire::Method::kCancel: asked = Cancel(envelope); break;
    case wire::Method::kRelease: asked = Release(envelope); break;
    case wire::Method::kKeep: asked = Keep(envelope); break;
    case wire::Method::kRequest: asked = Request(envelope); break;
    case wire::Method::kRequestParam: asked = RequestParam(envelope); break;
    default: break;
  }
  asked.sent_ms = world_.network->now_ms();
  asked_[envelope.msgid] = std::move(asked);
}

void SessionTap::Heard(std::string_view message) {
  if (wire::IsNotification(message)) {
    const auto notice = wire::DecodeNotification(message);
    if (!notice.ok()) return Misunderstood(notice.status().message());
    if (!notice->has_value()) return;
    Say("has lost a token of flow " + std::to_string((*notice)->flow_id) + ": " +
        (*notice)->reason);
    judge_->LostNoticed((*notice)->token_id, (*notice)->reason);
    return world_.oracle->LostTold(link_,
                                   {(*notice)->token_id, (*notice)->flow_id, (*notice)->reason});
  }
  const auto response = wire::DecodeResponse(message);
  if (!response.ok()) return Misunderstood(response.status().message());
  const auto asked = asked_.extract(response->msgid);
  if (asked.empty()) return Misunderstood("an answer to nothing");
  world_.network->Answered(link_, asked.mapped().sent_ms);
  if (!response->error) {
    if (asked.mapped().answered) asked.mapped().answered(response->result);
    return;
  }
  // Of a message of which a part was held back for too long nothing was done.
  const int64_t age_ms = world_.network->now_ms() - asked.mapped().sent_ms;
  const bool half = response->error->code == wire::ErrorCode::kMalformed &&
                    age_ms >= Limits().message_incomplete_ms;
  if (half) return;
  Say("is told " + response->error->message);
  if (!asked.mapped().failed) return Misunderstood(response->error->message);
  asked.mapped().failed();
}

SessionTap::Asked SessionTap::Hello(const wire::Envelope& envelope) {
  wire::HelloParams params;
  wire::RequestError error;
  if (!wire::DecodeHello(envelope.params, &params, &error)) return {};
  Say("connects as " + owner_);
  world_.oracle->SessionAsked(link_, owner_);
  return {.answered = [this, listens = params.lost](std::string_view result) {
    const auto hello = wire::DecodeHelloReply(result);
    if (!hello.ok()) return Misunderstood(hello.status().message());
    Say("has " + std::to_string(hello->resumed_tokens) + " tokens back");
    world_.oracle->SessionSeen(link_, owner_);
    const bool prompt = !world_.network->link(link_).slow();
    if (listens) world_.oracle->ListenerSeen(link_, owner_, prompt);
    judge_->Ready();
  }};
}

AcquireTerms SessionTap::Terms(bool prioritized, std::optional<uint64_t> wait_ms,
                               uint64_t hold_ms) const {
  const int64_t by_rule_ms = prioritized ? kQueueingMs : 0;
  return {.link = world_.network->link(link_).slow() ? kNoLink : link_,
          .prioritized = prioritized,
          .wait_ms = wait_ms ? static_cast<int64_t>(*wait_ms) : by_rule_ms,
          .hold_ms = static_cast<int64_t>(hold_ms)};
}

SessionTap::Asked SessionTap::Acquire(const wire::Envelope& envelope) {
  wire::AcquireParams params;
  wire::RequestError error;
  if (!wire::DecodeAcquire(envelope.params, &params, &error)) return {};
  const int64_t lane =
      params.param ? LaneOfText(params.flow_id, params.param->bytes) : params.flow_id;
  const OpId op = world_.oracle->On(link_).AcquireAsked(
      owner_, lane, params.count, params.request_id,
      Terms(params.prioritized, params.wait_ms, params.hold_ms));
  judge_->AcquireSent(params.request_id);
  Say("acquires flow " + std::to_string(lane) + " count " + std::to_string(params.count) +
      " request id " + std::to_string(params.request_id));
  return {.answered =
              [this, op, id = params.request_id](std::string_view result) {
                const auto reply = wire::DecodeAcquireReply(result);
                if (!reply.ok()) return Misunderstood(reply.status().message());
                AcquireAnswered(op, id, *reply);
              },
          .failed =
              [this, op, id = params.request_id] {
                world_.oracle->AcquireRefused(op);
                judge_->AcquireAnswered(id, {});
              }};
}

void SessionTap::AcquireAnswered(OpId op, uint64_t request_id, const wire::AcquireReply& reply) {
  world_.oracle->SessionSeen(link_, owner_);
  const Figures figures{.now_calls = static_cast<int64_t>(reply.now_calls),
                        .level = static_cast<int64_t>(reply.level)};
  if (reply.status == TokenStatus::kOk) {
    ++granted_;
    SayGranted(request_id, reply.fence, reply.hold_ms);
    judge_->AcquireAnswered(request_id, {reply.token_id});
    return world_.oracle->AcquireGranted(op, link_, reply.token_id, reply.fence,
                                         static_cast<int64_t>(reply.hold_ms), figures);
  }
  const std::string word = RefusalWord(reply.status, reply.refused_by);
  Say("is refused request id " + std::to_string(request_id) + ": " + word);
  judge_->AcquireAnswered(request_id, {});
  world_.oracle->AcquireRefused(op, Refusal{.word = word, .figures = figures});
}

SessionTap::Asked SessionTap::AcquireAll(const wire::Envelope& envelope) {
  wire::AcquireAllParams params;
  wire::RequestError error;
  if (!wire::DecodeAcquireAll(envelope.params, &params, &error)) return {};
  std::vector<Item> items;
  for (const wire::AcquireAllParams::Item& item : params.items) {
    const int64_t lane = item.param ? LaneOfText(item.flow_id, item.param->bytes) : item.flow_id;
    items.push_back({.flow = lane, .count = item.count});
  }
  const std::vector<OpId> ops = world_.oracle->On(link_).AcquireAllAsked(
      owner_, items, params.request_id, Terms(params.prioritized, params.wait_ms, params.hold_ms));
  judge_->AcquireSent(params.request_id);
  Say("acquires " + std::to_string(items.size()) + " flows, request id " +
      std::to_string(params.request_id));
  return {.answered =
              [this, ops, items, id = params.request_id](std::string_view result) {
                const auto reply = wire::DecodeAcquireAllReply(result);
                if (!reply.ok()) return Misunderstood(reply.status().message());
                AllAnswered(ops, items, id, *reply);
              },
          .failed =
              [this, ops, id = params.request_id] {
                for (const OpId op : ops) world_.oracle->AcquireRefused(op);
                judge_->AcquireAnswered(id, {});
              }};
}

// As a SimClient judges it.
void SessionTap::AllAnswered(const std::vector<OpId>& ops, const std::vector<Item>& items,
                             uint64_t request_id, const wire::AcquireAllReply& reply) {
  world_.oracle->SessionSeen(link_, owner_);
  const bool granted = reply.status == TokenStatus::kOk;
  if (reply.tokens.size() != (granted ? ops.size() : 0)) {
    return Misunderstood(std::to_string(reply.tokens.size()) + " tokens");
  }
  std::vector<uint64_t> tokens;
  for (const auto& token : reply.tokens) tokens.push_back(token.token_id);
  judge_->AcquireAnswered(request_id, tokens);
  if (granted) ++granted_;
  for (size_t i = 0; i < tokens.size(); ++i) {
    SayGranted(request_id, reply.tokens[i].fence, reply.tokens[i].hold_ms);
    world_.oracle->AcquireGranted(ops[i], link_, tokens[i], reply.tokens[i].fence,
                                  static_cast<int64_t>(reply.tokens[i].hold_ms));
  }
  if (granted) return;
  const Refusal refusal{.word = RefusalWord(reply.status, reply.refused_by),
                        .figures = {.now_calls = static_cast<int64_t>(reply.now_calls),
                                    .level = static_cast<int64_t>(reply.level)}};
  Say("is refused request id " + std::to_string(request_id) + ": " + refusal.word);
  // A flow may be there with several keys: one of them is in the way, as the word shows.
  std::vector<OpId> named;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (FlowOfLane(items[i].flow) == reply.flow_id) named.push_back(ops[i]);
  }
  if (reply.flow_id == 0) named.push_back(ops.front());
  if (named.empty()) Misunderstood("a refusal by flow " + std::to_string(reply.flow_id));
  for (const OpId op : ops) {
    const bool judged = named.size() == 1 && op == named.front();
    world_.oracle->AcquireRefused(op, judged ? std::optional<Refusal>(refusal) : std::nullopt);
  }
}

SessionTap::Asked SessionTap::Cancel(const wire::Envelope& envelope) {
  wire::CancelParams params;
  wire::RequestError error;
  if (!wire::DecodeCancel(envelope.params, &params, &error)) return {};
  const OpId op = world_.oracle->On(link_).CancelAsked(owner_, params.request_id, link_);
  judge_->CancelSent(params.request_id);
  Say("cancels request id " + std::to_string(params.request_id));
  return {.answered = [this, op, id = params.request_id](std::string_view result) {
    const auto status = wire::DecodeStatusReply(result);
    if (!status.ok()) return Misunderstood(status.status().message());
    Say("cancelled request id " + std::to_string(id) + ": " +
        std::string(TokenStatusName(*status)));
    world_.oracle->CancelAnswered(op, *status == TokenStatus::kReleaseOk);
    judge_->CancelAnswered(id);
  }};
}

SessionTap::Asked SessionTap::Release(const wire::Envelope& envelope) {
  wire::TokenParams params;
  wire::RequestError error;
  if (!wire::DecodeToken(envelope.method, envelope.params, &params, &error)) return {};
  const OpId op = world_.oracle->On(link_).ReleaseAsked(owner_, params.token_id);
  judge_->ReleaseSent(params.token_id);
  Say("releases");
  return {.answered = [this, op, token = params.token_id](std::string_view result) {
    const auto status = wire::DecodeStatusReply(result);
    if (!status.ok()) return Misunderstood(status.status().message());
    Say("released: " + std::string(TokenStatusName(*status)));
    world_.oracle->ReleaseAnswered(op, *status == TokenStatus::kReleaseOk);
    judge_->ReleaseAnswered(token);
    if (world_.oracle->IsInVain(op)) judge_->ToldInVain(token);
  }};
}

SessionTap::Asked SessionTap::Keep(const wire::Envelope& envelope) {
  wire::TokenParams params;
  wire::RequestError error;
  if (!wire::DecodeToken(envelope.method, envelope.params, &params, &error)) return {};
  const OpId op = world_.oracle->On(link_).KeepAsked(owner_, params.token_id, link_);
  judge_->KeepSent(params.token_id);
  Say("keeps");
  return {.answered = [this, op, token = params.token_id](std::string_view result) {
    const auto reply = wire::DecodeKeepReply(result);
    if (!reply.ok()) return Misunderstood(reply.status().message());
    const bool kept = reply->status == TokenStatus::kOk;
    const auto hold_ms = static_cast<int64_t>(reply->hold_ms);
    Say("kept: " + std::string(TokenStatusName(reply->status)));
    world_.oracle->KeepAnswered(op, kept, hold_ms);
    judge_->KeepAnswered(token, kept ? std::optional(hold_ms) : std::nullopt);
    if (!kept && world_.oracle->IsInVain(op)) judge_->ToldInVain(token);
  }};
}

bool SessionTap::IsMisfit(int64_t flow, bool by_value) const {
  return !HasRule(*world_.rules, flow, FlowKindIf(by_value)) &&
         HasRule(*world_.rules, flow, FlowKindIf(!by_value));
}

SessionTap::Asked SessionTap::Request(const wire::Envelope& envelope) {
  wire::RateParams params;
  wire::RequestError error;
  if (!wire::DecodeRequest(envelope.params, &params, &error)) return {};
  Say("requests " + std::to_string(params.count) + " of flow " + std::to_string(params.flow_id));
  return AfterCalls(world_.oracle->On(link_).CallsAsked(
      {.calls = {{params.flow_id, params.count}},
       .misfit = IsMisfit(params.flow_id, /*by_value=*/false)}));
}

SessionTap::Asked SessionTap::RequestParam(const wire::Envelope& envelope) {
  wire::ValueRateParams params;
  wire::RequestError error;
  if (!wire::DecodeRequestParam(envelope.params, &params, &values_, &error)) return {};
  CallsAsked asked{.calls = {}, .misfit = IsMisfit(params.flow_id, /*by_value=*/true)};
  for (const Param& value : values_.values()) {
    const int64_t lane = LaneOfText(params.flow_id, value.bytes);
    asked.calls[lane] += params.count;
    Say("requests " + std::to_string(params.count) + " of flow " + std::to_string(lane));
  }
  return AfterCalls(world_.oracle->On(link_).CallsAsked(std::move(asked)));
}

SessionTap::Asked SessionTap::AfterCalls(CallsId calls) {
  return {.answered = [this, calls](std::string_view result) {
    const auto reply = wire::DecodeRateReply(result);
    if (!reply.ok()) return Misunderstood(reply.status().message());
    Say("may call: " + std::string(TokenStatusName(reply->status)) + " " +
        std::string(RefusedByName(reply->refused_by)));
    world_.oracle->calls().Answered(world_.oracle->Tick(), calls, reply->status,
                                    static_cast<int64_t>(reply->wait_ms));
  }};
}

}  // namespace nowcalls::sim
