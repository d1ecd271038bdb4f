#include "bench/redis_dialect.h"

#include <bit>

#include "base/bytes.h"
#include "bench/resp.h"

namespace nowcalls::bench {
namespace {

constexpr size_t kMsDigits = 13;     // Unix time until the year 2286.
constexpr size_t kTokenDigits = 16;  // Hexadecimal.
constexpr std::string_view kEndOfLine = "\r\n";
// Where the times begin, counted from the end of an acquire without its token.
constexpr size_t kDeadlineFromEnd =
    std::string_view("$16\r\n").size() + kEndOfLine.size() + kMsDigits;
constexpr size_t kNowFromEnd =
    kDeadlineFromEnd + std::string_view("$13\r\n").size() + kEndOfLine.size() + kMsDigits;

void WriteDecimal(int64_t value, char* digits) {
  for (size_t i = kMsDigits; i-- > 0; value /= 10) digits[i] = static_cast<char>('0' + value % 10);
}

// Eight hexadecimal digits as the bytes of a number, the first digit in the highest: each nibble is
// spread to a byte of its own, then all of them become digits at once.
uint64_t HexDigits(uint32_t value) {
  uint64_t nibbles = value;
  nibbles = (nibbles << 16 | nibbles) & 0x0000ffff0000ffff;
  nibbles = (nibbles << 8 | nibbles) & 0x00ff00ff00ff00ff;
  nibbles = (nibbles << 4 | nibbles) & 0x0f0f0f0f0f0f0f0f;
  constexpr uint64_t kOnes = 0x0101010101010101;
  const uint64_t above_nine = (nibbles + 6 * kOnes) >> 4 & kOnes;
  return nibbles + '0' * kOnes + above_nine * ('a' - '0' - 10);
}

// The last word of both commands. In three steps, since bytes that are stored in parts and loaded
// as a whole stall the processor.
void AppendToken(uint64_t token, wire::OutputBuffer* out) {
  const uint64_t high = ToBigEndian(HexDigits(static_cast<uint32_t>(token >> 32)));
  const uint64_t low = ToBigEndian(HexDigits(static_cast<uint32_t>(token)));
  out->write(reinterpret_cast<const char*>(&high), sizeof(high));
  out->write(reinterpret_cast<const char*>(&low), sizeof(low));
  out->Append(kEndOfLine);
}

// A command without its last word, the token.
std::string HeadOf(std::string command) {
  command.resize(command.size() - kTokenDigits - kEndOfLine.size());
  return command;
}

// "OOM" of "OOM command not allowed when used memory > 'maxmemory'."
std::string_view FirstWord(std::string_view text) { return text.substr(0, text.find(' ')); }

}  // namespace

std::string RedisDialect::KeyOf(std::string_view name_space, int64_t flow_id) {
  return std::string(name_space) + ":flow:" + std::to_string(flow_id);
}

RedisDialect::Setup::Setup(const std::vector<Flow>& flow_list, std::string_view name_space,
                           std::string_view script_sha, uint64_t first_token,
                           uint32_t replica_count)
    : replicas(replica_count),
      wait(replica_count == 0 ? std::string()
                              : RespCommand({"WAIT", std::to_string(replica_count), "0"})),
      next_token(first_token) {
  // Times and tokens have a fixed number of digits, so a request is written over without moving.
  const std::string no_time(kMsDigits, '0');
  const std::string no_token(kTokenDigits, '0');
  flows.reserve(flow_list.size());
  for (const Flow& flow : flow_list) {
    const std::string key = KeyOf(name_space, flow.id);
    flows.push_back({HeadOf(RespCommand({"EVALSHA", script_sha, "1", key,
                                         std::to_string(flow.level), no_time, no_time, no_token})),
                     HeadOf(RespCommand({"ZREM", key, no_token})), flow.lifetime_ms, 0});
  }
}

RedisDialect::RedisDialect(std::shared_ptr<Setup> setup, uint32_t lanes)
    : setup_(std::move(setup)), ring_(std::bit_ceil(size_t{lanes} + 1)), mask_(ring_.size() - 1) {}

void RedisDialect::Greet(wire::OutputBuffer* out) {
  out->Append(RespCommand({"PING"}));
  Await({Request::kGreet, 0, 0});
}

void RedisDialect::Acquire(uint32_t lane, uint32_t flow, int64_t wall_ms, wire::OutputBuffer* out) {
  Setup::Requests& requests = setup_->flows[flow];
  const uint64_t token = setup_->next_token++;
  // The times stand at the same place in each request. They are written once a millisecond, the
  // token each time.
  if (wall_ms != requests.wall_ms) {
    char* const end = requests.acquire.data() + requests.acquire.size();
    WriteDecimal(wall_ms, end - kNowFromEnd);
    WriteDecimal(wall_ms + requests.lifetime_ms, end - kDeadlineFromEnd);
    requests.wall_ms = wall_ms;
  }
  out->Append(requests.acquire);
  AppendToken(token, out);
  out->Append(setup_->wait);
  Await({Request::kAcquire, lane, token});
}

void RedisDialect::Release(uint32_t lane, uint32_t flow, uint64_t token, wire::OutputBuffer* out) {
  out->Append(setup_->flows[flow].release);
  AppendToken(token, out);
  out->Append(setup_->wait);
  Await({Request::kRelease, lane, token});
}

// An answer counts when that of its WAIT is there.
RespOutcome RedisDialect::TakeAnswer(std::string_view* input, RespValue* value) const {
  const bool greeting = ring_[answered_ & mask_].request == Request::kGreet;
  std::string_view rest = *input;
  const RespOutcome taken = TakeResp(&rest, value);
  if (taken != RespOutcome::kValue) return taken;
  if (setup_->replicas > 0 && !greeting) {
    RespValue acknowledged;
    const RespOutcome waited = TakeResp(&rest, &acknowledged);
    if (waited != RespOutcome::kValue) return waited;
    const bool enough =
        acknowledged.kind == RespKind::kInteger && acknowledged.integer >= setup_->replicas;
    if (!enough) *value = {.kind = RespKind::kError, .text = "NOREPLICAS: WAIT has fewer"};
  }
  *input = rest;
  return RespOutcome::kValue;
}

Dialect::Outcome RedisDialect::Take(std::string_view* input, Answer* answer) {
  RespValue value;
  switch (TakeAnswer(input, &value)) {
    case RespOutcome::kIncomplete: return Outcome::kIncomplete;
    case RespOutcome::kInvalid: return Invalid("what it sent is no RESP2");
    case RespOutcome::kValue: break;
  }
  // Answers come in the order of the requests.
  if (answered_ == asked_) return Invalid("it answered what nobody asked");
  // A ring of the requests in flight tells whose an answer is. It never overflows: lanes + 1 have
  // room.
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
  // The scripts answer 1 or 0.
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

Dialect::Outcome RedisDialect::Invalid(std::string_view why) {
  error_ = why;
  return Outcome::kInvalid;
}

}  // namespace nowcalls::bench
