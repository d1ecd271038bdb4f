// NowcallsDialect: MessagePack-RPC (wire/PROTOCOL.md).
//
// Thread: one at a time. msgid = 2 x lane, + 1 of a release. Calls a second are never released.
#ifndef NOWCALLS_BENCH_NOWCALLS_DIALECT_H_
#define NOWCALLS_BENCH_NOWCALLS_DIALECT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/limits.h"
#include "bench/dialect.h"
#include "bench/load_setup.h"
#include "nowcalls/status.h"
#include "wire/client_messages.h"
#include "wire/splitter.h"

namespace nowcalls::bench {

class NowcallsDialect : public Dialect {
 public:
  struct Setup : LoadSetup {
    std::optional<std::string> client_id;
    std::string secret{};  // Shown before hello; empty: none.
    // Of the next acquire, counted up from a random number; 0: acquires have none.
    uint64_t next_request_id = 0;
  };
  explicit NowcallsDialect(std::shared_ptr<Setup> setup) : setup_(std::move(setup)) {}

  void Greet(wire::OutputBuffer* out) override;
  void Acquire(uint32_t lane, uint32_t flow, int64_t wall_ms, wire::OutputBuffer* out) override;
  void Release(uint32_t lane, uint32_t flow, uint64_t token, wire::OutputBuffer* out) override;
  Outcome Take(std::string_view* input, Answer* answer) override;
  std::string error() const override { return error_; }

 private:
  bool TakeCommon(std::string_view* input, Answer* answer);
  Status ReadAcquired(std::string_view result, Answer* answer);
  Status ReadRate(std::string_view result, Answer* answer);
  Status ReadReleased(std::string_view result, Answer* answer);
  Status Read(std::string_view message, Answer* answer);

  std::shared_ptr<Setup> setup_;
  wire::MessageSplitter splitter_{kReplyBytesMax};
  wire::Response response_;
  bool identified_ = false;  // The message was the answer to identify.
  std::string error_;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_NOWCALLS_DIALECT_H_
