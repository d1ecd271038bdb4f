// HonestClient: a well-behaved client on a thread of its own, beside which others misbehave.
//
// Thread: made and finished on one thread. It acquires and releases without a pause and remembers
// the first answer that was not as it should be.
#ifndef NOWCALLS_INTEGRATION_HONEST_CLIENT_H_
#define NOWCALLS_INTEGRATION_HONEST_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "support/rpc_client.h"

namespace nowcalls::testing {

class HonestClient {
 public:
  // Uses `flow_id` alone; its level must allow one call.
  HonestClient(const std::string& address, int64_t flow_id);
  ~HonestClient();
  HonestClient(const HonestClient&) = delete;
  HonestClient& operator=(const HonestClient&) = delete;

  // Waits until some more rounds are done; false when that does not happen.
  bool MakesProgress();
  // Ends it. Empty if all was well, or what went wrong.
  std::string Finish();

 private:
  void Run(const std::string& address, int64_t flow_id);

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> rounds_{0};
  std::string failure_;  // Written by the thread, read after it was joined.
  std::thread thread_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_INTEGRATION_HONEST_CLIENT_H_
