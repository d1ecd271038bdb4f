// RedisTarget: a Redis server without password.
//
// Thread: see target.h.
#ifndef NOWCALLS_BENCH_REDIS_TARGET_H_
#define NOWCALLS_BENCH_REDIS_TARGET_H_

#include <memory>
#include <string>
#include <vector>

#include "bench/redis_dialect.h"
#include "bench/target.h"
#include "net/socket.h"

namespace nowcalls::bench {

class RedisTarget : public Target {
 public:
  explicit RedisTarget(const Options& options) : options_(options) {}

  Status Prepare(const std::vector<Flow>& flows) override;
  std::unique_ptr<Dialect> NewDialect(uint32_t lanes) override;
  Status CleanUp() override;

 private:
  Result<net::Socket> Connect() const;
  Status ReadFacts(net::Socket* socket);

  Options options_;
  std::vector<std::string> keys_;
  std::shared_ptr<RedisDialect::Setup> setup_;
};

// "7.0.15" of a line "redis_version:7.0.15"; empty: no such line.
std::string InfoField(const std::string& info, const std::string& name);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_REDIS_TARGET_H_
