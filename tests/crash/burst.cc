#include "crash/burst.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "crash/history.h"

namespace nowcalls::crash {

void Burst::Run(const std::string& address, const std::string& log_path, int64_t flow_id,
                int tokens) {
  constexpr int kInFlight = 500;
  granted_ = first_deadline_us_ = last_deadline_us_ = 0;
  HistoryWriter log(log_path);
  rpc_ = testing::RpcClient(address);
  if (!rpc_.Call("hello", {1, "default", kClientId}).ok()) return;
  log.Link(kClientId, true);
  for (int64_t number = 1; number <= tokens;) {
    std::map<uint64_t, int64_t> asked;  // Their numbers, by msgid.
    for (int i = 0; i < kInFlight && number <= tokens; ++i, ++number) {
      Operation operation;
      operation.number = number;
      operation.client = kClientId;
      operation.flow_id = flow_id;
      operation.count = 1;
      log.Ask(operation);
      asked[rpc_.Send("acquire", {flow_id, 1})] = number;
    }
    for (size_t i = 0; i < asked.size(); ++i) {
      const testing::Reply reply = rpc_.Receive();
      if (!reply.ok()) return;
      Operation operation;
      operation.number = asked.at(reply.msgid);
      if (reply.result.at(0) != 0) {
        operation.outcome = Outcome::kRefused;
        log.Answer(operation);
        continue;
      }
      operation.token_id = reply.result.at(1).get<uint64_t>();
      operation.fence = reply.result.at(2).get<uint64_t>();
      operation.now_calls = reply.result.at(3).get<int64_t>();
      operation.level = reply.result.at(4).get<int64_t>();
      operation.hold_ms = reply.result.at(5).get<int64_t>();
      operation.outcome = Outcome::kGranted;
      log.Answer(operation);
      ++granted_;
      last_deadline_us_ = BoottimeUs() + operation.hold_ms * 1000;
      if (first_deadline_us_ == 0) first_deadline_us_ = last_deadline_us_;
    }
  }
}

}  // namespace nowcalls::crash
