// RedisDialect: a counting semaphore on Redis: a sorted set a flow, of tokens by deadline.
//
// Thread: one at a time. An acquire is kAcquireScript, a release one ZREM.
#ifndef NOWCALLS_BENCH_REDIS_DIALECT_H_
#define NOWCALLS_BENCH_REDIS_DIALECT_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/dialect.h"
#include "bench/resp.h"

namespace nowcalls::bench {

// KEYS: the set. ARGV: level, now and deadline in ms, token. 1: granted; 0: refused.
inline constexpr std::string_view kAcquireScript =
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2])\n"
    "if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end\n"
    "redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])\n"
    "return 1\n";

class RedisDialect : public Dialect {
 public:
  // Shared by the connections.
  struct Setup {
    Setup(const std::vector<Flow>& flow_list, std::string_view name_space,
          std::string_view script_sha, uint64_t first_token, uint32_t replica_count = 0);

    // Encoded without the token; times are renewed each millisecond.
    struct Requests {
      std::string acquire;
      std::string release;
      int64_t lifetime_ms = 0;
      int64_t wall_ms = 0;  // What `acquire` says.
    };
    std::vector<Requests> flows;
    const uint32_t replicas;  // That each command waits for.
    const std::string wait;   // Behind each command: the WAIT for them, or nothing.
    uint64_t next_token;      // Counts up from a random number, so that two runs share no tokens.
  };
  // "NAMESPACE:flow:ID"
  static std::string KeyOf(std::string_view name_space, int64_t flow_id);

  // REQUIRES: at most `lanes` in flight, besides Greet.
  RedisDialect(std::shared_ptr<Setup> setup, uint32_t lanes);

  void Greet(wire::OutputBuffer* out) override;
  void Acquire(uint32_t lane, uint32_t flow, int64_t wall_ms, wire::OutputBuffer* out) override;
  void Release(uint32_t lane, uint32_t flow, uint64_t token, wire::OutputBuffer* out) override;
  Outcome Take(std::string_view* input, Answer* answer) override;
  std::string error() const override { return error_; }

 private:
  enum class Request : uint8_t { kGreet, kAcquire, kRelease };
  struct InFlight {
    Request request = Request::kGreet;
    uint32_t lane = 0;
    uint64_t token = 0;
  };

  RespOutcome TakeAnswer(std::string_view* input, RespValue* value) const;
  void Await(const InFlight& request) { ring_[asked_++ & mask_] = request; }
  Outcome Invalid(std::string_view why);

  std::shared_ptr<Setup> setup_;
  std::vector<InFlight> ring_;
  uint64_t mask_;
  uint64_t asked_ = 0;
  uint64_t answered_ = 0;
  std::string error_;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_REDIS_DIALECT_H_
