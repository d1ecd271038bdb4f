// FrameClient: a client of the crash loop that speaks Sentinel's frames, with a log of its own.
//
// Thread: Run on a thread of its own; everything else between two runs. It asks for one thing at a
// time, and writes each request and answer to its log as LoadClient does. Any client of a namespace
// may release its tokens, so this one goes on behind a kill or a reconnect with those it holds. Its
// calls a second are of a window that the ledger keeps.
#ifndef NOWCALLS_CRASH_FRAME_CLIENT_H_
#define NOWCALLS_CRASH_FRAME_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "crash/history.h"
#include "crash/load_client.h"
#include "support/sentinel_client.h"

namespace nowcalls::crash {

class FrameClient {
 public:
  explicit FrameClient(uint64_t seed) : prng_(seed) {}

  // As of LoadClient.
  const std::string& problem() const { return problem_; }
  void Run(const std::string& address, const std::string& log_path, const LoadSignals* signals);

 private:
  bool Connect(const std::string& address);
  bool DoOne(bool drain);
  bool Acquire();
  bool Touch(Action action, uint64_t token_id);
  bool CallASecond();
  Operation Begin(Action action);
  // False: the connection is lost.
  bool Came(const testing::SentinelAnswer& answer);

  Prng prng_;
  std::string problem_;
  std::vector<uint64_t> held_;
  std::unique_ptr<HistoryWriter> log_;
  std::unique_ptr<testing::SentinelClient> frames_;
  std::string name_;  // "@HOST:PORT", as the ledger has it.
  bool lost_ = false;
  int64_t next_number_ = 1;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_FRAME_CLIENT_H_
