#include "sim/saboteur.h"

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "wire/client_messages.h"

namespace nowcalls::sim {
namespace {

// The seal says that the newest fence found was the newest ever.
class FenceForgetter : public ledger::EntityVisitor {
 public:
  FenceForgetter(uint64_t next_fence, ledger::EntityVisitor* to)
      : next_fence_(next_fence), to_(to) {}

  Status OnEntity(const ledger::Entity& entity) override {
    const auto* const seal = ledger::As<ledger::Seal>(entity);
    if (seal == nullptr) return to_->OnEntity(entity);
    ledger::Seal tampered = *seal;
    tampered.next_fence = next_fence_;
    return to_->OnEntity(&tampered);
  }

 private:
  const uint64_t next_fence_;
  ledger::EntityVisitor* const to_;
};

class WindowForgetter : public ledger::EntityVisitor {
 public:
  explicit WindowForgetter(ledger::EntityVisitor* to) : to_(to) {}

  Status OnEntity(const ledger::Entity& entity) override {
    const bool is_window = ledger::As<ledger::RateBucket>(entity) != nullptr;
    return is_window ? Status() : to_->OnEntity(entity);
  }

 private:
  ledger::EntityVisitor* const to_;
};

// The least next_fence that recovery accepts.
class FenceFinder : public ledger::EntityVisitor {
 public:
  Status OnEntity(const ledger::Entity& entity) override {
    return std::visit([this](const auto* found) { return On(*found); }, entity);
  }

  uint64_t next_fence = 1;

 private:
  Status On(const ledger::Session& session) { return Saw(session.id.value); }
  Status On(const ledger::HistoryBlock& block) {
    for (const ledger::HistoryEntry& entry : block) {
      NOWCALLS_RETURN_IF_ERROR(Saw(std::max(entry.fence.value, entry.session.value)));
    }
    return {};
  }
  Status On(const ledger::Token& token) { return Saw(token.fence.value); }
  Status On(const auto& /*other*/) { return {}; }
  Status Saw(uint64_t fence) {
    next_fence = std::max(next_fence, fence + 1);
    return {};
  }
};

// Every "count":N of the rules whose level does not depend on sessions, one higher.
std::string WithHigherCounts(const std::string& json) {
  constexpr std::string_view kKey = R"("count":)";
  constexpr std::string_view kType = R"("thresholdType":)";
  std::string higher;
  size_t done = 0;
  for (size_t at = json.find(kKey); at != std::string::npos; at = json.find(kKey, done)) {
    at += kKey.size();
    higher.append(json, done, at - done);
    double count = 0;
    const char* const end = std::from_chars(json.data() + at, json.data() + json.size(), count).ptr;
    const std::string_view rest = std::string_view{json}.substr(at);
    const size_t type = rest.find(kType);
    const bool global = type != std::string_view::npos && rest[type + kType.size()] == '1';
    higher += std::to_string(global ? count + 1 : count);
    done = static_cast<size_t>(end - json.data());
  }
  return higher.append(json, done);
}

LossSaboteur::Kind OfLosses(Sabotage kind) {
  switch (kind) {
    case Sabotage::kLostReleased: return LossSaboteur::Kind::kOfReleased;
    case Sabotage::kLostEarly: return LossSaboteur::Kind::kEarly;
    case Sabotage::kLostWithheld: return LossSaboteur::Kind::kWithheld;
    default: return LossSaboteur::Kind::kNone;
  }
}

std::string Text(const wire::OutputBuffer& buffer) { return std::string(buffer.view()); }

}  // namespace

Saboteur::Saboteur(Sabotage kind, uint64_t seed)
    : kind_(kind), prng_(seed), losses_(OfLosses(kind)) {}

std::string Saboteur::In(LinkId link, std::string_view bytes, std::string* replies) {
  Stream& stream = streams_[link];
  if (!stream.begun && !bytes.empty()) {
    stream.begun = true;
    stream.speaks_frames = static_cast<uint8_t>(bytes.front()) <= wire::sentinel::kFirstByteMax;
  }
  const bool tampers = stream.speaks_frames
                           ? kind_ == Sabotage::kFrameDropped
                           : kind_ == Sabotage::kLostRelease || kind_ == Sabotage::kHighLevel ||
                                 kind_ == Sabotage::kFalseRefusal ||
                                 kind_ == Sabotage::kHoldIgnored || losses_.tampers();
  if (!tampers) return std::string(bytes);
  stream.rest += bytes;
  return stream.speaks_frames ? Frames(&stream, replies) : Messages(link, &stream, replies);
}

std::string Saboteur::Messages(LinkId link, Stream* stream, std::string* replies) {
  std::string forwarded;
  size_t size = 0;
  while (stream->splitter.Next(stream->rest, &size) == wire::MessageSplitter::Outcome::kMessage) {
    forwarded += Request(link, stream->rest.substr(0, size), replies);
    stream->rest.erase(0, size);
  }
  return forwarded;
}

std::string Saboteur::Frames(Stream* stream, std::string* replies) {
  using Outcome = wire::sentinel::FrameSplitter::Outcome;
  std::string forwarded;
  for (size_t size = 0; !stream->rest.empty(); stream->rest.erase(0, size)) {
    const Outcome outcome = stream->frames.Next(stream->rest, &size);
    if (outcome == Outcome::kIncomplete) break;
    const std::string bytes = stream->rest.substr(0, size);
    const std::string_view frame = bytes;
    wire::sentinel::Request request;
    const bool release =
        outcome == Outcome::kFrame &&
        wire::sentinel::DecodeRequest(frame.substr(wire::sentinel::kLengthBytes), &request) &&
        request.type == static_cast<int8_t>(wire::sentinel::RequestType::kRelease);
    if (!release || !often_enough()) {
      forwarded += bytes;
      continue;
    }
    wire::OutputBuffer out;
    wire::sentinel::EncodeStatus(request.xid, request.type, TokenStatus::kReleaseOk, &out);
    *replies += out.view();
  }
  return forwarded;
}

std::string Saboteur::Request(LinkId link, std::string_view message, std::string* replies) {
  std::string as_it_is(message);
  wire::Envelope envelope;
  wire::RequestError error;
  wire::OutputBuffer out;
  if (!wire::DecodeEnvelope(message, &envelope, &error)) return as_it_is;
  if (kind_ == Sabotage::kLostRelease) {
    const bool release = envelope.method == wire::Method::kRelease && !envelope.notification;
    if (!release || !often_enough()) return as_it_is;
    wire::EncodeStatus(envelope.msgid, TokenStatus::kReleaseOk, &out);
    *replies += out.view();
    return {};
  }
  if (losses_.tampers()) {
    *replies += losses_.OnRequest(link, envelope);
    return as_it_is;
  }
  if (kind_ == Sabotage::kHoldIgnored) {
    wire::AcquireParams acquire;
    if (envelope.method != wire::Method::kAcquire) return as_it_is;
    if (!wire::DecodeAcquire(envelope.params, &acquire, &error)) return as_it_is;
    acquire.hold_ms = 0;
    wire::EncodeAcquireRequest(envelope.msgid, acquire, &out);
    return Text(out);
  }
  if (kind_ == Sabotage::kFalseRefusal) {
    const bool acquire = envelope.method == wire::Method::kAcquire;
    if (!acquire || !often_enough()) return as_it_is;
    wire::EncodeAcquire(
        envelope.msgid,
        {.status = TokenStatus::kBlocked, .level = 1, .refused_by = RefusedBy::kLevel}, &out);
    *replies += out.view();
    return {};
  }
  wire::RulesLoadParams params;
  if (envelope.method != wire::Method::kRulesLoad) return as_it_is;
  if (!wire::DecodeRulesLoad(envelope.params, &params, &error)) return as_it_is;
  wire::EncodeRulesLoadRequest(envelope.msgid, params.name_space, WithHigherCounts(params.json),
                               &out);
  return Text(out);
}

std::string Saboteur::Out(LinkId link, std::string_view bytes) {
  if (streams_[link].speaks_frames) return FrameReplies(bytes);
  const bool tampers = kind_ == Sabotage::kDoubleGrant || kind_ == Sabotage::kHighLevel ||
                       kind_ == Sabotage::kWrongFigures || losses_.tampers();
  if (!tampers) return std::string(bytes);
  wire::MessageSplitter splitter(kReplyBytesMax, UINT32_MAX / 2);
  std::string forwarded;
  size_t size = 0;
  while (!bytes.empty() &&
         splitter.Next(bytes, &size) == wire::MessageSplitter::Outcome::kMessage) {
    const std::string_view message = bytes.substr(0, size);
    forwarded += losses_.tampers() ? losses_.OnReply(link, message) : Reply(message);
    bytes.remove_prefix(size);
  }
  return forwarded;
}

std::string Saboteur::FrameReplies(std::string_view bytes) {
  std::string forwarded;
  wire::sentinel::Response response;
  for (std::string_view left = bytes;;) {
    const std::string_view before = left;
    if (wire::sentinel::TakeResponse(&left, &response) != wire::sentinel::Answer::kWhole) {
      return forwarded;
    }
    std::string frame(before.substr(0, before.size() - left.size()));
    TamperFrame(response, frame.data() + wire::sentinel::kLengthBytes);
    forwarded += frame;
  }
}

// `payload`: that of the response, which may be changed.
void Saboteur::TamperFrame(const wire::sentinel::Response& response, char* payload) {
  using wire::sentinel::RequestType;
  const auto type = static_cast<RequestType>(response.type);
  const auto is = [&](Sabotage kind, RequestType of, TokenStatus status) {
    return kind_ == kind && type == of && response.status == status;
  };
  char* const status = payload + wire::sentinel::kResponseHeadBytes - 1;
  char* const data = payload + wire::sentinel::kResponseHeadBytes;
  if (is(Sabotage::kFreeCalls, RequestType::kFlow, TokenStatus::kBlocked) ||
      is(Sabotage::kFreeValues, RequestType::kParamFlow, TokenStatus::kBlocked)) {
    if (often_enough()) *status = static_cast<char>(TokenStatus::kOk);
  }
  if (is(Sabotage::kFreeRequests, RequestType::kFlow, TokenStatus::kTooManyRequest)) {
    *status = static_cast<char>(TokenStatus::kOk);
  }
  if (is(Sabotage::kFalseBlock, RequestType::kFlow, TokenStatus::kOk) && often_enough()) {
    *status = static_cast<char>(TokenStatus::kBlocked);
  }
  if (is(Sabotage::kWrongOnline, RequestType::kPing, TokenStatus::kOk)) {
    *data = static_cast<char>(response.count() + 1);
  }
  if (is(Sabotage::kFrameTwice, RequestType::kAcquire, TokenStatus::kOk)) {
    granted_in_frame_ = response.token_id();
  }
  if (is(Sabotage::kFrameTwice, RequestType::kAcquire, TokenStatus::kBlocked) &&
      granted_in_frame_ != 0 && often_enough()) {
    *status = static_cast<char>(TokenStatus::kOk);
    StoreBigEndian(data, granted_in_frame_);
  }
}

std::string Saboteur::Reply(std::string_view message) {
  std::string as_it_is(message);
  const auto response = wire::DecodeResponse(message);
  if (!response.ok() || response->error) return as_it_is;
  auto reply = wire::DecodeAcquireReply(response->result);
  if (!reply.ok()) return as_it_is;
  wire::OutputBuffer out;
  if (kind_ == Sabotage::kHighLevel) {
    reply->level -= reply->level > 0 ? 1 : 0;
    wire::EncodeAcquire(response->msgid, *reply, &out);
    return Text(out);
  }
  if (kind_ == Sabotage::kWrongFigures) {
    reply->now_calls += reply->status == TokenStatus::kOk ? 1 : 0;
    wire::EncodeAcquire(response->msgid, *reply, &out);
    return Text(out);
  }
  if (reply->status == TokenStatus::kOk) granted_ = *reply;
  const bool twice = reply->refused_by == RefusedBy::kLevel && granted_.token_id != 0;
  if (!twice || !often_enough()) return as_it_is;
  wire::EncodeAcquire(response->msgid, granted_, &out);
  return Text(out);
}

Status Saboteur::Load(store::LedgerSource* store, ledger::EntityVisitor* visitor) const {
  if (kind_ == Sabotage::kWindowsForgotten) {
    WindowForgetter forgetter(visitor);
    return store->Load(&forgetter);
  }
  if (kind_ != Sabotage::kFenceReused) return store->Load(visitor);
  FenceFinder finder;
  NOWCALLS_RETURN_IF_ERROR(store->Load(&finder));
  FenceForgetter forgetter(finder.next_fence, visitor);
  return store->Load(&forgetter);
}

}  // namespace nowcalls::sim
