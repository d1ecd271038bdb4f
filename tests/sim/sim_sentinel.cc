#include "sim/sim_sentinel.h"

#include <algorithm>

#include "base/bytes.h"
#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

using wire::OutputBuffer;
using wire::sentinel::RequestType;
using wire::sentinel::Response;

std::string Text(int64_t count, int64_t flow, bool prioritized) {
  return std::to_string(count) + " of flow " + std::to_string(flow) +
         (prioritized ? " prioritized" : "");
}

// A frame whose length says `size`, with as many bytes, of which the first are a head.
void EncodeFrame(uint32_t xid, int8_t type, size_t size, OutputBuffer* out) {
  std::string payload(size, '\0');
  char* const bytes = payload.data();
  if (size >= sizeof(xid)) StoreBigEndian(bytes, xid);
  if (size > sizeof(xid)) payload[sizeof(xid)] = static_cast<char>(type);
  char length[wire::sentinel::kLengthBytes];
  StoreBigEndian(length, static_cast<uint16_t>(size));
  out->write(length, sizeof(length));
  out->write(payload.data(), payload.size());
}

}  // namespace

std::string SimSentinel::owner() const {
  return (identity_.pings ? identity_.name_space : "default") + "/@" + peer();
}

void SimSentinel::Misunderstood(const std::string& what) {
  oracle_->Violation("I3 " + name() + " was sent what it did not ask for: " + what);
}

void SimSentinel::Open(bool steady) {
  Connect(steady);
  if (!may_send()) return;
  Say("connects as " + owner());
  oracle_->SpeaksFrames(owner());
  if (identity_.pings) Ping();
}

void SimSentinel::Ping() {
  oracle_->SessionAsked(link(), owner());
  Call(
      RequestType::kPing,
      [&](uint32_t xid, OutputBuffer* out) {
        wire::sentinel::EncodePingRequest(xid, identity_.name_space, out);
      },
      [this, at = link(), session = owner(), asked = oracle_->Tick()](const Response* response) {
        if (response == nullptr) return;
        if (response->status != TokenStatus::kOk) return Misunderstood("a PING is refused");
        Say("sees " + std::to_string(response->count()) + " online");
        oracle_->OnlineTold(at, identity_.name_space, response->count(), asked);
        oracle_->SessionSeen(at, session);
      });
}

// A request about tokens makes a session if there was no PING.
void SimSentinel::AskForSession() {
  if (!identity_.pings) oracle_->SessionAsked(link(), owner());
}

void SimSentinel::Acquire(int64_t flow, int64_t count, bool prioritized, bool misfit) {
  AskForSession();
  const bool prompt = !network()->link(link()).slow();
  const OpId op =
      oracle_->On(link()).AcquireAsked(owner(), flow, count, /*request_id=*/0,
                                       {.link = prompt ? link() : kNoLink,
                                        .prioritized = prioritized,
                                        .wait_ms = prioritized ? identity_.wait_ms_max : 0});
  Say("acquires " + Text(count, flow, prioritized));
  Call(
      RequestType::kAcquire,
      [&](uint32_t xid, OutputBuffer* out) {
        wire::sentinel::EncodeCallRequest(xid, RequestType::kAcquire,
                                          {flow, static_cast<int32_t>(count), prioritized}, out);
      },
      [this, op, misfit, at = link(), session = owner()](const Response* response) {
        if (response == nullptr) return;
        const TokenStatus status = response->status;
        if (status == TokenStatus::kOk || status == TokenStatus::kBlocked) {
          oracle_->SessionSeen(at, session);
        }
        if (status == TokenStatus::kOk) return Granted(op, at, response->token_id());
        Say("is refused: " + std::string(TokenStatusName(status)));
        if (response->token_id() != 0) Misunderstood("a refusal with a token");
        if (misfit && status == TokenStatus::kBadRequest) return oracle_->AcquireRefused(op);
        const bool limit = status == TokenStatus::kTooManyRequest;
        oracle_->AcquireRefused(
            op, Refusal{.word = limit ? "token_limit" : std::string(TokenStatusName(status)),
                        .figures = {}});
      });
}

void SimSentinel::Granted(OpId op, LinkId at, uint64_t token) {
  const uint64_t fence = ids_->ToFence(TokenId{token}).value;
  Say("has fence " + std::to_string(fence));
  ++granted_;
  held_.push_back(token);
  oracle_->AcquireGranted(op, at, token, fence, /*told_hold_ms=*/{});
}

void SimSentinel::Forget(uint64_t token) {
  constexpr size_t kPastMax = 20;
  std::erase(held_, token);
  if (past_.size() >= kPastMax) past_.erase(past_.begin());
  past_.push_back(token);
}

void SimSentinel::Release(uint64_t token) {
  AskForSession();
  const OpId op = oracle_->On(link()).ReleaseAsked(owner(), token, Reach::kSentinel);
  Say("releases");
  Call(
      RequestType::kRelease,
      [&](uint32_t xid, OutputBuffer* out) {
        wire::sentinel::EncodeTokenRequest(xid, RequestType::kRelease, token, out);
      },
      [this, op, token, at = link(), session = owner()](const Response* response) {
        if (response == nullptr) return;
        Say("released: " + std::string(TokenStatusName(response->status)));
        const bool released = response->status == TokenStatus::kReleaseOk;
        if (!released && response->status != TokenStatus::kAlreadyRelease) {
          return Misunderstood("an answer to a release");
        }
        oracle_->SessionSeen(at, session);
        Forget(token);
        oracle_->ReleaseAnswered(op, released);
      });
}

void SimSentinel::Keep(uint64_t token) {
  AskForSession();
  const OpId op = oracle_->On(link()).KeepAsked(owner(), token, link(), Reach::kSentinel);
  Say("keeps");
  Call(
      RequestType::kKeep,
      [&](uint32_t xid, OutputBuffer* out) {
        wire::sentinel::EncodeTokenRequest(xid, RequestType::kKeep, token, out);
      },
      [this, op, token, at = link(), session = owner()](const Response* response) {
        if (response == nullptr) return;
        Say("kept: " + std::string(TokenStatusName(response->status)));
        const bool kept = response->status == TokenStatus::kOk;
        if (!kept && response->status != TokenStatus::kAlreadyRelease) {
          return Misunderstood("an answer to a keep");
        }
        oracle_->SessionSeen(at, session);
        if (!kept) Forget(token);
        oracle_->KeepAnswered(op, kept, /*told_hold_ms=*/{});
      });
}

void SimSentinel::Request(int64_t flow, int64_t count, bool prioritized, bool misfit) {
  Say("requests " + Text(count, flow, prioritized));
  const CallsId calls =
      oracle_->On(link()).CallsAsked({.calls = {{flow, count}}, .misfit = misfit});
  Call(
      RequestType::kFlow,
      [&](uint32_t xid, OutputBuffer* out) {
        const auto count32 = static_cast<int32_t>(count);
        // Released clients leave the byte out when they may.
        if (prioritized) {
          wire::sentinel::EncodeCallRequest(xid, RequestType::kFlow, {flow, count32, true}, out);
        } else {
          wire::sentinel::EncodeShortCallRequest(xid, RequestType::kFlow, flow, count32, out);
        }
      },
      [this, calls](const Response* response) {
        if (response != nullptr) AnswerCalls(calls, *response);
      });
}

void SimSentinel::RequestValues(const std::vector<int64_t>& lanes, int64_t count, bool misfit) {
  CallsAsked asked{.calls = {}, .misfit = misfit};
  std::vector<std::string> keys;
  for (const int64_t lane : lanes) {
    asked.calls[lane] += count;
    keys.push_back(KeyOfLane(lane));
    Say("requests " + Text(count, lane, /*prioritized=*/false));
  }
  const CallsId calls = oracle_->On(link()).CallsAsked(std::move(asked));
  std::vector<Param> values;
  for (const std::string& key : keys) values.push_back({ParamType::kString, key});
  Call(
      RequestType::kParamFlow,
      [&](uint32_t xid, OutputBuffer* out) {
        wire::sentinel::EncodeParamCallRequest(xid, FlowOfLane(lanes.front()),
                                               static_cast<int32_t>(count), values, out);
      },
      [this, calls](const Response* response) {
        if (response != nullptr) AnswerCalls(calls, *response);
      });
}

void SimSentinel::AnswerCalls(CallsId calls, const Response& response) {
  Say("may call: " + std::string(TokenStatusName(response.status)));
  oracle_->calls().Answered(oracle_->Tick(), calls, response.status, response.wait_ms());
}

void SimSentinel::Expect(TokenStatus wanted, const Response* response) {
  if (response == nullptr || response->status == wanted) return;
  Misunderstood("status " + std::string(TokenStatusName(response->status)) + " for " +
                std::string(TokenStatusName(wanted)));
}

void SimSentinel::SendRude(Rude rude) {
  constexpr int8_t kUnknown = 77;
  constexpr size_t kHead = wire::sentinel::kRequestHeadBytes;
  const auto call = [this](int8_t type, size_t size, TokenStatus wanted, int8_t answered) {
    Call(
        answered, [&](uint32_t xid, OutputBuffer* out) { EncodeFrame(xid, type, size, out); },
        [this, wanted](const Response* response) { Expect(wanted, response); });
  };
  Say("is rude, " + std::to_string(static_cast<int>(rude)));
  OutputBuffer frame;
  switch (rude) {
    case Rude::kUnknownType: return call(kUnknown, kHead + 3, TokenStatus::kFail, kUnknown);
    case Rude::kCutData: {
      const auto type = static_cast<int8_t>(RequestType::kParamFlow);
      return call(type, kHead + 14, TokenStatus::kBadRequest, type);
    }
    case Rude::kHeadOnly:
      return call(/*type=*/0, kHead - 1, TokenStatus::kBadRequest, /*answered=*/0);
    case Rude::kEmpty: EncodeFrame(0, 0, 0, &frame); return Send(frame.view());
    case Rude::kOversized:
      return call(kUnknown, wire::sentinel::kPayloadBytesMax + 1, TokenStatus::kBadRequest,
                  kUnknown);
    case Rude::kOtherNamespace:
      if (!identity_.pings) return;
      return Call(
          RequestType::kPing,
          [&](uint32_t xid, OutputBuffer* out) {
            wire::sentinel::EncodePingRequest(xid, identity_.name_space + "2", out);
          },
          [this](const Response* response) { Expect(TokenStatus::kFail, response); });
  }
}

}  // namespace nowcalls::sim
