// Dialect: a connection's side of a server's language.
//
// Thread: one at a time. Requests go to the connection's output; answers come in the server's
// order. Only a failing operation allocates.
#ifndef NOWCALLS_BENCH_DIALECT_H_
#define NOWCALLS_BENCH_DIALECT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "nowcalls/types.h"
#include "wire/output_buffer.h"

namespace nowcalls::bench {

// Requests have its index in the target's list.
struct Flow {
  int64_t id = 0;
  int64_t level = 0;
  int64_t lifetime_ms = 0;  // Of a token that nobody releases.
  // At most, without its client; 0: as long as with it.
  int64_t client_offline_ms = 0;
};

enum class AnswerKind : uint8_t { kGreeted, kGranted, kRefused, kReleased, kError };

struct Answer {
  AnswerKind kind = AnswerKind::kError;
  RefusedBy refused_by = RefusedBy::kNone;
  uint32_t lane = 0;
  uint64_t token = 0;  // Of a grant.
  // Of an error, until the next Take.
  std::string_view error_name{};
  std::string_view error_text{};
};

class Dialect {
 public:
  enum class Outcome : uint8_t { kAnswer, kIncomplete, kInvalid };

  virtual ~Dialect() = default;

  // Answered with kGreeted.
  virtual void Greet(wire::OutputBuffer* out) = 0;
  // One request of a lane in flight at most. `wall_ms`: for servers without a clock of their own.
  virtual void Acquire(uint32_t lane, uint32_t flow, int64_t wall_ms, wire::OutputBuffer* out) = 0;
  virtual void Release(uint32_t lane, uint32_t flow, uint64_t token, wire::OutputBuffer* out) = 0;

  // From the front of *input. kIncomplete: pass the part again with more bytes behind it. kInvalid:
  // error() says why.
  virtual Outcome Take(std::string_view* input, Answer* answer) = 0;
  virtual std::string error() const = 0;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_DIALECT_H_
