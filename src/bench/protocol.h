// Protocol: one connection's side of a server's language, so that the loop, the schedule and the
// clocks are the same whatever is measured.
//
// Thread: one at a time, an object a connection. Requests are appended to the connection's output;
// answers are taken off its input in whatever order the server sends them. Nothing is allocated per
// operation unless an answer is an error.
#ifndef NOWCALLS_BENCH_PROTOCOL_H_
#define NOWCALLS_BENCH_PROTOCOL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "nowcalls/types.h"
#include "wire/output_buffer.h"

namespace nowcalls::bench {

// What is acquired. Requests name it by its index in the list that the target was given.
struct Flow {
  int64_t id = 0;
  int64_t level = 0;
  int64_t lifetime_ms = 0;  // Of a token that nobody releases.
  // How long it lives without its client at most; 0: as long as with it.
  int64_t client_offline_ms = 0;
};

enum class AnswerKind : uint8_t { kGreeted, kGranted, kRefused, kReleased, kError };

struct Answer {
  AnswerKind kind = AnswerKind::kError;
  RefusedBy refused_by = RefusedBy::kNone;
  uint32_t lane = 0;
  uint64_t token = 0;  // Of a grant.
  // Of an error; valid until the next Take.
  std::string_view error_name{};
  std::string_view error_text{};
};

class Protocol {
 public:
  enum class Outcome : uint8_t { kAnswer, kIncomplete, kInvalid };

  virtual ~Protocol() = default;

  // What makes the connection ready; answered with kGreeted.
  virtual void Greet(wire::OutputBuffer* out) = 0;
  // A lane has at most one request in flight. `wall_ms` is the client's clock, for servers that
  // have none of their own.
  virtual void Acquire(uint32_t lane, uint32_t flow, int64_t wall_ms, wire::OutputBuffer* out) = 0;
  virtual void Release(uint32_t lane, uint32_t flow, uint64_t token, wire::OutputBuffer* out) = 0;

  // Takes the next answer off the front of *input. kIncomplete: *input begins with a part of one,
  // and the next call must have it again with more bytes behind it. kInvalid: error() says why.
  virtual Outcome Take(std::string_view* input, Answer* answer) = 0;
  virtual std::string error() const = 0;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_PROTOCOL_H_
