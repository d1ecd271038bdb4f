#include "bench/redis_protocol.h"

#include <bit>

#include "bench/resp.h"

namespace nowcalls::bench {
namespace {

constexpr size_t kMsDigits = 13;     // Unix time until the year 2286.
constexpr size_t kTokenDigits = 16;  // Hexadecimal.
constexpr size_t kEndOfLineBytes = 2;
// Where the fixed-width fields begin, counted from the end of an encoded command.
constexpr size_t kTokenFromEnd = kTokenDigits + kEndOfLineBytes;
constexpr size_t kDeadlineFromEnd =
    kTokenFromEnd + std::string_view("$16\r\n").size() + kEndOfLineBytes + kMsDigits;
constexpr size_t kNowFromEnd =
    kDeadlineFromEnd + std::string_view("$13\r\n").size() + kEndOfLineBytes + kMsDigits;

void WriteDecimal(int64_t value, char* digits) {
  for (size_t i = kMsDigits; i-- > 0; value /= 10) digits[i] = static_cast<char>('0' + value % 10);
}

void WriteHex(uint64_t value, char* digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = kTokenDigits; i-- > 0; value >>= 4) digits[i] = kDigits[value & 0xf];
}

// "OOM" of "OOM command not allowed when used memory > 'maxmemory'."
std::string_view FirstWord(std::string_view text) { return text.substr(0, text.find(' ')); }

}  // namespace

std::string RedisProtocol::KeyOf(std::string_view name_space, int64_t flow_id) {
  return std::string(name_space) + ":flow:" + std::to_string(flow_id);
}

RedisProtocol::Setup::Setup(const std::vector<Flow>& flow_list, std::string_view name_space,
                            std::string_view script_sha, uint64_t first_token)
    : next_token(first_token) {
  const std::string no_time(kMsDigits, '0');
  const std::string no_token(kTokenDigits, '0');
  flows.reserve(flow_list.size());
  for (const Flow& flow : flow_list) {
    const std::string key = KeyOf(name_space, flow.id);
    flows.push_back({RespCommand({"EVALSHA", script_sha, "1", key, std::to_string(flow.level),
                                  no_time, no_time, no_token}),
                     RespCommand({"ZREM", key, no_token}), flow.lifetime_ms});
  }
}

RedisProtocol::RedisProtocol(std::shared_ptr<Setup> setup, uint32_t lanes)
    : setup_(std::move(setup)), ring_(std::bit_ceil(size_t{lanes} + 1)), mask_(ring_.size() - 1) {}

void RedisProtocol::Greet(wire::OutputBuffer* out) {
  out->Append(RespCommand({"PING"}));
  Await({Request::kGreet, 0, 0});
}

void RedisProtocol::Acquire(uint32_t lane, uint32_t flow, int64_t wall_ms,
                            wire::OutputBuffer* out) {
  Setup::Requests& requests = setup_->flows[flow];
  const uint64_t token = setup_->next_token++;
  char* const end = requests.acquire.data() + requests.acquire.size();
  WriteDecimal(wall_ms, end - kNowFromEnd);
  WriteDecimal(wall_ms + requests.lifetime_ms, end - kDeadlineFromEnd);
  WriteHex(token, end - kTokenFromEnd);
  out->Append(requests.acquire);
  Await({Request::kAcquire, lane, token});
}

void RedisProtocol::Release(uint32_t lane, uint32_t flow, uint64_t token, wire::OutputBuffer* out) {
  std::string& request = setup_->flows[flow].release;
  WriteHex(token, request.data() + request.size() - kTokenFromEnd);
  out->Append(request);
  Await({Request::kRelease, lane, token});
}

Protocol::Outcome RedisProtocol::Take(std::string_view* input, Answer* answer) {
  RespValue value;
  switch (TakeResp(input, &value)) {
    case RespOutcome::kIncomplete: return Outcome::kIncomplete;
    case RespOutcome::kInvalid: return Invalid("what it sent is no RESP2");
    case RespOutcome::kValue: break;
  }
  if (answered_ == asked_) return Invalid("it answered what nobody asked");
  const InFlight& request = ring_[answered_++ & mask_];
  answer->lane = request.lane;
  answer->token = request.token;
  if (value.kind == RespKind::kError) {
    answer->kind = AnswerKind::kError;
    answer->error_name = FirstWord(value.text);
    answer->error_text = value.text;
    return Outcome::kAnswer;
  }
  if (request.request == Request::kGreet) {
    answer->kind = AnswerKind::kGreeted;
    return Outcome::kAnswer;
  }
  if (value.kind != RespKind::kInteger) return Invalid("it answered with another type");
  if (request.request == Request::kAcquire) {
    answer->kind = value.integer == 1 ? AnswerKind::kGranted : AnswerKind::kRefused;
    answer->refused_by = value.integer == 1 ? RefusedBy::kNone : RefusedBy::kLevel;
  } else if (value.integer == 1) {
    answer->kind = AnswerKind::kReleased;
  } else {
    answer->kind = AnswerKind::kError;
    answer->error_name = "ALREADY_RELEASE";
    answer->error_text = "ZREM removed nothing: the token had ended before";
  }
  return Outcome::kAnswer;
}

Protocol::Outcome RedisProtocol::Invalid(std::string_view why) {
  error_ = why;
  return Outcome::kInvalid;
}

}  // namespace nowcalls::bench
